// @ts-check
/** /daily and /daily/<date>: the days around a day, its remaining time, its winners, and those who met the goal. */

import { readOwn } from "./api.js";
import { drawDeals } from "./faces.js";
import { inTime, meets } from "./goal.js";
import { username } from "./http.js";
import { byId, clock, counted, fill, h, score, signInPath, timeLeft } from "./page.js";
import { countsUntil, hasPlayed, hiddenDeals } from "./solutions.js";

/** @type {{date: string, deal: string, today: string, goal: {description: string, target_score: number | null, max_time_secs: number | null}}} */
const { date, deal, goal, today } = JSON.parse(byId("data").textContent);
const winners = byId("winners");
const board = `/api/boards/daily/${date}`;
const path = `${board}?limit=100`;

/** @type {any[]} */
let entries = [];
/** @type {string | null} */
let next = null;
let onlyMet = false;

/** This deal, while its wins are hidden from the player. */
const hidden = hiddenDeals({ [date]: deal }).catch(() => new Map());

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
    entryTable(shown, "Best score first", { linked: !(await hidden).size, tag: (entry) => met(entry) && "Goal met" }),
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

/** Show the calendar, and the player's own result of this day. */
async function showOwn() {
  const { showMonth } = await import("./calendar.js");
  showMonth(byId("calendar"), date, today, { won: new Set(), later: new Set() });
  if (!hasPlayed()) return;
  const { bestWins, ownDays } = await import("./own_days.js");
  const own = await ownDays();
  showMonth(byId("calendar"), date, today, own);
  const best = await bestWins({ [date]: deal });
  const streak = own.streak > 0 && `Your streak: ${counted(own.streak, "day")}.`;
  byId("own").textContent = [ownResult(own, best.get(date)), streak].filter(Boolean).join(" ");
}

/** @param {import("./own_days.js").Days} own @param {{score: number, seconds: number} | undefined} best */
function ownResult({ won, later }, best) {
  if (best)
    return `You won it with ${counted(best.score, "point")} in ${clock(best.seconds)}.${hasGoal ? goalResult(best) : ""}`;
  if (won.has(date)) return "You won it.";
  if (later.has(date)) return "You won it later.";
  if (date === today) return "";
  if (inTime(date, Date.now())) return `A win still counts for this day until ${countsUntil(date)}.`;
  return "Too late for the board, but a win still marks your calendar.";
}

/** @param {{score: number, seconds: number}} win */
const goalResult = ({ score, seconds }) =>
  meets({ date, ...goal }, score, seconds) ? " Goal met." : " Goal missed, it still counts as a win.";

drawDeals();
byId("until").textContent = inTime(date, Date.now()) ? `Wins count until ${countsUntil(date)}.` : "Final results.";
if (date === today) timeLeft(byId("left"), date);
showOwn().catch(() => {}); // an error only leaves out the marks
byId("more").onclick = () => load(true);
load(false);
if (username()) {
  const { follow } = await import("./live.js");
  follow(refresh, ({ data }) => data?.board === `daily/${date}`, { boards: [`daily/${date}`] });
}
