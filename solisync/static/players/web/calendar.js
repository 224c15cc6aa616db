// @ts-check
/** A month of days as a table: days won in time, days won later, and links to their deals. */

import { h } from "./page.js";

const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const STEPS = /** @type {Record<string, number>} */ ({ ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 });

/** @typedef {{won: Set<string>, later: Set<string>}} Marks */

/** @param {string} date @param {Intl.DateTimeFormatOptions} options */
const told = (date, options) => new Date(date).toLocaleDateString("en-GB", { ...options, timeZone: "UTC" });

/** @param {string} month as 2026-11 @param {number} by */
function monthAfter(month, by) {
  const [year, number] = month.split("-").map(Number);
  const months = 12 * year + number - 1 + by;
  return `${String(Math.floor(months / 12)).padStart(4, "0")}-${String((months % 12) + 1).padStart(2, "0")}`;
}

/** The days of a month, in weeks from Monday; null before the first one. @param {string} month */
function weeksOf(month) {
  const first = new Date(`${month}-01`);
  const days = [];
  for (let at = first; at.toISOString().startsWith(month); at = new Date(at.getTime() + 86_400_000))
    days.push(at.toISOString().slice(0, 10));
  const cells = [...Array((first.getUTCDay() + 6) % 7).fill(null), ...days];
  return Array.from({ length: Math.ceil(cells.length / 7) }, (_, week) => cells.slice(7 * week, 7 * week + 7));
}

/** Show the month of a day in an element. @param {HTMLElement} place @param {string} shown the day of the page @param {string} today @param {Marks} marks */
export function showMonth(place, shown, today, { won, later }) {
  /** @param {string | null} date */
  function cell(date) {
    const number = date && String(Number(date.slice(8)));
    if (!date || date > today) return h("td", {}, number);
    const [sign, word] = won.has(date) ? ["●", ", won"] : later.has(date) ? ["○", ", won later"] : ["", ""];
    const link = h(
      "a",
      {
        href: `/daily/${date}`,
        "aria-current": date === shown ? "page" : date === today && "date",
        "aria-label": `${told(date, { day: "numeric", month: "long" })}${word}`,
        "data-date": date,
      },
      number,
      h("i", {}, sign),
    );
    return h("td", {}, link);
  }

  /** @param {string} month @param {number} [pressed] the button that gets the focus */
  function show(month, pressed) {
    const name = told(`${month}-01`, { month: "long", year: "numeric" });
    const turn = (/** @type {string} */ label, /** @type {number} */ by, /** @type {boolean} */ ends) =>
      h(
        "button",
        { type: "button", disabled: ends, click: () => show(monthAfter(month, by), by) },
        h("span", { "aria-hidden": "true" }, by < 0 ? "‹" : "›"),
        h("span", { class: "unseen" }, label),
      );
    const back = turn("Month before", -1, month <= "0001-01");
    const forth = turn("Month after", 1, month >= today.slice(0, 7));
    const heads = DAYS.map((day) =>
      h(
        "th",
        { role: "columnheader", scope: "col" },
        h("span", { "aria-hidden": "true" }, day.slice(0, 2)),
        h("span", { class: "unseen" }, day),
      ),
    );
    const table = h(
      "table",
      { class: "month", keydown: move },
      h("caption", { class: "unseen" }, name),
      h("thead", {}, h("tr", {}, ...heads)),
      h("tbody", {}, ...weeksOf(month).map((week) => h("tr", {}, ...week.map(cell)))),
    );
    const months = h("div", { class: "row months" }, back, h("b", { role: pressed && "status" }, name), forth);
    place.replaceChildren(months, table, h("p", { class: "quiet" }, "● won on the day · ○ won later"));
    const focused = pressed && (pressed < 0 ? back : forth);
    if (focused) (focused.disabled ? (pressed < 0 ? forth : back) : focused).focus();
  }

  /** @param {KeyboardEvent} event */
  function move(event) {
    const link = event.target instanceof Element && event.target.closest("a");
    const step = STEPS[event.key];
    if (!link || !step) return;
    const links = [...place.querySelectorAll("a")];
    const next = links[links.indexOf(link) + step];
    event.preventDefault();
    next?.focus();
  }

  show(shown.slice(0, 7));
}
