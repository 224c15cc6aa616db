// @ts-check
/** /leaderboard for who is signed in: the board of verified games, the self-reported list, and one's own name. */

import { readOwn } from "./api.js";
import { showName } from "./display_name.js";
import { entryTable } from "./entries.js";
import { ago, byId, clock, fill, h, score, table } from "./page.js";

const draw = byId("draw");

/** @type {any[]} */
let entries = [];
/** @type {string | null} */
let next = null;

/** @param {string} [after] */
const boardPath = (after) =>
  `/api/boards/verified?${new URLSearchParams({ ...(draw.value && { draw_mode: draw.value }), ...(after ? { after } : {}) })}`;

/** The board from its top, or further down. @param {boolean} further */
async function load(further) {
  await fill(byId(further ? "more-refused" : "entries"), async () => {
    const page = await readOwn(boardPath((further && next) || undefined));
    entries = further ? [...entries, ...page.entries] : page.entries;
    next = page.next;
    const nobody = h("p", { class: "quiet" }, "Nobody is on this board yet.");
    byId("entries").replaceChildren(entries.length ? entryTable(entries, "Best score first") : nobody);
    return further ? [] : [...byId("entries").childNodes];
  });
  byId("more-place").hidden = !next;
  await around();
}

/** One's own row and its neighbours, where the board above does not show it. */
async function around() {
  let own = entries.find((entry) => entry.own);
  await fill(byId("around"), async () => {
    if (own) return [];
    const query = new URLSearchParams({ around: "me", ...(draw.value && { draw_mode: draw.value }) });
    const near = (await readOwn(`/api/boards/verified?${query}`)).entries;
    own = near.find((/** @type {any} */ entry) => entry.own);
    return own ? [h("h2", {}, "Where you are"), entryTable(near, "You and your neighbours")] : [];
  });
}

async function reported() {
  await fill(byId("reports"), async () => {
    const list = await readOwn("/api/leaderboard");
    const row = (/** @type {any} */ entry) => h("tr", {},
      h("th", {}, entry.display_name, entry.verified && h("b", { class: "tag" }, "✓ Verified")),
      h("td", { class: "number" }, entry.best_score === null ? "–" : score(entry.best_score)),
      h("td", { class: "number" }, entry.best_time_secs === null ? "–" : clock(entry.best_time_secs)),
      h("td", {}, ago(entry.recorded_at)));
    if (!list.length) return [h("p", { class: "quiet" }, "Nobody is on this list yet.")];
    return [table("Best score first", ["Player", "Best score", "Best time", "Since"], list.map(row))];
  });
}

const tabs = /** @type {HTMLElement[]} */ ([byId("tab-verified"), byId("tab-reported")]);

/** @param {HTMLElement} chosen */
function choose(chosen) {
  for (const tab of tabs) {
    tab.setAttribute("aria-selected", String(tab === chosen));
    tab.tabIndex = tab === chosen ? 0 : -1;
    byId(tab.getAttribute("aria-controls") ?? "").hidden = tab !== chosen;
  }
  if (chosen.id === "tab-reported") reported();
}

for (const tab of tabs) {
  tab.onclick = () => choose(tab);
  tab.onkeydown = ({ key }) => {
    if (key !== "ArrowLeft" && key !== "ArrowRight") return;
    const other = tabs[1 - tabs.indexOf(tab)];
    other.focus();
    choose(other);
  };
}
draw.onchange = () => load(false);
byId("more").onclick = () => load(true);

/** Show the boards. */
export async function start() {
  await Promise.all([load(false), showName(byId("name"), () => load(false))]);
}
