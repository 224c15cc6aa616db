// @ts-check
/** The goal of a day's deal, and the time in which a win counts for its day. */

/** @typedef {{date: string, target_score: number | null, max_time_secs: number | null}} Goal */

const BONUS = 700_000; // points of a win in one second, which the desktop game adds
const BONUS_ENDS = "2027-01-01"; // from this day on, goals in points are for the score alone
/** From the start of a day, in UTC. */
export const DAY_HOURS = 36;

/** Whether the goal of a day counts the time bonus. @param {{date: string}} day */
export const hasBonus = ({ date }) => date < BONUS_ENDS;

/** The points that count for a goal. @param {Goal} goal @param {number} score @param {number} seconds */
export const counting = (goal, score, seconds) =>
  score + (hasBonus(goal) ? Math.floor(BONUS / Math.max(1, seconds)) : 0);

/** Whether a win meets a goal. @param {Goal} goal @param {number} score @param {number} seconds */
export function meets(goal, score, seconds) {
  const { target_score: target, max_time_secs: most } = goal;
  if (most !== null) return seconds <= most;
  return target === null || counting(goal, score, seconds) >= target;
}

/** Whether a win at this time counts for its day. @param {string} date @param {string | number} at */
export const inTime = (date, at) => new Date(at).getTime() < Date.parse(date) + DAY_HOURS * 3_600_000;
