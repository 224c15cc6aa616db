// @ts-check
/**
 * The effect of a finished game on a player's progress, by the rules of the desktop game. Only the desktop game grants
 * achievements; pushes from here send them back unchanged.
 */

import { inTime, meets } from "./goal.js";

/**
 * @typedef {{date: string, description: string, target_score: number | null, max_time_secs: number | null}} Day
 * @typedef {{id: string, at: string, won: boolean, score: number, seconds: number, draw: number, undone: boolean, day: Day | null}} Finished
 *   a finished game; `at` is the local time with its offset
 */

const NOBODY = "00000000-0000-0000-0000-000000000000"; // the nil UUID, because pages don't know the player's id
export const DAY_MS = 86_400_000;
const HISTORY_DAYS = 365;
const XP = { win: 50, fast: 50, fastSeconds: 120, fastLeast: 10, noUndo: 25, daily: 100, weekly: 75 };

/** The goals of a week: name, number of wins, and which wins count. @type {[string, number, (game: Finished) => boolean][]} */
const WEEKLY = [
  ["weekly_5_wins", 5, () => true],
  ["weekly_3_no_undo", 3, ({ undone }) => !undone],
  ["weekly_3_fast", 3, ({ seconds }) => seconds < 180],
  ["weekly_1_under_five", 1, ({ seconds }) => seconds < 300],
  ["weekly_draw_three", 1, ({ draw }) => draw === 3],
];

/** The fields of stats and progress that this script knows. The server keeps all others. */
const STATS = [
  "games_played",
  "games_won",
  "games_lost",
  "win_streak_current",
  "win_streak_best",
  "avg_time_seconds",
  "fastest_win_seconds",
  "lifetime_score",
  "best_single_score",
  "draw_one_wins",
  "draw_three_wins",
  "classic_best_score",
  "classic_fastest_win_seconds",
  "zen_best_score",
  "zen_fastest_win_seconds",
  "challenge_best_score",
  "challenge_fastest_win_seconds",
  "last_modified",
];
const PROGRESS = [
  "total_xp",
  "level",
  "daily_challenge_last_completed",
  "daily_challenge_streak",
  "daily_challenge_longest_streak",
  "daily_challenge_history",
  "weekly_goal_week_iso",
  "weekly_goal_progress",
  "unlocked_card_backs",
  "unlocked_backgrounds",
  "challenge_index",
  "last_modified",
];
/** The statistics before the first game. */
const NONE = { ...Object.fromEntries(STATS.map((name) => [name, 0])), fastest_win_seconds: Infinity };
const ACHIEVEMENT = ["id", "unlocked", "unlock_date", "reward_granted"];

/** @param {any} fields @param {string[]} names */
const only = (fields, names) =>
  Object.fromEntries(names.flatMap((name) => (name in fields ? [[name, fields[name]]] : [])));

/** The level for a number of experience points. @param {number} xp */
export const levelOf = (xp) => (xp < 5000 ? Math.floor(xp / 500) : 10 + Math.floor((xp - 5000) / 1000));

/** The ISO week of a local date, as 2026-W47. @param {string} date */
export function weekOf(date) {
  const day = new Date(`${date.slice(0, 10)}T00:00:00Z`);
  day.setUTCDate(day.getUTCDate() + 4 - (day.getUTCDay() || 7)); // the Thursday of a week decides its year
  const year = day.getUTCFullYear();
  const week = 1 + Math.floor((day.getTime() - Date.UTC(year, 0, 1)) / (7 * DAY_MS));
  return `${year}-W${String(week).padStart(2, "0")}`;
}

/** @param {any} stats @param {Finished} game */
function count(stats, { won, score, seconds, draw }) {
  stats.games_played += 1;
  if (!won) {
    stats.games_lost += 1;
    stats.win_streak_current = 0;
    return;
  }
  const least = (/** @type {number} */ best) => (best ? Math.min(best, seconds) : seconds); // 0 if there is none yet
  stats.avg_time_seconds = Math.floor((stats.avg_time_seconds * stats.games_won + seconds) / (stats.games_won + 1));
  stats.games_won += 1;
  stats.win_streak_current += 1;
  stats.win_streak_best = Math.max(stats.win_streak_best, stats.win_streak_current);
  stats.lifetime_score += score;
  stats.best_single_score = Math.max(stats.best_single_score, score);
  stats.classic_best_score = Math.max(stats.classic_best_score ?? 0, score);
  stats.fastest_win_seconds = Math.min(stats.fastest_win_seconds, seconds);
  stats.classic_fastest_win_seconds = least(stats.classic_fastest_win_seconds ?? 0);
  stats[draw === 3 ? "draw_three_wins" : "draw_one_wins"] += 1;
}

/** @param {any} progress @param {Finished} game */
function reward(progress, { seconds, undone }) {
  const fast =
    seconds < XP.fastSeconds ? Math.max(XP.fastLeast, XP.fast - Math.floor((40 * seconds) / XP.fastSeconds)) : 0;
  progress.total_xp += XP.win + fast + (undone ? 0 : XP.noUndo);
}

/** Count the first win of a day's deal, whether or not it meets the goal. @param {any} progress @param {Finished} game */
function winDaily(progress, { day, at, score, seconds }) {
  const history = progress.daily_challenge_history ?? [];
  const last = progress.daily_challenge_last_completed;
  if (!day || !inTime(day.date, at) || last === day.date || history.includes(day.date)) return;
  progress.daily_challenge_history = [...history, day.date].sort().slice(-HISTORY_DAYS);
  if (last && day.date < last) return; // a late win doesn't end a streak
  const before = new Date(Date.parse(day.date) - DAY_MS).toISOString().slice(0, 10);
  progress.daily_challenge_streak = last === before ? progress.daily_challenge_streak + 1 : 1;
  progress.daily_challenge_longest_streak = Math.max(
    progress.daily_challenge_longest_streak ?? 0,
    progress.daily_challenge_streak,
  );
  progress.daily_challenge_last_completed = day.date;
  if (meets(day, score, seconds)) progress.total_xp += XP.daily;
}

/** @param {any} progress @param {Finished} game */
function meetWeekly(progress, game) {
  const week = weekOf(game.at);
  const known = progress.weekly_goal_week_iso ?? "";
  if (week < known) return; // a late win
  if (week > known) progress.weekly_goal_progress = {};
  progress.weekly_goal_week_iso = week;
  for (const [name, times, counts] of WEEKLY) {
    const done = progress.weekly_goal_progress[name] ?? 0;
    if (!counts(game) || done >= times) continue;
    progress.weekly_goal_progress[name] = done + 1;
    if (done + 1 === times) progress.total_xp += XP.weekly;
  }
}

/** A player's statistics: those of the last answer, if any, with these games added. @param {any} base @param {Finished[]} games */
export function statsOf(base, games) {
  const stats = { ...NONE, ...base?.stats };
  for (const game of games) count(stats, game);
  return stats;
}

/** The payload to push: the last answer with these games added. @param {any} base @param {Finished[]} games @param {string} now */
export function withGames(base, games, now) {
  const { stats, progress, achievements } = structuredClone(base);
  for (const game of games) {
    count(stats, game);
    if (!game.won) continue;
    reward(progress, game);
    winDaily(progress, game);
    meetWeekly(progress, game);
  }
  progress.level = levelOf(progress.total_xp);
  return {
    user_id: NOBODY,
    stats: only({ ...stats, last_modified: now }, STATS),
    achievements: achievements.map((/** @type {any} */ record) => only(record, ACHIEVEMENT)),
    progress: only({ ...progress, last_modified: now }, PROGRESS),
    last_modified: now,
  };
}
