// @ts-check
/** The days whose deals the player has won, and the streak: of the account, or of this browser while signed out. */

import { readOwn } from "./api.js";
import { dayAfter } from "./days.js";
import { inTime } from "./goal.js";
import { keep, local, username } from "./http.js";
import { GUEST, journalOf, journals } from "./journal.js";
import { showStreak, STREAK } from "./page.js";

/**
 * @typedef {{score: number, seconds: number}} Win
 * @typedef {{won: Set<string>, later: Set<string>, streak: number}} Days `later`: won when a win no longer counted
 */

const DAY_MS = 86_400_000;

/** The number of days in a row up to a day. @param {Set<string>} won @param {string} day @param {string} [end] the day to stop at */
function runTo(won, day, end) {
  let run = 0;
  for (let at = day; won.has(at) && at !== end; at = dayAfter(at, -1)) run += 1;
  return run;
}

/** The streak up to the newest day. The last answer has the whole streak, but not all of its days. @param {Set<string>} won @param {string} newest @param {any} progress */
function streakOf(won, newest, { daily_challenge_last_completed: last, daily_challenge_streak: streak = 0 }) {
  const since = runTo(won, newest, last);
  const joins = last && dayAfter(newest, -since) === last;
  return since + (joins ? Math.max(streak, runTo(won, last)) : 0);
}

/** The days of a journal: of its last answer, and of games that are not sent yet. @param {{base: any, games: any[]}} journal @returns {Days} */
export function daysIn({ base, games }) {
  const progress = base?.progress ?? {};
  const { daily_challenge_last_completed: last, daily_challenge_history: history, daily_won_later: late } = progress;
  const won = new Set(/** @type {string[]} */ ([...(history ?? []), ...(last ? [last] : [])]));
  const later = new Set(/** @type {string[]} */ (late ?? []));
  for (const { won: isWon, day, at } of games) if (isWon && day) (inTime(day.date, at) ? won : later).add(day.date);
  const newest = [...won].sort().at(-1) ?? "";
  const streak = newest && streakOf(won, newest, progress);
  keep(local, STREAK, `${streak || 0} ${newest} ${username() ?? GUEST}`);
  showStreak();
  return { won, later, streak: streak && inTime(newest, Date.now() - DAY_MS) ? streak : 0 }; // the next day can be won
}

/** The days as this browser knows them. A signed-in player's are asked for if the browser has none. */
export async function ownDays() {
  const journal = journalOf(await journals(), username() ?? GUEST);
  if (!username()) return daysIn(journal);
  const { pull } = await import("./pulled.js");
  const base = await pull().catch(() => journal.base);
  return daysIn({ ...journal, base });
}

/** The best win of each of these days in time, among the newest 50 games. @param {Record<string, string>} deals by day @returns {Promise<Map<string, Win>>} */
export async function bestWins(deals) {
  const wins = username() ? await winsOfAccount(deals) : await winsHere();
  const best = new Map();
  for (const { day, at, score, seconds } of wins)
    if (inTime(day, at) && !(best.get(day)?.score >= score)) best.set(day, { score, seconds });
  return best;
}

async function winsHere() {
  const { games } = journalOf(await journals(), GUEST);
  return games.flatMap(({ won, day, at, score, seconds }) =>
    won && day ? [{ day: day.date, at, score, seconds }] : [],
  );
}

/** @param {Record<string, string>} deals by day */
async function winsOfAccount(deals) {
  const { replays } = await readOwn("/api/me/replays?limit=50");
  return Object.entries(deals).flatMap(([day, deal]) =>
    replays
      .filter((/** @type {any} */ game) => game.deal === deal && game.verdict === "verified" && game.mode !== "Zen")
      .map((/** @type {any} */ game) => ({
        day,
        at: game.received_at,
        score: game.final_score,
        seconds: game.time_seconds,
      })),
  );
}
