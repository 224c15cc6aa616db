// @ts-check
/** Stores, which keep one value: in memory, or in localStorage. indexed_db.js has the one for all tabs of a browser. */

/**
 * @typedef {object} Store
 * @property {() => Promise<any>} read return the value, or undefined at first
 * @property {<T>(alter: (value: any) => [any, T]) => Promise<T>} change in one transaction, which sees all earlier changes: call `alter` with the value, or undefined at first; store the first item that it returns, and return the second
 * @property {() => Promise<Store | null>} [former] the store of version 1.1 in the same place, if there is one
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

/** Keeps a value until the program ends. @param {any} [value] @returns {Store} */
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

/** @param {string} name @returns {Store} */
function itemStore(name) {
  const read = () => JSON.parse(localStorage.getItem(name) ?? "null") ?? undefined;
  return {
    read: async () => read(),
    async change(alter) {
      const [next, result] = alter(read());
      localStorage.setItem(name, JSON.stringify(next));
      return result;
    },
    exclusively: async (work, run) => (await import("./locks.js")).exclusively(`${name}.${work}`, run),
  };
}

/** Keeps the value in localStorage, for games that are open in one tab at a time: other tabs may read old values. @param {string} name @returns {Store} */
export const localStorageStore = (name) => ({
  ...itemStore(`${name}-2`),
  former: async () => (localStorage.getItem(name) ? itemStore(name) : null),
});
