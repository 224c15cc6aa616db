// @ts-check
/** The player's statistics and progress: of the account, or of the games that were played signed out in this browser. */

import { ask } from "./api.js";
import { inTime } from "./goal.js";
import { username } from "./http.js";
import { GUEST, journalOf, journals, take } from "./journal.js";
import { exclusively } from "./locks.js";
import { clock, counted, fill, h, score } from "./page.js";
import { statsOf } from "./progress.js";

const DAY_MS = 86_400_000;
const NEVER = 1e9; // seconds; without a win, the fastest win is far above this

/** @type {string | null | undefined} */
let revision;

/** Whether a revision of the player's progress was read last. @param {string | null} other */
export const knows = (other) => other === revision;

/**
 * Pull the player's progress. The journal accepts the answer too, because it adds new games to the last answer. While a
 * push has no answer, or without a connection, return the last answer instead.
 */
const pull = () =>
  exclusively("solisync.outbox", async () => {
    const name = username() ?? "";
    const journal = (await journals()).of[name];
    if (journal?.sent && journal.base) return journal.base;
    const answer = await ask("GET", "/api/sync/pull", { as: name }).catch((error) => {
      if (error.status === 0 && journal?.base) return null;
      throw error;
    });
    if (!answer) return journal.base;
    revision = /"(.*)"/.exec(answer.headers.get("ETag") ?? "")?.[1] ?? null;
    const { merged } = await answer.json();
    if (journal?.base) await take(name, merged, journal);
    return merged;
  });

/** The number of days in a row whose deals were won; 0 if the next one can no longer be won in time. @param {any} progress */
function streakOf({ daily_challenge_last_completed: last, daily_challenge_streak: streak }) {
  return last && inTime(last, Date.now() - DAY_MS) ? streak : 0;
}

/** The dates of the newest 365 deals of the day that the player has won, and the daily streak. */
export async function wonDays() {
  const { progress } = await pull();
  const days = /** @type {string[]} */ ([
    progress.daily_challenge_last_completed,
    ...(progress.daily_challenge_history ?? []),
  ]);
  return { days, streak: streakOf(progress) };
}

/** @param {any} stats @returns {[string, string][]} */
function gamesOf(stats) {
  const { games_played: played, games_won: won, fastest_win_seconds: fastest } = stats;
  return [
    ["Games won", `${score(won)} of ${score(played)}`],
    ["Share won", `${Math.round((100 * won) / played)} %`],
    ["Winning streak", `${score(stats.win_streak_current)}, best ${score(stats.win_streak_best)}`],
    ["Best score", won ? score(stats.best_single_score) : "–"],
    ["Fastest win", fastest < NEVER ? clock(fastest) : "–"],
    ["Average win", won ? clock(stats.avg_time_seconds) : "–"],
    ["Won drawing one", score(stats.draw_one_wins)],
    ["Won drawing three", score(stats.draw_three_wins)],
  ];
}

/** @param {any} answer @param {string} today @returns {[string, string][]} */
function progressOf({ progress, achievements }, today) {
  const { daily_challenge_last_completed: last, daily_challenge_history: history = [] } = progress;
  return [
    ["Level", score(progress.level)],
    ["Achievements", score(achievements.filter((/** @type {any} */ each) => each.unlocked).length)],
    ["Today’s deal", last === today || history.includes(today) ? "Won" : "Not won yet"],
    ["Daily streak", counted(streakOf(progress), "day")],
  ];
}

/** The player's statistics as facts; nothing if this browser has no signed-out games. @param {string} today the date, in UTC */
export async function standing(today) {
  const name = username();
  const answer = name && (await pull());
  const stats = statsOf(answer, journalOf(await journals(), name ?? GUEST).games);
  const none = h(
    "p",
    {},
    "No games yet. ",
    h("a", { href: "/play" }, "Play here"),
    ", or in a game where you are signed in, and your progress appears here.",
  );
  if (!stats.games_played) return name ? [none] : [];
  const facts = [...gamesOf(stats), ...(answer ? progressOf(answer, today) : [])];
  return [
    h("dl", { class: "facts" }, ...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
  ];
}

/** Show the statistics of today in `place`. @param {HTMLElement} place */
export const show = (place) =>
  fill(place, async () => {
    const facts = await standing(new Date().toISOString().slice(0, 10));
    return facts.length ? facts : [h("p", {}, "No finished games yet.")];
  });
