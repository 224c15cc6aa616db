// @ts-check
/** When the player's journal is sent: after each game, and again after errors. sender.js does it. */

import { ask } from "./api.js";
import { Refusal, username } from "./http.js";
import { changeOwn, stored } from "./journal.js";
import { exclusively } from "./locks.js";
import { Sender } from "./sender.js";

/** @typedef {{error: Refusal, until: number}} Trouble the error of an attempt, and the time of the next one */

const AGAIN_S = 60;

/** The reason why the outbox isn't empty, or null. @type {Trouble | null} */
export let trouble = null;
let pulled = ""; // the player whose progress this page has pulled
let timer = 0;

const sender = new Sender({ read: stored, change: changeOwn }, async (method, path, body, as) => {
  const answer = await ask(method, path, {
    body: body === null ? undefined : new Blob([body], { type: "application/json" }),
    as,
  });
  return answer.json();
});

/** Push all games of the journal. @param {string} name */
async function count(name) {
  await sender.count(name, pulled !== name);
  pulled = name;
}

/** Send everything, unless it must wait. Set `trouble` to the obstacle, and dispatch the event "outbox". @param {boolean} [forced] don't wait @param {boolean} [again] try again what the service has refused */
export async function settle(forced = false, again = false) {
  const name = username();
  const waits = () => !forced && trouble && Date.now() < trouble.until;
  if (!name || waits()) return;
  clearTimeout(timer);
  await exclusively("solisync.outbox", async () => {
    if (waits()) return; // an attempt that has just ended requires a pause
    trouble = null;
    for (const work of [() => sender.upload(name, again), () => count(name)]) {
      try {
        await work();
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        const until = error.passes ? Date.now() + 1000 * (error.retryAfter || AGAIN_S) : Infinity;
        trouble = { error, until };
        if (error.status !== 400) break;
      }
    }
  });
  if (trouble && trouble.until < Infinity) timer = setTimeout(whenVisible, trouble.until - Date.now());
  dispatchEvent(new Event("outbox"));
}

function whenVisible() {
  if (!document.hidden) settle();
}

addEventListener("online", () => settle(true));
let player = username();
addEventListener("session", () => {
  if (player === username()) return;
  player = username();
  pulled = "";
  trouble = null;
  settle(true);
});
document.addEventListener("visibilitychange", whenVisible);
