// @ts-check
/** /leaderboard for a signed-in player: the board of verified games, the self-reported list, and the player's name. */

import { readOwn } from "./api.js";
import { showName } from "./display_name.js";
import { entryTable, rank, reloaded } from "./entries.js";
import { follow, replace } from "./live.js";
import { ago, byId, clock, fill, h, score, table } from "./page.js";

const draw = byId("draw");

/** @type {any[]} */
let entries = [];
/** @type {string | null} */
let next = null;

/** @param {Record<string, string>} query */
const boardPath = (query) =>
  `/api/boards/verified?${new URLSearchParams({ ...(draw.value && { draw_mode: draw.value }), ...query })}`;

const shown = () =>
  entries.length
    ? entryTable(entries, "Best score first")
    : h("p", { class: "quiet" }, "This board has no entries yet.");

/** Load the board from its top, or its next page. @param {boolean} further */
async function load(further) {
  await fill(byId(further ? "more-refused" : "entries"), async () => {
    const page = await readOwn(boardPath(further && next ? { after: next } : {}));
    entries = further ? [...entries, ...page.entries] : page.entries;
    next = page.next;
    byId("entries").replaceChildren(shown());
    return further ? [] : [...byId("entries").childNodes];
  });
  byId("more-place").hidden = !next;
  await around();
}

/** The player's row and its neighbours, unless the board above shows it. */
async function neighbours() {
  if (entries.some((entry) => entry.own)) return [];
  const near = (await readOwn(boardPath({ around: "me" }))).entries;
  return near.length ? [h("h2", {}, "Your rank"), entryTable(near, "You and your neighbours")] : [];
}

const around = () => fill(byId("around"), neighbours);

/** Load the shown entries again, and show them if they have changed. */
async function refresh() {
  const anew = await reloaded(boardPath, () => entries);
  if (!anew) return;
  ({ entries, next } = anew);
  replace(byId("entries"), [shown()]);
  byId("more-place").hidden = !next;
  replace(byId("around"), await neighbours());
}

async function reports() {
  const list = await readOwn("/api/leaderboard");
  const row = (/** @type {any} */ entry, /** @type {number} */ index) =>
    h(
      "tr",
      {},
      h(
        "th",
        {},
        h("span", { class: "who" }, rank(index + 1), " ", entry.display_name),
        entry.verified
          ? h("b", { class: "tag" }, "✓ Verified")
          : entry.best_score !== null && h("span", { class: "mark" }, " Not verified"),
      ),
      h("td", { class: "number" }, entry.best_score === null ? "–" : score(entry.best_score)),
      h("td", { class: "number" }, entry.best_time_secs === null ? "–" : clock(entry.best_time_secs)),
      h("td", {}, ago(entry.recorded_at)),
    );
  if (!list.length) return [h("p", { class: "quiet" }, "This list has no entries yet.")];
  return [table("Best score first", ["Player", "Best score", "Best time", "Since"], list.map(row))];
}

const reported = () => fill(byId("reports"), reports);

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

/** Put the choice of board into the address. */
function keepChoice() {
  const query = new URLSearchParams({
    ...(byId("verified").hidden && { board: "reported" }),
    ...(draw.value && { draw: draw.value }),
  });
  history.replaceState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
}

for (const tab of tabs) {
  tab.onclick = () => (choose(tab), keepChoice());
  tab.onkeydown = ({ key }) => {
    if (key !== "ArrowLeft" && key !== "ArrowRight") return;
    const other = tabs[1 - tabs.indexOf(tab)];
    other.focus();
    other.click();
  };
}
draw.onchange = () => (keepChoice(), (entries = []), load(false));
const wanted = new URLSearchParams(location.search);
for (const option of draw.options) option.selected = option.value === wanted.get("draw");
if (wanted.get("board") === "reported") choose(tabs[1]);
byId("more").onclick = () => load(true);

let following = false;

/** Show the boards. */
export async function start() {
  await Promise.all([load(false), showName(byId("name"), () => load(false), true)]);
  if (following) return;
  following = true;
  follow(refresh, ({ data }) => data?.board === "verified", { boards: ["verified"] });
  follow(
    async () => byId("reported").hidden || replace(byId("reports"), await reports()),
    ({ data }) => data?.board === "leaderboard",
    { boards: ["leaderboard"] },
  );
}
