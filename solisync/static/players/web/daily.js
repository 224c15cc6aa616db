// @ts-check
/** /daily and /daily/<date>: the days around a day, its remaining time, its winners, and those who met the goal. */

import { readOwn } from "./api.js";
import { DAY_HOURS, inTime, meets } from "./goal.js";
import { gameKey, local, username } from "./http.js";
import { byId, clock, counted, fill, h, score, signInPath, timeLeft } from "./page.js";

/** @type {{date: string, deal: string, goal: {description: string, target_score: number | null, max_time_secs: number | null}, week: Record<string, string>}} */
const { date, goal, week } = JSON.parse(byId("data").textContent);
const winners = byId("winners");
const board = `/api/boards/daily/${date}`;
const path = `${board}?limit=100`;

/** @type {any[]} */
let entries = [];
/** @type {string | null} */
let next = null;
let onlyMet = false;

const hasGoal = goal.target_score !== null || goal.max_time_secs !== null;

/** Whether an entry met the goal, by its reported time. @param {any} entry */
const met = (entry) => hasGoal && meets({ date, ...goal }, entry.score, entry.time_seconds);

/** The winners that are loaded. @returns {Promise<Node[]>} */
async function parts() {
  byId("more-place").hidden = !next;
  const { entryTable } = await import("./entries.js");
  if (!entries.length) return [h("p", { class: "quiet" }, "No entries yet.")];
  const have = entries.filter(met);
  const only = h("input", { type: "checkbox", id: "only-met", change: () => ((onlyMet = only.checked), show()) });
  const show = async () => (await import("./live.js")).replace(winners, await parts());
  only.checked = onlyMet;
  const filter =
    have.length > 0 && h("label", { class: "check" }, only, `Only players who met the goal (${have.length})`);
  const shown = onlyMet ? have : entries;
  return [
    filter,
    entryTable(shown, "Best score first", { tag: (entry) => met(entry) && "Goal met, by reported time" }),
  ].filter((part) => part instanceof Node);
}

/** Load the board again, and show it if it has changed. */
async function refresh() {
  const { reloaded } = await import("./entries.js");
  const anew = await reloaded(
    (query) => `${board}?${new URLSearchParams(query)}`,
    () => entries,
    100,
  );
  if (!anew) return;
  ({ entries, next } = anew);
  if (!next && entries.length)
    byId("won").textContent =
      `${counted(entries.length, "player")} on the leaderboard won it. The best score is ${score(entries[0].score)}.`;
  const { replace } = await import("./live.js");
  replace(winners, await parts());
}

/** Load entries of the day's board. The API returns names only to signed-in players. @param {boolean} further */
function load(further) {
  if (!username()) {
    winners.replaceChildren(
      h(
        "p",
        {},
        h("a", { href: signInPath() }, "Sign in"),
        " to see their names. Only players who chose to appear on the leaderboard are listed.",
      ),
    );
    return;
  }
  return fill(further ? byId("more-refused") : winners, async () => {
    const page = await readOwn(further && next ? `${path}&after=${next}` : path);
    entries = [...(further ? entries : []), ...page.entries];
    next = page.next;
    if (!further) return parts();
    winners.replaceChildren(...(await parts()));
    return [];
  });
}

/** @param {number} time @param {Intl.DateTimeFormatOptions} options */
const told = (time, options) => new Date(time).toLocaleDateString("en-GB", { ...options, timeZone: "UTC" });

/** Show a week of days, and a calendar for other days. Return the days' chips. */
function showWeek() {
  const chips = new Map(
    Object.keys(week).map((day) => {
      const time = Date.parse(day);
      const parts = [
        h("span", { "aria-hidden": "true" }, told(time, { weekday: "short" })),
        h("b", {}, told(time, { day: "numeric" })),
        h("span", { class: "unseen" }, told(time, { month: "long" })),
        h("small", { "aria-hidden": "true" }),
      ];
      return [day, h("a", { href: `/daily/${day}`, class: "chip", "aria-current": day === date && "page" }, ...parts)];
    }),
  );
  const calendar = h("input", {
    type: "date",
    max: new Date().toISOString().slice(0, 10),
    value: date,
    "aria-label": "Another day",
    change: () => {
      if (calendar.value && calendar.value !== date && calendar.validity.valid)
        location.assign(`/daily/${calendar.value}`);
    },
  });
  byId("week").replaceChildren(...chips.values(), calendar);
  return chips;
}

/** Mark the days that the player has won, and show the own result of this day and the streak. @param {Map<string, HTMLElement>} chips */
async function showOwn(chips) {
  const { ownDays } = await import("./own_days.js");
  const { wins, streak } = await ownDays(week);
  for (const [day, win] of wins) {
    const chip = chips.get(day);
    chip?.classList.add("won");
    if (win) chip?.lastElementChild?.append(score(win.score));
    chip?.append(h("span", { class: "unseen" }, win ? `, won with ${counted(win.score, "point")}` : ", won"));
  }
  byId("own").textContent = [ownResult(wins.get(date)), streak > 0 && `Your daily streak: ${counted(streak, "day")}.`]
    .filter(Boolean)
    .join(" ");
}

/** @param {{score: number, seconds: number} | null | undefined} win */
function ownResult(win) {
  if (win)
    return `You won it with ${counted(win.score, "point")} in ${clock(win.seconds)}.${hasGoal ? goalResult(win) : ""}`;
  if (win === null) return "You won it.";
  if (byId("later").hidden) return "";
  if (inTime(date, Date.now())) return `A win still counts for this day until ${DAY_HOURS - 24}:00 UTC.`;
  return "You missed this day: a win no longer counts for its board or your daily streak.";
}

/** @param {{score: number, seconds: number}} win */
const goalResult = ({ score, seconds }) =>
  meets({ date, ...goal }, score, seconds) ? " Goal met." : " Goal missed, it still counts as a win.";

if (byId("later").hidden) timeLeft(byId("left"), date);
const chips = showWeek();
if (username() || local?.getItem(gameKey(""))) showOwn(chips).catch(() => {}); // an error only leaves out the marks
byId("more").onclick = () => load(true);
load(false);
if (username()) {
  const { follow } = await import("./live.js");
  follow(refresh, ({ data }) => data?.board === `daily/${date}`, { boards: [`daily/${date}`] });
}
