// @ts-check
/** The days around a day on /daily, with a mark on those that the player has won, and a calendar for all others. */

import { username } from "./http.js";
import { byId, h } from "./page.js";

const DAY_MS = 86_400_000;
const CHIPS = 7;

/** @param {number} time @param {Intl.DateTimeFormatOptions} options */
const told = (time, options) => new Date(time).toLocaleDateString("en-GB", { ...options, timeZone: "UTC" });

/** @param {string} date the day of the page */
export async function showWeek(date) {
  const today = new Date().toISOString().slice(0, 10);
  const last = Math.min(Date.parse(date) + 3 * DAY_MS, Date.parse(today));
  const days = Array.from({ length: CHIPS }, (_, index) => last - (CHIPS - 1 - index) * DAY_MS);
  const chips = new Map(days.map((time) => {
    const day = new Date(time).toISOString().slice(0, 10);
    const parts = [h("span", { "aria-hidden": "true" }, told(time, { weekday: "short" })), h("b", {}, told(time, { day: "numeric" })), h("span", { class: "unseen" }, told(time, { month: "long" }))];
    return [day, h("a", { href: `/daily/${day}`, class: "chip", "aria-current": day === date && "page" }, ...parts)];
  }));
  const calendar = h("input", { type: "date", max: today, value: date, "aria-label": "Another day", change: () => {
    if (calendar.value && calendar.value !== date && calendar.validity.valid) location.assign(`/daily/${calendar.value}`);
  } });
  byId("week").replaceChildren(...chips.values(), calendar);
  if (!username()) return;
  const { wonDays } = await import("./standing.js");
  for (const day of await wonDays()) {
    chips.get(day)?.classList.add("won");
    chips.get(day)?.append(h("span", { class: "unseen" }, ", won"));
  }
}
