// @ts-check
/** /replays: the newest verified games, or all uploads, filtered by mode and draw mode; a button adds older ones. */

import { read } from "./api.js";
import { Refusal } from "./http.js";
import { byId, counted, fill, h, say, sentence } from "./page.js";
import { replayTable } from "./replay_table.js";
import { countsUntil, hiddenDeals } from "./solutions.js";

const form = /** @type {HTMLFormElement} */ (byId("filters"));
const list = byId("list");
/** @type {any[]} */
let replays = [];
/** @type {string | null} the position of older replays */
let next = null;
/** @type {string} */
let today;

/** The deals of days whose wins the player doesn't see yet. @type {Map<string, string>} */
let hidden = new Map();

/** The replays that match the filters. */
function chosen() {
  const { mode, draw } = Object.fromEntries(new FormData(form));
  return replays.filter(
    (replay) => (!mode || replay.mode === mode) && (!draw || replay.draw_mode === draw) && !hidden.has(replay.deal),
  );
}

/** Say how many wins of a day are left out. */
function showHidden() {
  const many = replays.filter(({ deal }) => hidden.has(deal)).length;
  const day = [...hidden.values()].sort().at(-1);
  byId("hidden").textContent =
    many && day
      ? `${counted(many, "newer win")} of the day’s deal: shown when you have won it, or after ${countsUntil(day)}.`
      : "";
}

function table() {
  byId("more-place").hidden = !next;
  showHidden();
  const shown = chosen();
  if (shown.length) return replayTable(shown, today);
  return h(
    "p",
    { class: "quiet" },
    replays.length || next
      ? "None of the newest games match these filters."
      : form.check.value
        ? "No games have been uploaded yet."
        : "No verified wins are listed yet.",
  );
}

/** Load the newest replays, or with a position the next page below them. @param {string} before */
async function load(before) {
  await fill(before ? byId("more-refused") : list, async () => {
    for (;;) {
      const wanted = form.check.value;
      const [page, { seed }, found] = await Promise.all([
        read(`/api/replays/recent?limit=50&before=${before}${wanted ? "" : "&verdict=verified"}`),
        read("/api/daily-challenge"),
        hiddenDeals(),
      ]);
      if (wanted !== form.check.value) continue; // the choice changed during the request
      hidden = found;
      replays = before ? [...replays, ...page.replays] : page.replays;
      next = page.next ?? null;
      today = String(seed);
      if (!before) return [table()];
      list.replaceChildren(table());
      return [];
    }
  });
}

byId("more").onclick = async () => {
  const before = chosen().length;
  await load(next ?? "");
  say(counted(chosen().length - before, "older game"));
};
form.onchange = async ({ target }) => {
  const query = new URLSearchParams(
    [...new FormData(form)].filter(([, value]) => value).map(([name, value]) => [name, String(value)]),
  );
  history.replaceState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
  if (target === form.check) await load("");
  else list.replaceChildren(table());
  say(counted(chosen().length, "game"));
};
for (const [name, value] of new URLSearchParams(location.search)) {
  const field = form.elements.namedItem(name);
  if (field instanceof HTMLSelectElement && [...field.options].some((option) => option.value === value))
    field.value = value;
}

const find = /** @type {HTMLFormElement} */ (byId("find"));
find.onsubmit = async (event) => {
  event.preventDefault();
  const name = encodeURIComponent(find.username.value.trim());
  const refused = byId("find-refused");
  refused.textContent = "";
  try {
    await read(`/api/players/${name}/replays?limit=1`);
    location.assign(`/players/${name}`);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    refused.textContent = error.status === 404 ? "No player with this name has public games." : sentence(error);
    find.username.focus();
  }
};
await load("");
