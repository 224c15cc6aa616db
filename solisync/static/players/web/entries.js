// @ts-check
/** Entries of a board, for signed-in players. */

import { readOwn } from "./api.js";
import { ago, clock, counted, h, say, score, table, words } from "./page.js";

const PAGE = 100;
const MOST = 500; // entries to load in a refresh

/** Load a board from its top, at least `count` entries if it has them, up to MOST. @param {(query: Record<string, string>) => string} path @param {number} count */
async function pages(path, count) {
  /** @type {any[]} */
  const entries = [];
  /** @type {string | null} */
  let next = null;
  do {
    const limit = String(Math.min(Math.max(count - entries.length, 20), PAGE));
    const page = await readOwn(path({ limit, ...(next && { after: next }) }));
    entries.push(...page.entries);
    next = page.next;
  } while (next && entries.length < Math.min(count, MOST));
  return { entries, next };
}

let said = false;

/** Whether a board has changed. The first change is announced. @param {any[]} before @param {any[]} after */
function changed(before, after) {
  if (JSON.stringify(before) === JSON.stringify(after)) return false;
  if (!said) say("The board has changed.");
  said = true;
  return true;
}

/**
 * Load a board again, with as many entries as it shows. Return null if it hasn't changed. If the player loads another
 * page of the board at the same time, the board is loaded once more, with that page.
 * @param {(query: Record<string, string>) => string} path @param {() => any[]} shown the entries of the page, a new array after each load
 * @param {number} [least] how many entries to load at least @returns {Promise<{entries: any[], next: string | null} | null>}
 */
export async function reloaded(path, shown, least = 0) {
  const before = shown();
  const anew = await pages(path, Math.max(before.length, least));
  if (shown() !== before) return reloaded(path, shown, least);
  return changed(before, anew.entries) ? anew : null;
}

/** The rank of an entry; null beyond those that are counted. @param {number | null} place */
export const rank = (place) => h("span", { class: `rank ${place && place < 4 ? "first" : ""}` }, place ?? "…");

/**
 * @param {any[]} entries @param {string} caption
 * @param {{shown?: string, tag?: (entry: any) => string | false, linked?: boolean}} [more] `shown`: the id of the replay on the page;
 *   `tag`: another label of an entry; `linked`: whether names lead to the replays
 */
export function entryTable(entries, caption, { shown, tag, linked = true } = {}) {
  const row = (/** @type {any} */ entry) => {
    const text = tag?.(entry);
    return h(
      "tr",
      { class: entry.own && "own" },
      h(
        "th",
        {},
        h(
          "span",
          { class: "who" },
          rank(entry.rank),
          " ",
          linked || entry.own
            ? h(
                "a",
                { href: `/replays/${entry.replay_id}`, "aria-current": entry.replay_id === shown && "page" },
                entry.display_name,
              )
            : h("b", {}, entry.display_name),
        ),
        entry.own && h("b", { class: "tag" }, "You"),
        text && h("b", { class: "tag" }, text),
      ),
      h("td", { class: "number" }, score(entry.score)),
      h("td", { class: "number" }, clock(entry.time_seconds)),
      h("td", {}, counted(entry.moves, "move"), entry.undos ? `, ${counted(entry.undos, "undo")}` : ""),
      h("td", {}, words(entry.draw_mode)),
      h("td", {}, ago(entry.received_at)),
    );
  };
  return table(caption, ["Player", "Score", "Time", "Moves", "Draw", "Uploaded"], entries.map(row), true);
}
