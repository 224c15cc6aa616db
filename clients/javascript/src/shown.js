// @ts-check
/** What a player sees before the service has counted: the last answer, with the statistics and days of unsent games. */

import { DAY_MS, isUnsent } from "./device_journal.js";

/**
 * @typedef {import("./device_journal.js").Player} Player
 * @typedef {import("./device_journal.js").Entry} Entry
 */

/** The statistics before the first game. */
export const NO_GAMES = {
  games_played: 0,
  games_won: 0,
  games_lost: 0,
  win_streak_current: 0,
  win_streak_best: 0,
  avg_time_seconds: 0,
  fastest_win_seconds: Infinity,
  lifetime_score: 0,
  best_single_score: 0,
  draw_one_wins: 0,
  draw_three_wins: 0,
};
/** The progress before the first game, as far as every push has it. */
export const NO_DAYS = {
  total_xp: 0,
  level: 0,
  daily_challenge_last_completed: null,
  daily_challenge_streak: 0,
  weekly_goal_progress: {},
  unlocked_card_backs: [0],
  unlocked_backgrounds: [0],
};
/** @param {any} stats @param {import("./device_journal.js").Game} game */
function count(stats, { won, score = 0, seconds = 0, draw_mode: draw, mode }) {
  stats.games_played += 1;
  if (!won) {
    stats.games_lost += 1;
    stats.win_streak_current = 0;
    return;
  }
  const best = (/** @type {string} */ name) => (stats[name] = Math.max(stats[name] ?? 0, score));
  const least = (/** @type {string} */ name) => seconds && (stats[name] = Math.min(stats[name] || Infinity, seconds));
  stats.avg_time_seconds = Math.floor((stats.avg_time_seconds * stats.games_won + seconds) / (stats.games_won + 1));
  stats.games_won += 1;
  stats.win_streak_current += 1;
  stats.win_streak_best = Math.max(stats.win_streak_best, stats.win_streak_current);
  stats.lifetime_score += score;
  stats[draw === "DrawThree" ? "draw_three_wins" : "draw_one_wins"] += 1;
  best("best_single_score");
  least("fastest_win_seconds");
  if (!["Classic", "Zen", "Challenge"].includes(mode)) return;
  best(`${mode.toLowerCase()}_best_score`);
  least(`${mode.toLowerCase()}_fastest_win_seconds`);
}

/** The statistics of an answer, if any, with these games added. @param {any} latest @param {import("./device_journal.js").Game[]} games */
export function statsOf(latest, games) {
  const stats = { ...NO_GAMES, ...latest?.stats };
  for (const game of games) count(stats, game);
  return stats;
}

/** @param {any} progress @param {string} day @param {any} game */
function winDay(progress, day, { ended_at: end }) {
  if (Date.parse(end) >= Date.parse(day) + 1.5 * DAY_MS) return; // a day ends for its deal after 36 hours
  const { daily_challenge_last_completed: last, daily_challenge_history: history = [] } = progress;
  if (last === day || history.includes(day)) return;
  progress.daily_challenge_history = [...history, day].sort();
  if (last && day < last) return; // a late win doesn't end a streak
  const before = new Date(Date.parse(day) - DAY_MS).toISOString().slice(0, 10);
  progress.daily_challenge_streak = last === before ? progress.daily_challenge_streak + 1 : 1;
  progress.daily_challenge_last_completed = day;
}

/** The progress of a player, whose `latest` is null before the first answer. @param {Player} [player] @returns {any} */
export function shown({ latest, games } = Object({ games: [] })) {
  const entries = games.filter((/** @type {Entry} */ entry) => isUnsent(entry) || (!latest && entry.again));
  const progress = { ...NO_DAYS, ...latest?.progress };
  for (const { day, game } of entries) if (day && game.won && game.mode !== "Zen") winDay(progress, day, game);
  return {
    ...latest,
    stats: statsOf(
      latest,
      entries.map((/** @type {Entry} */ { game }) => game),
    ),
    progress,
  };
}
