// @ts-check
/** /: the game to continue, the player's statistics, the remaining time for today's deal, and the newest wins. */

import { read } from "./api.js";
import { drawDeals } from "./faces.js";
import { gameKey, local, username } from "./http.js";
import { byId, fill, h, timeLeft } from "./page.js";
import { replayTable } from "./replay_table.js";
import { hasPlayed, hiddenDeals } from "./solutions.js";

const WINS = 5;

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
  if (!begun) return;
  byId("play").textContent = "Resume game";
  byId("play").setAttribute("href", "/play");
}

/** Say whether the player has won today's deal, and the streak. */
async function days() {
  const { ownDays } = await import("./own_days.js");
  const { won, streak } = await ownDays();
  const parts = [won.has(day.date) && "✓ Won today", streak > 0 && `${streak}-day streak`];
  byId("own").textContent = parts.filter(Boolean).join(" · ");
}

/** Show statistics, and keep them current. */
async function statistics() {
  const { standing } = await import("./standing.js");
  const { knows } = await import("./pulled.js");
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
  byId("play").textContent = name ? "Play today’s deal" : "Play";
  byId("play").setAttribute("href", name ? `/play?daily=${day.date}` : "/play");
  if (game) offer(game);
  if (!hasPlayed()) return;
  statistics();
  days().catch(() => {}); // an error only leaves out the streak
}

let shown = username();
addEventListener("session", () => {
  if (shown === username()) return;
  shown = username();
  show();
});
drawDeals();
show();
timeLeft(byId("left"), day.date);
fill(byId("wins"), async () => {
  const [wins, hidden] = await Promise.all([
    read("/api/replays/recent?limit=50&verdict=verified"),
    hiddenDeals(day.deals),
  ]);
  const shown = wins.filter((/** @type {any} */ { deal }) => !hidden.has(deal)).slice(0, WINS);
  return [shown.length ? replayTable(shown, day.deal) : h("p", { class: "quiet" }, "No other wins yet.")];
});
