// @ts-check
/** /: the game to continue, the player's statistics, the remaining time for today's deal, and the newest wins. */

import { read } from "./api.js";
import { gameKey, local, username } from "./http.js";
import { byId, counted, fill, h, timeLeft } from "./page.js";
import { replayTable } from "./replay_table.js";

const day = JSON.parse(byId("data").textContent);
const hello = byId("hello").textContent;

/** The stored game that /play opens: the player's own, or else the signed-out one. */
function storedGame() {
  const text = [username() ?? "", ""].map((player) => local?.getItem(gameKey(player))).find(Boolean);
  try {
    return JSON.parse(text ?? "null");
  } catch {
    return null;
  }
}

/** Name the game to continue, unless it is finished or has no moves. @param {any} game */
async function offer(game) {
  const { journals } = await import("./journal.js");
  const moves = (game?.moves?.length ?? 0) / 3 - (game?.undos?.length ?? 0);
  const begun = moves > 0 && !(await journals()).known.includes(game.id);
  byId("play").textContent = begun ? `Continue, ${counted(moves, "move")} in` : "Play";
}

/** Show statistics, and keep them current. */
async function statistics() {
  const { knows, standing } = await import("./standing.js");
  const facts = () => standing(day.date);
  await fill(byId("standing"), facts);
  byId("statistics").hidden = !byId("standing").childNodes.length;
  if (!username()) return;
  const { follow, replace } = await import("./live.js");
  follow(
    async () => replace(byId("standing"), await facts()),
    ({ event }) => event === "progress",
    { knows },
  );
}

/** Greet the player, or introduce the game. Visitors who have never played here load nothing for it. */
function show() {
  const name = username();
  const game = storedGame();
  byId("hello").textContent = name ? `Welcome back, ${name}` : hello;
  byId("about").hidden = Boolean(name);
  byId("join").hidden = Boolean(name);
  byId("statistics").hidden = true;
  if (game) offer(game);
  if (game || name) statistics();
}

let shown = username();
addEventListener("session", () => {
  if (shown === username()) return;
  shown = username();
  show();
});
show();
timeLeft(byId("left"), day.date);
fill(byId("wins"), async () => {
  const wins = await read("/api/replays/recent?limit=5&verdict=verified");
  return [wins.length ? replayTable(wins, day.deal) : h("p", { class: "quiet" }, "No wins have been verified yet.")];
});
