// @ts-check
/** The page of a 503: retries less and less often while it is visible, and reloads when the service answers. */

import { byId } from "./page.js";

const { retry_after: first } = JSON.parse(byId("data").textContent);
const MOST = 300;

/** Resolve as soon as the page is visible. @returns {Promise<void>} */
const visible = () =>
  new Promise((resolve) => {
    const look = () => {
      if (document.hidden) return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    look();
  });

/** @param {number} seconds */
function tryAgain(seconds) {
  setTimeout(async () => {
    await visible();
    const answer = await fetch(location.href, { method: "HEAD", headers: { Accept: "text/html" } }).catch(() => null);
    if (answer && answer.status !== 503) location.reload();
    else tryAgain(Math.min(seconds * 2, MOST));
  }, seconds * 1000);
}

tryAgain(first + Math.random() * 30);
