// @ts-check
/** /daily and /daily/<date>: the goal of a day, its deal, and who won it. */

import { read, readOwn } from "./api.js";
import { username } from "./http.js";
import { byId, fill, h, signInPath } from "./page.js";

/** @typedef {{date: string, deal: string, goal: {description: string}}} Day */

/** @returns {Promise<Day>} */
async function today() {
  const { date, seed, ...goal } = await read("/api/daily-challenge");
  return { date, deal: String(seed), goal };
}

/** @param {string} date @param {number} by days */
const moved = (date, by) => new Date(Date.parse(date) + by * 86_400_000).toISOString().slice(0, 10);

/** @param {Day} day */
function show({ date, deal, goal }) {
  const long = new Date(date).toLocaleDateString("en-GB", { dateStyle: "full", timeZone: "UTC" });
  byId("title").textContent = `Deal of ${long}`;
  byId("earlier").href = `/daily/${moved(date, -1)}`;
  byId("earlier").hidden = date <= "0001-01-01";
  byId("later").href = `/daily/${moved(date, 1)}`;
  byId("later").hidden = moved(date, 1) > moved(new Date().toISOString().slice(0, 10), 0);
  return [h("p", { class: "goal" }, goal.description), h("p", {}, "Deal ", h("b", {}, deal))];
}

const given = JSON.parse(byId("data").textContent);
/** @type {Day} */
let day;

/** The entries of the day's board, which names players, for players. */
function winners() {
  if (!username()) {
    const why = "The board names the players who chose to be seen by other players, so you see it when you are signed in. ";
    return byId("winners").replaceChildren(h("p", {}, why, h("a", { href: signInPath() }, "Sign in")));
  }
  return fill(byId("winners"), async () => {
    const { entryTable } = await import("./entries.js");
    const { entries } = await readOwn(`/api/boards/daily/${day.date}?limit=100`);
    return [entries.length ? entryTable(entries, "Best score first") : h("p", { class: "quiet" }, "Nobody on the boards has won it so far.")];
  });
}

await fill(byId("day"), async () => {
  day = given.date ? given : await today();
  return show(day);
});
if (byId("day").querySelector(".goal")) winners();
