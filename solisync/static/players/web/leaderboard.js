// @ts-check
/** /leaderboard: asks visitors to sign in. verified_board.js shows the boards to signed-in players. */

import { username } from "./http.js";
import { byId, signInPath } from "./page.js";

async function show() {
  byId("boards").hidden = !username();
  byId("asked").hidden = Boolean(username());
  byId("sign-in").href = signInPath();
  if (username()) (await import("./verified_board.js")).start();
}

let shown = username();
addEventListener("session", () => {
  if (shown !== username()) show();
  shown = username();
});
show();
