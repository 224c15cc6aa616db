// @ts-check
/** Sharing a win, without its solution. */

import { meets } from "./goal.js";
import { byId, clock, counted, h, tell } from "./page.js";

/** The result in one line: the site, the day, time, points, whether the goal is met, and the streak. @param {import("./game.js").Game} game @param {number} streak */
function resultOf({ day, seconds, score }, streak) {
  const date =
    day && new Date(day.date).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
  const hasGoal = day && (day.target_score !== null || day.max_time_secs !== null);
  const met = hasGoal && meets(day, score, seconds) ? " ✓" : "";
  const row = day && streak > 0 && `${streak}-day streak`;
  const site = document.querySelector(".brand span")?.textContent;
  return [site, date, clock(seconds), counted(score, "point") + met, row].filter(Boolean).join(" · ");
}

/** Share a win with the device's own dialog, or else copy it. @param {import("./game.js").Game} game @param {string} path of the deal, or of the replay of a deal that is no day's @param {number} streak */
export async function share(game, path, streak) {
  const text = resultOf(game, streak);
  const url = new URL(path, location.href).href;
  try {
    if (navigator.share) return await navigator.share({ text, url });
    await navigator.clipboard.writeText(`${text} ${url}`);
    tell("Result and link copied.");
  } catch (error) {
    if (error.name === "AbortError") return; // the player has cancelled
    const field = h("input", { value: `${text} ${url}`, readonly: true, "aria-label": "Result and link" }); // plain HTTP has no clipboard
    byId("won-next").append(field);
    field.select();
  }
}
