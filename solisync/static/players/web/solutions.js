// @ts-check
/**
 * The deals whose wins this player doesn't see yet: a day's, while a win counts for it, unless the player has won it.
 * This is a courtesy of the pages; the API shows all replays.
 */

import { counting } from "./days.js";
import { DAY_HOURS, inTime } from "./goal.js";
import { dayKey, gameKey, local, username } from "./http.js";

/** Whether this browser may have games of the player. */
export const hasPlayed = () => Boolean(username() ?? local?.getItem(gameKey("")) ?? local?.getItem(dayKey("")));

/** Whether the account has a win of the deal, checked or not yet. @param {string} deal */
async function isUploaded(deal) {
  if (!username()) return false;
  const { readOwn } = await import("./api.js");
  const { replays } = await readOwn("/api/me/replays?limit=50").catch(() => ({ replays: [] }));
  const counts = ["verified", "pending"];
  return replays.some((/** @type {any} */ game) => game.deal === deal && counts.includes(game.verdict));
}

/** The deals to hide, each with its day. Without `deals` they are asked for. @param {Record<string, string>} [deals] by day @returns {Promise<Map<string, string>>} */
export async function hiddenDeals(deals) {
  const days = deals ?? Object.fromEntries((await counting().catch(() => [])).map(({ seed, day }) => [day.date, seed]));
  const hidden = new Map();
  const own = hasPlayed() ? await (await import("./own_days.js")).ownDays() : null;
  for (const [day, deal] of Object.entries(days)) {
    if (inTime(day, Date.now()) && !own?.won.has(day) && !(await isUploaded(deal))) hidden.set(deal, day);
  }
  return hidden;
}

/** The local time until which a win counts for a day, as "13:00 tomorrow". @param {string} day */
export function countsUntil(day) {
  const end = new Date(Date.parse(day) + DAY_HOURS * 3_600_000);
  const time = end.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  const on = (/** @type {number} */ days) =>
    end.toDateString() === new Date(Date.now() + days * 86_400_000).toDateString();
  const date = on(0) ? "today" : on(1) ? "tomorrow" : `on ${end.toLocaleDateString("en-GB", { weekday: "long" })}`;
  return `${time} ${date}`;
}
