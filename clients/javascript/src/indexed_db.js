// @ts-check
/** A store in IndexedDB. localStorage isn't enough: for some milliseconds after a change, another tab may read the old value. */

/** @typedef {import("./stores.js").Store} Store */

/** Open the database of a name, whose only object store has the same name. @param {string} name @param {() => void} closed @returns {Promise<IDBDatabase>} */
const opened = (name, closed) => new Promise((resolve, reject) => {
  const asked = indexedDB.open(name);
  asked.onupgradeneeded = () => asked.result.createObjectStore(name);
  asked.onerror = () => reject(asked.error);
  asked.onsuccess = () => {
    asked.result.onclose = closed; // the player has deleted the data of sites
    resolve(asked.result);
  };
});

/** Keeps the value in IndexedDB, for all tabs of a browser. If the browser refuses, the value lasts until the page is left. @param {string} name @returns {Store} */
export function indexedDbStore(name) {
  /** @type {Promise<IDBDatabase> | undefined} */
  let opening;
  /** The store while the browser refuses to keep the value. @type {Promise<Store> | undefined} */
  let instead;

  /** Run `work` in one transaction. @template T @param {IDBTransactionMode} mode @param {(store: IDBObjectStore, done: (result: T) => void) => void} work @returns {Promise<T>} */
  async function transact(mode, work) {
    opening ??= opened(name, () => (opening = undefined));
    const transaction = (await opening).transaction(name, mode, { durability: "strict" });
    return new Promise((resolve, reject) => {
      /** @type {T} */
      let result;
      work(transaction.objectStore(name), (given) => (result = given));
      transaction.oncomplete = () => resolve(result);
      transaction.onabort = () => reject(transaction.error);
    });
  }

  const read = () => transact("readonly", (store, done) => {
    const asked = store.get(name);
    asked.onsuccess = () => done(asked.result);
  });

  async function giveUp() {
    const value = await read().catch(() => undefined);
    await transact("readwrite", (store) => store.clear()).catch(() => {}); // so that a later page doesn't count the same games again
    return (await import("./stores.js")).memoryStore(value);
  }

  return {
    read: async () => (instead ? (await instead).read() : read().catch(() => undefined)),
    async change(alter) {
      if (instead) return (await instead).change(alter);
      /** @type {{error: unknown} | undefined} */
      let thrown;
      try {
        return await transact("readwrite", (store, done) => {
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
        });
      } catch {
        if (thrown) throw thrown.error;
        return (await (instead ??= giveUp())).change(alter);
      }
    },
    exclusively: async (work, run) => (await import("./locks.js")).exclusively(`${name}.${work}`, run),
  };
}
