// @ts-check
/**
 * The journals of this browser: finished games that the server has not counted yet, and wins that wait to be uploaded.
 *
 * Each player has one; "" is that of nobody in particular, for games that are played signed out. All of them are one
 * value in localStorage, so that each change is whole or has not happened, and one tab at a time changes it.
 */

import { local, username } from "./http.js";
import { exclusively } from "./locks.js";

/**
 * @typedef {import("./progress.js").Finished} Finished
 * @typedef {{id: string, body: string, day: string | null}} Win an upload: the bytes that are sent until they are answered
 * @typedef {{body: string, games: number}} Sent a push without an answer yet, and how many of the games are in it
 * @typedef {{base: any, games: Finished[], sent: Sent | null, wins: Win[]}} Journal `base`: the last answer
 * @typedef {{known: string[], uploaded: Record<string, string>, of: Record<string, Journal>}} Journals
 *   `known`: games that were ever entered; `uploaded`: the ids of replays by those of games; the newest of both
 */

const KEY = "solisync.journals";
export const GUEST = "";
const GUEST_WINS = 20;
const KNOWN = 200;

/** @type {Journals} what there is where the browser stores nothing */
let unstored = { known: [], uploaded: {}, of: {} };

/** A moment as local time with its offset. @param {Date} moment */
export function localTime(moment) {
  const minutes = -moment.getTimezoneOffset();
  const two = (/** @type {number} */ part) => String(Math.floor(Math.abs(part))).padStart(2, "0");
  const local = new Date(moment.getTime() + minutes * 60_000).toISOString().slice(0, -1);
  return `${local}${minutes < 0 ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}

/** @param {any} value @returns {value is Journal} */
const isJournal = (value) => Array.isArray(value?.games) && Array.isArray(value.wins)
  && (value.sent === null || (typeof value.sent?.body === "string" && value.sent.games <= value.games.length));

/** @returns {Journals} */
export function journals() {
  const text = local?.getItem(KEY);
  if (!text) return structuredClone(unstored);
  try {
    const { known, uploaded, of } = JSON.parse(text);
    const sound = Object.entries(of).filter(([, journal]) => isJournal(journal));
    return { known: Array.isArray(known) ? known : [], uploaded: Object(uploaded), of: Object.fromEntries(sound) };
  } catch {
    return { known: [], uploaded: {}, of: {} };
  }
}

/** The journal of a player. @param {Journals} all @param {string} name @returns {Journal} */
export const journalOf = (all, name) => (all.of[name] ??= { base: null, games: [], sent: null, wins: [] });

/** Change the journals, and store them; what can't be stored holds until the page is left. @template T @param {(all: Journals) => T} alter */
export const change = (alter) =>
  exclusively("solisync.journal", async () => {
    const all = journals();
    const result = alter(all);
    all.known = all.known.slice(-KNOWN);
    all.uploaded = Object.fromEntries(Object.entries(all.uploaded).slice(-KNOWN));
    for (const [name, { base, games, sent, wins }] of Object.entries(all.of)) {
      if (!base && !games.length && !sent && !wins.length) delete all.of[name];
    }
    try {
      local?.setItem(KEY, JSON.stringify(all));
      unstored = local ? { known: [], uploaded: {}, of: {} } : all;
    } catch {
      local?.removeItem(KEY); // the storage is full: from here on this page alone knows
      unstored = all;
    }
    dispatchEvent(new Event("journal"));
    return result;
  });

/** Enter a finished game once, with its upload if it was won. @param {Finished} game @param {string | null} body */
export const enter = (game, body) =>
  change((all) => {
    if (all.known.includes(game.id)) return;
    all.known.push(game.id);
    const name = username() ?? GUEST;
    const journal = journalOf(all, name);
    journal.games.push(game);
    if (body) journal.wins.push({ id: game.id, body, day: game.day?.date ?? null });
    if (name === GUEST) journal.wins = journal.wins.slice(-GUEST_WINS);
  });

/** Give what was played signed out to a player, or to nobody. @param {string | null} name */
export const handOver = (name) =>
  change((all) => {
    const { games, wins } = journalOf(all, GUEST);
    delete all.of[GUEST];
    if (name === null) return;
    const journal = journalOf(all, name);
    journal.games.push(...games);
    journal.wins.push(...wins);
  });
