// @ts-check
/** Sharing a win, without its solution. */

import { meets } from "./goal.js";
import { byId, clock, counted, h, tell } from "./page.js";

/** Copy a text, or show it to be copied by hand: plain HTTP has no clipboard. @param {string} text @param {string} done @param {HTMLElement} place */
async function copy(text, done, place) {
  try {
    await navigator.clipboard.writeText(text);
    tell(done);
  } catch {
    const field = h("input", { value: text, readonly: true, "aria-label": "Link" });
    place.querySelector("input")?.remove();
    place.append(field);
    field.select();
  }
}

/** Copy the address of the deal. */
export const copyLink = () => copy(location.href, "Link copied.", byId("copy").parentElement);

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
  } catch (error) {
    if (error.name === "AbortError") return; // the player has cancelled
  }
  await copy(`${text} ${url}`, "Result and link copied.", byId("won-next"));
}
