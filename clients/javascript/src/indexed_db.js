// @ts-check
/** A store in IndexedDB. localStorage isn't enough: for some milliseconds after a change, another tab may read the old value. */

/** @typedef {import("./stores.js").Store} Store */

/** In localStorage after a full disk, for all tabs: padding.js has the reason. */
const DAMAGED = "solisync.damaged";

/** Open the database of a name, whose only object store has the same name. @param {string} name @returns {Promise<IDBDatabase>} */
const opened = (name) =>
  new Promise((resolve, reject) => {
    const asked = indexedDB.open(name);
    asked.onupgradeneeded = () => asked.result.createObjectStore(name);
    asked.onerror = () => reject(asked.error);
    asked.onsuccess = () => resolve(asked.result);
  });

/** Run `work` in a transaction. When the browser closes the database, as on a full disk, transactions report nothing. @template T @param {IDBDatabase} database @param {IDBTransactionMode} mode @param {(store: IDBObjectStore, done: (result: T) => void) => void} work @returns {Promise<T>} */
const transacted = (database, mode, work) =>
  new Promise((resolve, reject) => {
    const [name] = database.objectStoreNames;
    const transaction = database.transaction(name, mode, { durability: "strict" });
    const ended = new AbortController();
    database.addEventListener("close", () => reject(new Error("The browser has closed the database.")), {
      signal: ended.signal,
    });
    /** @type {T} */
    let result;
    work(transaction.objectStore(name), (given) => (result = given));
    transaction.oncomplete = () => {
      ended.abort();
      resolve(result);
    };
    transaction.onabort = () => reject(transaction.error);
  });

/** Whether this browser keeps no data of sites. */
function keepsNothing() {
  try {
    return globalThis.localStorage && !globalThis.indexedDB;
  } catch {
    return true;
  }
}

/** Whether a database may exist: some browsers don't say. @param {string} name */
const exists = async (name) => !indexedDB.databases || (await indexedDB.databases()).some((each) => each.name === name);

/**
 * Keeps the value in IndexedDB, for all tabs of a browser. After an error, such as a full disk, it still has the value
 * that it had. In a browser that keeps no data of sites, the value lasts until the page is left.
 * @param {string} name @returns {Store}
 */
export const indexedDbStore = (name) => ({
  ...databaseStore(`${name}-2`),
  former: async () => (!keepsNothing() && (await exists(name)) ? databaseStore(name) : null),
});

/** @param {string} name @returns {Store} */
export function databaseStore(name) {
  /** @type {Promise<IDBDatabase> | undefined} */
  let opening;
  const instead = keepsNothing() && import("./stores.js").then(({ memoryStore }) => memoryStore());

  /** Run `work` in one transaction; if that fails, again on a new connection. @template T @param {IDBTransactionMode} mode @param {(store: IDBObjectStore, done: (result: T) => void) => void} work @returns {Promise<T>} */
  async function transact(mode, work, last = false) {
    const connection = (opening ??= opened(name));
    try {
      const database = await connection;
      if (mode === "readwrite" && globalThis.localStorage?.getItem(DAMAGED)) {
        await (await import("./padding.js")).fillLog(database);
        localStorage.removeItem(DAMAGED);
      }
      return await transacted(database, mode, work);
    } catch (error) {
      if (!error) throw error; // the work has ended the transaction
      if (error.name === "UnknownError" && mode === "readwrite") globalThis.localStorage?.setItem(DAMAGED, "1");
      if (opening === connection) opening = undefined;
      connection.then((database) => database.close()).catch(() => {});
      if (last) throw error;
      return transact(mode, work, true);
    }
  }

  return {
    read: async () =>
      instead
        ? (await instead).read()
        : transact("readonly", (store, done) => {
            const asked = store.get(name);
            asked.onsuccess = () => done(asked.result);
          }),
    async change(alter) {
      if (instead) return (await instead).change(alter);
      /** @type {{error: unknown} | undefined} */
      let thrown;
      return transact("readwrite", (store, done) => {
        const asked = store.get(name);
        asked.onsuccess = () => {
          try {
            const [next, result] = alter(asked.result);
            store.put(next, name);
            done(result);
          } catch (error) {
            thrown = { error };
            store.transaction.abort();
          }
        };
      }).catch((error) => {
        throw thrown ? thrown.error : error;
      });
    },
    exclusively: async (work, run) =>
      instead
        ? (await instead).exclusively(work, run) // locks are refused, too
        : (await import("./locks.js")).exclusively(`${name}.${work}`, run),
  };
}
