// @ts-check
/** /leaderboard: asks to sign in; the boards for who is signed in come from boards.js. */

import { username } from "./api.js";
import { byId, signInPath } from "./page.js";

async function show() {
  byId("boards").hidden = !username();
  byId("asked").hidden = Boolean(username());
  byId("sign-in").href = signInPath();
  if (username()) (await import("./boards.js")).start();
}

let shown = username();
addEventListener("session", () => {
  if (shown !== username()) show();
  shown = username();
});
show();
