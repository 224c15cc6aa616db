// @ts-check
/** One value for each database, in memory and in IndexedDB. The database, its object store and its key have one name. */

/** @typedef {{database: IDBDatabase, wanted: string | undefined, stored: string | undefined, writing: Promise<void> | null, retry?: number}} Kept */

const RETRY_MS = 10_000;

/** In localStorage after a full disk, as of the npm package: `fillLog` has the reason. */
const DAMAGED = "solisync.damaged";

/** @type {Map<string, Kept>} */
const all = new Map();

/** The names that a client of this page uses. @type {Set<string>} */
const used = new Set();

/** The names that no other tab has until the page is left. @type {Set<string>} */
const locked = new Set();

/** localStorage, which some browsers don't have or refuse. */
function localStore() {
  try {
    return globalThis.localStorage;
  } catch {
    return null;
  }
}

/** @param {string} name @returns {Promise<IDBDatabase>} */
const opened = (name) =>
  new Promise((resolve, reject) => {
    const asked = indexedDB.open(name);
    asked.onupgradeneeded = () => asked.result.createObjectStore(name);
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });

/** Run `work` in one transaction. @param {IDBDatabase} database @param {IDBTransactionMode} mode @param {(store: IDBObjectStore) => IDBRequest} work @returns {Promise<any>} */
const transacted = (database, mode, work) =>
  new Promise((resolve, reject) => {
    const [name] = database.objectStoreNames;
    const transaction = database.transaction(name, mode, { durability: "strict" });
    const asked = work(transaction.objectStore(name));
    transaction.oncomplete = () => resolve(asked.result);
    transaction.onabort = () => reject(transaction.error);
    database.onclose = () => reject(new Error("The browser has closed the database."));
  });

/** Whether no other tab has this name; it is this tab's until the page is left. @param {string} name @returns {Promise<boolean>} */
const isAlone = (name) =>
  new Promise((resolve, reject) => {
    if (!navigator.locks || locked.has(name)) return resolve(true);
    const held = navigator.locks.request(`${name}.tab`, { ifAvailable: true }, (lock) => {
      if (lock) locked.add(name);
      resolve(lock !== null);
      return lock && new Promise(() => {});
    });
    held.catch(reject); // the browser keeps no data of this site
  });

/** Read a database, unless another client has it. A value that this page has kept may be newer than the stored one. @param {string} name @returns {Promise<boolean>} */
export async function openStore(name) {
  if (used.has(name)) return false;
  used.add(name);
  let opens = false;
  try {
    opens = (await isAlone(name)) && (all.has(name) || (await read(name)));
  } finally {
    if (!opens) used.delete(name);
  }
  return opens;
}

/** Leave a database to the next client of this page. What isn't stored yet will be. @param {string} name */
export const closeStore = (name) => void used.delete(name);

/** @param {string} name @returns {Promise<true>} */
async function read(name) {
  const database = await opened(name);
  const value = await transacted(database, "readonly", (store) => store.get(name));
  const stored = value === undefined ? undefined : JSON.stringify(value);
  all.set(name, { database, wanted: stored, stored, writing: null });
  return true;
}

/** @param {string} name @returns {Kept} */
const kept = (name) => /** @type {Kept} */ (all.get(name));

/** @param {string} name */
export const valueOf = (name) => kept(name).wanted;

/** Keep a value, which is stored soon, and as soon as a full disk has room. @param {string} name @param {string} text */
export function save(name, text) {
  const here = kept(name);
  here.wanted = text;
  flush(name).catch(() => {
    here.retry ??= setTimeout(() => {
      here.retry = undefined;
      save(name, here.wanted ?? text);
    }, RETRY_MS);
  });
}

/** Wait until the value is stored. @param {string} name @returns {Promise<void>} */
export const flush = (name) => (kept(name).writing ??= write(name));

/** @param {string} name */
async function write(name) {
  const here = kept(name);
  await null; // `flush` sets `writing` first
  try {
    while (here.stored !== here.wanted) here.stored = await put(here, name, here.wanted ?? "null");
  } finally {
    here.writing = null;
  }
}

/** Store a value, and return it. @param {Kept} here @param {string} name @param {string} text */
async function put(here, name, text) {
  try {
    if (localStore()?.getItem(DAMAGED)) {
      await fillLog(here.database);
      localStore()?.removeItem(DAMAGED);
    }
    await transacted(here.database, "readwrite", (store) => store.put(JSON.parse(text), name));
    return text;
  } catch (error) {
    if (error instanceof DOMException && error.name === "UnknownError") localStore()?.setItem(DAMAGED, "1");
    here.database = await opened(name); // a full disk closes it
    throw error;
  }
}

/**
 * Fill Chromium's log of changes, of which it begins another one after 4 MiB. A full disk can cut the last change in
 * the log. Chromium continues behind it, can't read the log at its next start, and then deletes all databases of the
 * site. Larger values aren't in the log, and others than random ones would be compressed. @param {IDBDatabase} database
 */
async function fillLog(database) {
  const keys = Array.from({ length: 90 }, (_, number) => `padding ${number}`);
  const random = () => crypto.getRandomValues(new Uint8Array(60_000));
  await transacted(database, "readwrite", (store) => keys.map((key) => store.put(random(), key))[0]);
  await transacted(database, "readwrite", (store) => keys.map((key) => store.delete(key))[0]);
}

/** Keep the value under another name too. @param {string} name */
export function setAside(name) {
  const other = `${name}.damaged.${Date.now()}`;
  const { database, wanted } = kept(name);
  transacted(database, "readwrite", (store) => store.put(JSON.parse(wanted ?? "null"), other)).catch(() => {});
  return other;
}
