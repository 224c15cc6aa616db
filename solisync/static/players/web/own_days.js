// @ts-check
/** The player's own wins of days' deals, for /daily: of the account, or of this browser while signed out. */

import { readOwn } from "./api.js";
import { inTime } from "./goal.js";
import { username } from "./http.js";

/** @typedef {{score: number, seconds: number}} Win */

/** The best wins that counted for a day, of the days with such wins. @param {Record<string, any[]>} games by day @returns {[string, Win][]} */
const best = (games) =>
  Object.entries(games).flatMap(([day, wins]) => {
    const counted = wins.filter(({ at }) => inTime(day, at));
    return counted.length ? [[day, counted.reduce((one, other) => (other.score > one.score ? other : one))]] : [];
  });

/**
 * The won days among some, and the daily streak of the account. A win is null if its game isn't among the newest 50.
 * @param {Record<string, string>} week the deals of the days @returns {Promise<{wins: Map<string, Win | null>, streak: number}>}
 */
export async function ownDays(week) {
  const games = /** @type {Record<string, any[]>} */ ({});
  if (!username()) {
    const { GUEST, journalOf, journals } = await import("./journal.js");
    for (const { day, won, score, seconds, at } of journalOf(await journals(), GUEST).games) {
      if (won && day) (games[day.date] ??= []).push({ score, seconds, at });
    }
    return { wins: new Map(best(games)), streak: 0 };
  }
  const { wonDays } = await import("./standing.js");
  const [{ replays }, { days, streak }] = await Promise.all([readOwn("/api/me/replays?limit=50"), wonDays()]);
  for (const day of Object.keys(week)) {
    games[day] = replays
      .filter(
        (/** @type {any} */ { deal, verdict, mode }) => deal === week[day] && verdict === "verified" && mode !== "Zen",
      )
      .map((/** @type {any} */ { final_score, time_seconds, received_at }) => ({
        score: final_score,
        seconds: time_seconds,
        at: received_at,
      }));
  }
  const known = days.filter((day) => day in week).map((day) => /** @type {[string, null]} */ ([day, null]));
  return { wins: new Map([...known, ...best(games)]), streak };
}
