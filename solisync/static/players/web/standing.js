// @ts-check
/** The player's statistics and progress: of the account, or of the games that were played signed out in this browser. */

import { username } from "./http.js";
import { DAY_MS } from "./device_journal.js";
import { GUEST, journalOf, journals, localTime } from "./journal.js";
import { daysIn } from "./own_days.js";
import { clock, counted, fill, h, score } from "./page.js";
import { pull } from "./pulled.js";
import { statsOf } from "./shown.js";

const GOALS = "Goals of this week";
const NEVER = 1e9; // seconds; without a win, the fastest win is far above this

/** @param {any} stats @returns {[string, string][]} */
function gamesOf(stats) {
  const { games_played: played, games_won: won, fastest_win_seconds: fastest } = stats;
  return [
    ["Games won", `${score(won)} of ${score(played)}`],
    ["Win rate", `${Math.round((100 * won) / played)} %`],
    ["Win streak", `${score(stats.win_streak_current)}, best ${score(stats.win_streak_best)}`],
    ["Best score", won ? score(stats.best_single_score) : "–"],
    ["Fastest win", fastest < NEVER ? clock(fastest) : "–"],
    ["Average win", won ? clock(stats.avg_time_seconds) : "–"],
    ["Won drawing one", score(stats.draw_one_wins)],
    ["Won drawing three", score(stats.draw_three_wins)],
  ];
}

/** The first experience points of a level. @param {number} level */
const pointsOf = (level) => (level < 10 ? 500 * level : 5000 + 1000 * (level - 10));

/** @param {any} progress @param {import("./own_days.js").Days} days @param {string} today @returns {[string, string][]} */
function daysOf(progress, { won, streak }, today) {
  const longest = Math.max(progress?.daily_challenge_longest_streak ?? 0, streak);
  return [
    ["Today’s deal", won.has(today) ? "Won" : "Not won yet"],
    ["Daily streak", `${counted(streak, "day")}${longest > streak ? `, longest ${longest}` : ""}`],
  ];
}

/** The goals of each week: name, number of wins, and text. @type {[string, number, string][]} */
const WEEKLY = [
  ["weekly_5_wins", 5, "wins"],
  ["weekly_3_no_undo", 3, "wins without undo"],
  ["weekly_3_fast", 3, "wins within 3 minutes"],
  ["weekly_1_under_five", 1, "win within 5 minutes"],
  ["weekly_draw_three", 1, "win drawing three"],
];

/** The ISO week of a local date, as 2026-W47. @param {string} date */
function weekOf(date) {
  const day = new Date(`${date.slice(0, 10)}T00:00:00Z`);
  day.setUTCDate(day.getUTCDate() + 4 - (day.getUTCDay() || 7)); // the Thursday of a week decides its year
  const year = day.getUTCFullYear();
  const week = 1 + Math.floor((day.getTime() - Date.UTC(year, 0, 1)) / (7 * DAY_MS));
  return `${year}-W${String(week).padStart(2, "0")}`;
}

/** @param {any} progress @returns {[string, string][]} */
function progressOf({ level, total_xp: points, weekly_goal_week_iso: week, weekly_goal_progress: goals }) {
  const done = week === weekOf(localTime(new Date())) ? goals : {};
  const parts = WEEKLY.map(([name, wins, text]) => {
    const met = Math.min(done[name] ?? 0, wins);
    return `${met === wins ? "✓ " : ""}${met} of ${wins} ${text}`;
  });
  return [
    ["Level", `${score(level)}, ${score(Math.max(pointsOf(level + 1) - points, 0))} points to the next`],
    [GOALS, parts.join(" · ")],
  ];
}

/** The player's statistics as facts; nothing if this browser has no signed-out games. @param {string} today the date, in UTC */
export async function standing(today) {
  const name = username();
  const answer = name && (await pull());
  const { games } = journalOf(await journals(), name ?? GUEST);
  const stats = statsOf(
    answer,
    games.map(({ game }) => game),
  );
  const none = h(
    "p",
    {},
    "No games yet. ",
    h("a", { href: "/play" }, "Play here"),
    ", or in a game where you are signed in, and your progress appears here.",
  );
  if (!stats.games_played) return name ? [none] : [];
  const days = daysIn({ base: answer || null, games });
  const progress = answer && answer.progress;
  const facts = [...daysOf(progress, days, today), ...gamesOf(stats), ...(progress ? progressOf(progress) : [])];
  return [
    h(
      "dl",
      { class: "facts" },
      ...facts.map(([name, value]) =>
        h("div", { class: name === GOALS && "whole" }, h("dt", {}, name), h("dd", {}, value)),
      ),
    ),
  ];
}

/** Show the statistics of today in `place`. @param {HTMLElement} place */
export const show = (place) =>
  fill(place, async () => {
    const facts = await standing(new Date().toISOString().slice(0, 10));
    return facts.length ? facts : [h("p", {}, "No finished games yet.")];
  });
