// @ts-check
/** The deals of days: a day's challenge, and the days for which a win counts now. */

import { inTime } from "./goal.js";
import { json, send, unanswered } from "./http.js";

/** @typedef {{seed: string, day: import("./klondike_game.js").Day}} Challenge the deal and the goal of a day */

const DAY_MS = 86_400_000;
const OFFSETS = 36n; // the seed of a day is the number of its date, plus less than this

/** @param {number} time */
const dateOf = (time) => new Date(time).toISOString().slice(0, 10);

/** The day that is `days` days after a day. @param {string} date @param {number} days */
export const dayAfter = (date, days = 1) => dateOf(Date.parse(date) + days * DAY_MS);

/** The deal and the goal of a day, or of today. Those of other days are in the data of their pages. @param {string | null} [date] @returns {Promise<Challenge>} */
export async function challenge(date) {
  if (!date) {
    const { seed, ...day } = await json(await send("/api/daily-challenge"));
    return { seed: String(seed), day };
  }
  const page = await (await send(`/daily/${encodeURIComponent(date)}`)).text().catch(unanswered);
  const [, text] = / id="data">(.*?)<\/script>/s.exec(page) ?? unanswered();
  const { deal, goal, ...data } = JSON.parse(text);
  return { seed: deal, day: { date: data.date, ...goal } };
}

/** Today's challenge, and the one of the day before while a win still counts for it. */
export async function counting() {
  const today = await challenge();
  const before = dayAfter(today.day.date, -1);
  return inTime(before, Date.now()) ? [today, await challenge(before)] : [today];
}

/** The number of a date, from which the seed of its day is made. @param {string} date */
const numberOf = (date) =>
  [...date].reduce((sum, letter) => BigInt.asUintN(64, sum * 31n + BigInt(letter.charCodeAt(0))), 0n);

/** The day whose deal has this seed, if a win still counts for it; null for other deals, and without a connection. @param {string} seed @returns {Promise<Challenge["day"] | null>} */
export async function dayOf(seed) {
  // Other deals cost no request.
  const near = [-1, 0, 1].some((days) => {
    const offset = BigInt(seed) - numberOf(dayAfter(dateOf(Date.now()), days));
    return offset >= 0n && offset < OFFSETS;
  });
  if (!near) return null;
  const days = await counting().catch(() => /** @type {Challenge[]} */ ([]));
  return days.find((each) => each.seed === seed)?.day ?? null;
}
