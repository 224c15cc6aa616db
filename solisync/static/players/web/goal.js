// @ts-check
/** The goal of a day's deal: whether a game meets it, and how far it is. */

import { clock, counted } from "./page.js";

/** @typedef {{description: string, target_score: number | null, max_time_secs: number | null}} Goal */

const BONUS = 700_000; // points of a win in one second, which the desktop game adds

/** The points that count for a goal. @param {number} score @param {number} seconds */
const total = (score, seconds) => score + Math.floor(BONUS / Math.max(1, seconds));

/** Whether a win meets a goal. @param {Goal} goal @param {number} score @param {number} seconds */
export function meets({ target_score: target, max_time_secs: most }, score, seconds) {
  if (most !== null) return seconds <= most;
  return target === null || total(score, seconds) >= target;
}

/** A goal, and how far a game is from it, in words. @param {Goal} goal @param {{score: number, seconds: number, won: boolean}} game */
export function progressTo(goal, { score, seconds, won }) {
  const { description, target_score: target, max_time_secs: most } = goal;
  const met = meets(goal, score, seconds);
  let state = "";
  if (most === null && target === null) return description;
  if (won) state = met ? "goal met" : "missed, still counts as a win";
  else if (most !== null) state = met ? `${clock(most - seconds)} left` : "missed, a win still counts";
  else state = met ? "reached, now win" : `${counted(Number(target) - total(score, seconds), "point")} to go`;
  return `${description}: ${state}`;
}
