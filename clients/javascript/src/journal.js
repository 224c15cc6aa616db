// @ts-check
/**
 * The journals of this browser: finished games that the server has not counted yet, and wins to upload.
 *
 * Each player has a journal; the one named "" has the games that were played signed out. All journals are one value in
 * IndexedDB, and each change is one transaction, so it is atomic and sees all earlier changes of all tabs. localStorage
 * isn't enough: for some milliseconds after a change in one tab, another tab may read the old value.
 */

import { username } from "./http.js";

/**
 * @typedef {import("./progress.js").Finished} Finished
 * @typedef {{id: string, body: string, day: string | null}} Win an upload: the same bytes are sent until there is an answer
 * @typedef {{body: string, games: number}} Sent a push without an answer, and the number of the journal's games in it
 * @typedef {{base: any, answers: number, games: Finished[], sent: Sent | null, wins: Win[]}} Journal
 *   `base`: the last accepted answer; `answers`: the number of accepted answers
 * @typedef {{known: string[], uploaded: Record<string, string>, of: Record<string, Journal>}} Journals
 *   `known`: the newest games that were entered; `uploaded`: the replay ids of the newest uploads, by game id
 */

const KEY = "solisync.journals";
export const GUEST = "";
const GUEST_WINS = 20;
const KNOWN = 200;

/** An object without a prototype: a prototype would have entries for players named `constructor` and the like. @param {Iterable<[string, any]>} entries */
const bare = (entries) => Object.setPrototypeOf(Object.fromEntries(entries), null);

/** The journals while the browser refuses to store them. @type {Journals} */
let unstored = { known: [], uploaded: bare([]), of: bare([]) };
/** @type {Promise<IDBDatabase | null> | undefined} */
let opening;
const channel = new BroadcastChannel(KEY);
channel.onmessage = () => dispatchEvent(new Event("journal"));

