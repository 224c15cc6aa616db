// @ts-check
/** The goal of a day's deal. */

/** @typedef {{target_score: number | null, max_time_secs: number | null}} Goal */

const BONUS = 700_000; // points of a win in one second, which the desktop game adds

/** The points that count for a goal, with the time bonus. @param {number} score @param {number} seconds */
export const counting = (score, seconds) => score + Math.floor(BONUS / Math.max(1, seconds));

/** Whether a win meets a goal. @param {Goal} goal @param {number} score @param {number} seconds */
export function meets({ target_score: target, max_time_secs: most }, score, seconds) {
  if (most !== null) return seconds <= most;
  return target === null || counting(score, seconds) >= target;
}
