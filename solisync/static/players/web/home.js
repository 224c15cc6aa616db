// @ts-check
/** /: the remaining time for today's deal, the newest wins, and the progress of a signed-in player. */

import { read } from "./api.js";
import { username } from "./http.js";
import { byId, fill, h, timeLeft } from "./page.js";
import { replayTable } from "./replay_table.js";

const day = JSON.parse(byId("data").textContent);
const pitch = [...byId("pitch").childNodes];

/** Show the progress of a signed-in player, or else the introduction. */
async function show() {
  const name = username();
  if (!name) return byId("pitch").replaceChildren(...pitch);
  const facts = h("div", { id: "standing" });
  byId("pitch").replaceChildren(h("h1", {}, `Welcome back, ${name}`), facts,
    h("p", { class: "row" }, h("a", { class: "button main", href: "/account" }, "Your games"), h("a", { class: "button", href: "/replays" }, "Watch a game")));
  await fill(facts, async () => (await import("./standing.js")).standing(day.date));
  const [{ follow, replace }, { knows, standing }] = await Promise.all([import("./live.js"), import("./standing.js")]);
  follow(async () => replace(facts, await standing(day.date)), ({ event }) => event === "progress", { knows });
}

let shown = username();
addEventListener("session", () => {
  if (shown === username()) return;
  shown = username();
  show();
});
if (shown) show();
timeLeft(byId("left"), day.date);
fill(byId("wins"), async () => {
  const wins = await read("/api/replays/recent?limit=5&verdict=verified");
  return [wins.length ? replayTable(wins, day.deal) : h("p", { class: "quiet" }, "No wins have been verified yet.")];
});
