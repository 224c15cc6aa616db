// @ts-check
/** The numbers of the last 30 days: a tile for each, with bars for the days and a table for screen readers. */

import { read } from "./api.js";
import { h, score, table } from "./page.js";

const DAYS = 30;
/** @type {[typeof import("./console_facts.js").NUMBERS[number], string][]} */
const NUMBERS = [
  ["registrations", "Registrations"],
  ["guests", "New guests"],
  ["active", "Active players"],
  ["replays", "Replays"],
  ["verified", "Verified"],
  ["refuted", "Refuted"],
  ["suspensions", "Suspensions"],
  ["deletions", "Deletions"],
];

/** @param {string} tag @param {Record<string, string | number>} attributes @param {(Node | string)[]} children */
function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** @param {number | null} count */
const shown = (count) => (count === null ? "–" : score(count));

/** @param {string} day */
const dayText = (day) => new Date(day).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

/** Bars of days, with each value as a tooltip. Days that were not counted have no bar. @param {{day: string, count: number | null}[]} days */
function bars(days) {
  const most = Math.max(1, ...days.map(({ count }) => count ?? 0));
  const bar = (/** @type {{day: string, count: number | null}} */ { day, count }, /** @type {number} */ place) => {
    const height = count ? Math.max(6, (100 * count) / most) : count === null ? 0 : 2;
    return svg(
      "rect",
      { x: place * 10 + 1, y: 100 - height, width: 8, height, class: place === days.length - 1 ? "today" : "" },
      svg("title", {}, `${dayText(day)}: ${shown(count)}`),
    );
  };
  return svg(
    "svg",
    { viewBox: `0 0 ${days.length * 10} 100`, preserveAspectRatio: "none", "aria-hidden": "true" },
    ...days.map(bar),
  );
}

/** The mean of the days that were counted, with a decimal if it is small. @param {(number | null)[]} counts */
function mean(counts) {
  const counted = counts.filter((count) => count !== null);
  if (!counted.length) return "–";
  const value = counted.reduce((sum, count) => sum + count, 0) / counted.length;
  return score(value < 10 ? Math.round(value * 10) / 10 : Math.round(value));
}

/** A number: yesterday, today so far, and the mean of the seven days before yesterday. @param {string} title @param {{day: string, count: number | null}[]} days */
function tile(title, days) {
  const counts = days.map(({ count }) => count);
  const [yesterday, today] = counts.slice(-2);
  return h(
    "figure",
    { class: "tile" },
    h("figcaption", {}, title),
    h("b", {}, shown(yesterday)),
    bars(days),
    h("small", {}, `week before ${mean(counts.slice(-9, -2))} a day · today ${shown(today)}`),
  );
}

/** The section with all numbers. */
export async function numbers() {
  const { days } = await read(`/numbers?days=${DAYS}`);
  const tiles = NUMBERS.map(([name, title]) =>
    tile(
      title,
      days.map((/** @type {any} */ each) => ({ day: each.day, count: each[name] })),
    ),
  );
  const rows = days
    .toReversed()
    .map((/** @type {any} */ each) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, dayText(each.day)),
        ...NUMBERS.map(([name]) => h("td", {}, shown(each[name]))),
      ),
    );
  return [
    h("h2", {}, "Yesterday, and the last 30 days"),
    h("div", { class: "tiles" }, ...tiles),
    h(
      "div",
      { class: "unseen" },
      table(`The last ${DAYS} days, in UTC`, ["Day", ...NUMBERS.map(([, title]) => title)], rows),
    ),
  ];
}
