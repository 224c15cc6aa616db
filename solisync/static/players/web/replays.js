// @ts-check
/** /replays: the newest 50 verified games, or 50 of all verdicts, filtered by mode and draw mode. */

import { read } from "./api.js";
import { Refusal } from "./http.js";
import { byId, counted, fill, h, say, sentence } from "./page.js";
import { replayTable } from "./replay_table.js";

const form = /** @type {HTMLFormElement} */ (byId("filters"));
const list = byId("list");
/** @type {any[]} */
let replays = [];
/** @type {string} */
let today;

/** The replays that match the filters. */
function chosen() {
  const { mode, draw } = Object.fromEntries(new FormData(form));
  return replays.filter((replay) => (!mode || replay.mode === mode) && (!draw || replay.draw_mode === draw));
}

function table() {
  const shown = chosen();
  if (shown.length) return replayTable(shown, today);
  return h("p", { class: "quiet" }, replays.length ? "None of the newest games match these filters." : "No games have been uploaded yet.");
}

const load = () => fill(list, async () => {
  for (;;) {
    const wanted = form.check.value;
    const [newest, { seed }] = await Promise.all([
      read(`/api/replays/recent?limit=50${wanted ? "" : "&verdict=verified"}`), read("/api/daily-challenge"),
    ]);
    if (wanted !== form.check.value) continue; // the choice changed during the request
    replays = newest;
    today = String(seed);
    return [table()];
  }
});

form.onchange = async ({ target }) => {
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value).map(([name, value]) => [name, String(value)]));
  history.replaceState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
  if (target === form.check) await load();
  else list.replaceChildren(table());
  say(counted(chosen().length, "game"));
};
for (const [name, value] of new URLSearchParams(location.search)) {
  const field = form.elements.namedItem(name);
  if (field instanceof HTMLSelectElement && [...field.options].some((option) => option.value === value)) field.value = value;
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
await load();