/** A time as local time with its offset. @param {Date} moment */
export function localTime(moment) {
  const minutes = -moment.getTimezoneOffset();
  const two = (/** @type {number} */ part) => String(Math.floor(Math.abs(part))).padStart(2, "0");
  const local = new Date(moment.getTime() + minutes * 60_000).toISOString().slice(0, -1);
  return `${local}${minutes < 0 ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}

/** @param {any} value @returns {value is Journal} */
const isJournal = (value) => Array.isArray(value?.games) && Array.isArray(value.wins)
  && (value.sent === null || (typeof value.sent?.body === "string" && value.sent.games <= value.games.length));

/** The stored journals, without invalid ones. @param {any} value @returns {Journals} */
function sound(value) {
  const { known, uploaded, of } = Object(value);
  const journals = Object.entries(Object(of)).filter(([, journal]) => isJournal(journal));
  return { known: Array.isArray(known) ? known : [], uploaded: bare(Object.entries(Object(uploaded))), of: bare(journals) };
}

/** The database, or null if the browser refuses it. */
const database = () => (opening ??= new Promise((resolve) => {
  try {
    const asked = indexedDB.open(KEY);
    asked.onupgradeneeded = () => asked.result.createObjectStore(KEY);
    asked.onerror = () => resolve(null);
    asked.onsuccess = () => {
      asked.result.onclose = () => (opening = undefined); // the player has deleted the data of sites
      resolve(asked.result);
    };
  } catch {
    resolve(null);
  }
}));

/** Run `work` in one transaction. Reject if the result can't be stored. @template T @param {IDBTransactionMode} mode @param {(store: IDBObjectStore, done: (result: T) => void) => void} work @returns {Promise<T>} */
async function transact(mode, work) {
  const open = await database();
  return new Promise((resolve, reject) => {
    if (!open) throw new Error("nothing is stored here");
    const transaction = open.transaction(KEY, mode);
    /** @type {T} */
    let result;
    work(transaction.objectStore(KEY), (given) => (result = given));
    transaction.oncomplete = () => resolve(result);
    transaction.onabort = () => reject(transaction.error);
  });
}

/** @template T @param {IDBObjectStore} store @param {(all: Journals) => T} use */
const readFrom = (store, use) => (store.get(KEY).onsuccess = ({ target }) => use(sound(/** @type {IDBRequest} */ (target).result)));

/** Read all journals. @returns {Promise<Journals>} */
export const journals = () =>
  transact("readonly", (store, done) => readFrom(store, done)).catch(() => sound(structuredClone(unstored)));

/** The journal of a player, which is added if there is none. @param {Journals} all @param {string} name @returns {Journal} */
export const journalOf = (all, name) => (all.of[name] ??= { base: null, answers: 0, games: [], sent: null, wins: [] });

/** @template T @param {Journals} all @param {(all: Journals) => T} alter */
function altered(all, alter) {
  const result = alter(all);
  all.known = all.known.slice(-KNOWN);
  all.uploaded = bare(Object.entries(all.uploaded).slice(-KNOWN));
  for (const [name, { base, games, sent, wins }] of Object.entries(all.of)) {
    if (!base && !games.length && !sent && !wins.length) delete all.of[name];
  }
  return result;
}

/** Change the journals and store them. A change that can't be stored lasts until the page is left. @template T @param {(all: Journals) => T} alter @returns {Promise<T>} */
export async function change(alter) {
  /** @type {T} */
  let result;
  /** @type {unknown} */
  let failure;
  try {
    result = await transact("readwrite", (store, done) => readFrom(store, (all) => {
      try {
        done(altered(all, alter));
        store.put(all, KEY);
      } catch (error) {
        failure = error;
        store.transaction.abort();
      }
    }));
    channel.postMessage("changed");
  } catch {
    if (failure) throw failure;
    unstored = await journals();
    await transact("readwrite", (store) => store.clear()).catch(() => {}); // so that a later page doesn't count the same games again
    opening = Promise.resolve(null);
    result = altered(unstored, alter);
  }
  dispatchEvent(new Event("journal"));
  return result;
}

/** Accept an answer, unless another push or answer has replaced the state it belongs to. If its player is no longer signed in, its progress isn't stored. @param {string} name @param {any} merged @param {Journal} asked the journal at the time of the request */
export const take = (name, merged, asked) =>
  change((all) => {
    const journal = journalOf(all, name);
    if (journal.sent?.body !== asked.sent?.body || journal.answers !== asked.answers) return;
    if (journal.sent) journal.games.splice(0, journal.sent.games);
    Object.assign(journal, { sent: null, base: name === username() ? merged : null, answers: journal.answers + 1 });
  });

/** The number of a player's finished games that are not sent yet. @param {string} name */
export async function unsent(name) {
  const { games, wins } = journalOf(await journals(), name);
  return Math.max(games.length, wins.length);
}

/** Remove a player's progress from this browser; unsent games stay. @param {string} name */
export const forget = (name) =>
  change((all) => {
    const journal = journalOf(all, name);
    Object.assign(journal, { base: null, answers: journal.answers + 1 });
  });

/** Enter a finished game once, with its upload if it is won. @param {Finished} game @param {string | null} body @param {string} [player] the player of the game, if not the signed-in player */
export const enter = (game, body, player) =>
  change((all) => {
    if (all.known.includes(game.id)) return;
    all.known.push(game.id);
    const name = player || (username() ?? GUEST);
    const journal = journalOf(all, name);
    journal.games.push(game);
    if (body) journal.wins.push({ id: game.id, body, day: game.day?.date ?? null });
    if (name === GUEST) journal.wins = journal.wins.slice(-GUEST_WINS);
  });

/** Move the signed-out games to a player's journal, or remove them. @param {string | null} name null removes them */
export const handOver = (name) =>
  change((all) => {
    const { games, wins } = journalOf(all, GUEST);
    delete all.of[GUEST];
    if (name === null) return;
    const journal = journalOf(all, name);
    journal.games.push(...games);
    journal.wins.push(...wins);
  });
