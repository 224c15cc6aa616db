// @ts-check
/** One value for each database, in memory and in IndexedDB. The database, its object store and its key have one name. */

/** @typedef {{database: IDBDatabase, wanted: string | undefined, stored: string | undefined, writing: Promise<void> | null, retry?: number}} Kept */

const RETRY_MS = 10_000;

/** In localStorage after a full disk, as of the npm package: `fillLog` has the reason. */
const DAMAGED = "solisync.damaged";

/** @type {Map<string, Kept>} */
const all = new Map();

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
  new Promise((resolve) => {
    if (!navigator.locks || all.has(name)) return resolve(true);
    navigator.locks.request(`${name}.tab`, { ifAvailable: true }, (lock) => {
      resolve(lock !== null);
      return lock && new Promise(() => {});
    });
  });

/** Read a database, unless another tab has it. @param {string} name @returns {Promise<boolean>} */
export async function openStore(name) {
  if (!(await isAlone(name))) return false;
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
export const flush = (name) => (kept(name).writing ??= write(name).finally(() => (kept(name).writing = null)));

/** @param {string} name */
async function write(name) {
  const here = kept(name);
  while (here.stored !== here.wanted) {
    const text = here.wanted ?? "null";
    try {
      if (localStorage.getItem(DAMAGED)) {
        await fillLog(here.database);
        localStorage.removeItem(DAMAGED);
      }
      await transacted(here.database, "readwrite", (store) => store.put(JSON.parse(text), name));
    } catch (error) {
      if (error instanceof DOMException && error.name === "UnknownError") localStorage.setItem(DAMAGED, "1");
      here.database = await opened(name); // a full disk closes it
      throw error;
    }
    here.stored = text;
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
