// @ts-check
/**
 * The journals of this browser: finished games that the server has not counted yet, and wins that wait to be uploaded.
 *
 * Each player has one; "" is that of nobody in particular, for games that are played signed out. All of them are one
 * value in IndexedDB, and each change is one transaction there: it is whole or has not happened, and sees what all
 * earlier ones of all tabs have stored. localStorage would not do: after one tab's change, another one may read the
 * value of before for some milliseconds.
 */

import { username } from "./http.js";

/**
 * @typedef {import("./progress.js").Finished} Finished
 * @typedef {{id: string, body: string, day: string | null}} Win an upload: the bytes that are sent until they are answered
 * @typedef {{body: string, games: number}} Sent a push without an answer yet, and how many of the games are in it
 * @typedef {{base: any, answers: number, games: Finished[], sent: Sent | null, wins: Win[]}} Journal
 *   `base`: the last answer that was taken; `answers`: how many were
 * @typedef {{known: string[], uploaded: Record<string, string>, of: Record<string, Journal>}} Journals
 *   `known`: games that were ever entered; `uploaded`: the ids of replays by those of games; the newest of both
 */

const KEY = "solisync.journals";
export const GUEST = "";
const GUEST_WINS = 20;
const KNOWN = 200;

/** An object without a prototype, which would have entries for players such as `constructor`. @param {Iterable<[string, any]>} entries */
const bare = (entries) => Object.setPrototypeOf(Object.fromEntries(entries), null);

/** What there is where the browser stores nothing. @type {Journals} */
let unstored = { known: [], uploaded: bare([]), of: bare([]) };
/** @type {Promise<IDBDatabase | null> | undefined} */
let opening;
const channel = new BroadcastChannel(KEY);
channel.onmessage = () => dispatchEvent(new Event("journal"));

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

/** What is stored, without what can't be. @param {any} value @returns {Journals} */
function sound(value) {
  const { known, uploaded, of } = Object(value);
  const journals = Object.entries(Object(of)).filter(([, journal]) => isJournal(journal));
  return { known: Array.isArray(known) ? known : [], uploaded: bare(Object.entries(Object(uploaded))), of: bare(journals) };
}

/** The database; null where the browser refuses one. */
const database = () => (opening ??= new Promise((resolve) => {
  try {
    const asked = indexedDB.open(KEY);
    asked.onupgradeneeded = () => asked.result.createObjectStore(KEY);
    asked.onerror = () => resolve(null);
    asked.onsuccess = () => {
      asked.result.onclose = () => (opening = undefined); // the player has removed what sites store
      resolve(asked.result);
    };
  } catch {
    resolve(null);
  }
}));

/** Do something in one transaction; rejects if that can't be stored. @template T @param {IDBTransactionMode} mode @param {(store: IDBObjectStore, done: (result: T) => void) => void} work @returns {Promise<T>} */
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

/** All journals as they are stored now. @returns {Promise<Journals>} */
export const journals = () =>
  transact("readonly", (store, done) => readFrom(store, done)).catch(() => sound(structuredClone(unstored)));

/** The journal of a player. @param {Journals} all @param {string} name @returns {Journal} */
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

/** Change the journals, and store them; what can't be stored holds until the page is left. @template T @param {(all: Journals) => T} alter @returns {Promise<T>} */
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
    await transact("readwrite", (store) => store.clear()).catch(() => {}); // or a later page would count it again
    opening = Promise.resolve(null);
    result = altered(unstored, alter);
  }
  dispatchEvent(new Event("journal"));
  return result;
}

/** Take an answer, unless the push that it answers is not the open one any more, or another answer has come since; signed out, without the progress in it. @param {string} name @param {any} merged @param {Journal} asked the journal as it was then */
export const take = (name, merged, asked) =>
  change((all) => {
    const journal = journalOf(all, name);
    if (journal.sent?.body !== asked.sent?.body || journal.answers !== asked.answers) return;
    if (journal.sent) journal.games.splice(0, journal.sent.games);
    Object.assign(journal, { sent: null, base: name === username() ? merged : null, answers: journal.answers + 1 });
  });

/** How many finished games of a player are not sent yet. @param {string} name */
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

/** Enter a finished game once, with its upload if it was won. @param {Finished} game @param {string | null} body @param {string} [player] who has played it, if not who is signed in */
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
