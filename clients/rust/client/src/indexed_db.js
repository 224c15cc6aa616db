// @ts-check
/** One value for each database, in memory and in IndexedDB. The database, its object store and its key have one name. */

/** @typedef {{database: IDBDatabase, wanted: string | undefined, stored: string | undefined, writing: Promise<void> | null}} Kept */

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

/** Keep a value, which is stored soon. @param {string} name @param {string} text */
export function save(name, text) {
  kept(name).wanted = text;
  flush(name).catch(() => {}); // the next one tries again
}

/** Wait until the value is stored. @param {string} name @returns {Promise<void>} */
export const flush = (name) => (kept(name).writing ??= write(name).finally(() => (kept(name).writing = null)));

/** @param {string} name */
async function write(name) {
  const here = kept(name);
  while (here.stored !== here.wanted) {
    const text = here.wanted ?? "null";
    await transacted(here.database, "readwrite", (store) => store.put(JSON.parse(text), name)).catch(async (error) => {
      here.database = await opened(name); // a full disk closes it
      throw error;
    });
    here.stored = text;
  }
}

/** Keep the value under another name too. @param {string} name */
export function setAside(name) {
  const other = `${name}.damaged.${Date.now()}`;
  const { database, wanted } = kept(name);
  transacted(database, "readwrite", (store) => store.put(JSON.parse(wanted ?? "null"), other)).catch(() => {});
  return other;
}
