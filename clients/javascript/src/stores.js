// @ts-check
/**
 * Stores, which keep one value: in memory, in localStorage, or in IndexedDB. file.js of the package has the one for Node.
 *
 * `change` is one transaction. It is atomic, and sees all earlier changes, also those of other tabs.
 */

import { exclusively } from "./locks.js";

/**
 * @typedef {object} Store
 * @property {() => Promise<any>} read return the value, or undefined at first
 * @property {<T>(alter: (value: any) => [any, T]) => Promise<T>} change call `alter` with the value, or undefined at first; store the first item that it returns, and return the second
 * @property {<T>(name: string, work: () => Promise<T>) => Promise<T>} exclusively run `work` when no other work of this name runs on the store
 */

/** Work of one name, one after the other, within this program. */
export class Queues {
  /** @type {Map<string, Promise<unknown>>} */
  #last = new Map();

  /** @template T @param {string} name @param {() => Promise<T>} work @returns {Promise<T>} */
  run(name, work) {
    const done = (this.#last.get(name) ?? Promise.resolve()).then(work, work);
    this.#last.set(name, done);
    return done;
  }
}

/** Keeps the value until the program ends. @param {any} [value] @returns {Store} */
export function memoryStore(value) {
  const queues = new Queues();
  return {
    read: async () => structuredClone(value),
    async change(alter) {
      const [next, result] = alter(structuredClone(value));
      value = structuredClone(next);
      return result;
    },
    exclusively: (name, work) => queues.run(name, work),
  };
}

/** Keeps the value in localStorage, for games that are open in one tab at a time: other tabs may read old values. @param {string} name @returns {Store} */
export function localStorageStore(name) {
  const read = () => JSON.parse(localStorage.getItem(name) ?? "null") ?? undefined;
  return {
    read: async () => read(),
    async change(alter) {
      const [next, result] = alter(read());
      localStorage.setItem(name, JSON.stringify(next));
      return result;
    },
    exclusively: (work, run) => exclusively(`${name}.${work}`, run),
  };
}

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
    const transaction = (await opening).transaction(name, mode);
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
    return memoryStore(value);
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
    exclusively: (work, run) => exclusively(`${name}.${work}`, run),
  };
}
