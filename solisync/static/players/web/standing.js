// @ts-check
/** The player's progress on the server, for / and /account. */

import { ask } from "./api.js";
import { username } from "./http.js";
import { journals, take } from "./journal.js";
import { exclusively } from "./locks.js";
import { clock, counted, h, score } from "./page.js";

const NEVER = 1e9; // seconds; without a win, the fastest win is far above this

/** @type {string | null | undefined} */
let revision;

/** Whether a revision of the player's progress was read last. @param {string | null} other */
export const knows = (other) => other === revision;

/**
 * Pull the player's progress. The journal accepts the answer too, because it adds new games to the last answer. While a
 * push has no answer, return the last answer instead.
 */
const pull = () => exclusively("solisync.outbox", async () => {
  const name = username() ?? "";
  const journal = (await journals()).of[name];
  if (journal?.sent && journal.base) return journal.base;
  const answer = await ask("GET", "/api/sync/pull", { as: name });
  revision = /"(.*)"/.exec(answer.headers.get("ETag") ?? "")?.[1] ?? null;
  const { merged } = await answer.json();
  if (journal?.base) await take(name, merged, journal);
  return merged;
});

/** The dates of the newest 365 deals of the day that the player has won. @returns {Promise<string[]>} */
export async function wonDays() {
  const { progress } = await pull();
  return [progress.daily_challenge_last_completed, ...(progress.daily_challenge_history ?? [])];
}

/** The player's progress as facts. @param {string} today the date, in UTC */
export async function standing(today) {
  const { stats, progress, achievements } = await pull();
  if (!stats.games_played) return [h("p", {}, "No games yet. ", h("a", { href: "/play" }, "Play here"), ", or in a game where you are signed in, and your progress appears here.")];
  const { daily_challenge_last_completed: last, daily_challenge_history: history = [] } = progress;
  const unlocked = achievements.filter((/** @type {any} */ each) => each.unlocked).length;
  const facts = /** @type {[string, string][]} */ ([
    ["Games won", `${score(stats.games_won)} of ${score(stats.games_played)}`],
    ["Best score", score(stats.best_single_score)],
    ["Fastest win", stats.fastest_win_seconds < NEVER ? clock(stats.fastest_win_seconds) : "–"],
    ["Winning streak", `${score(stats.win_streak_current)}, best ${score(stats.win_streak_best)}`],
    ["Level", score(progress.level)],
    ["Achievements", score(unlocked)],
    ["Today’s deal", last === today || history.includes(today) ? "Won" : "Not won yet"],
    ["Daily streak", counted(progress.daily_challenge_streak, "day")],
  ]);
  return [h("dl", { class: "facts" }, ...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))))];
}
