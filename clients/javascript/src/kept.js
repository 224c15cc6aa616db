// @ts-check
/** The journal in a store. */

import { journalOf, tidy } from "./device_journal.js";
import { SolisyncError } from "./transport.js";

/** @typedef {import("./device_journal.js").Journal} Journal */

/** @template T @param {() => Promise<T>} work of a store @returns {Promise<T>} */
async function stored(work) {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SolisyncError) throw error;
    throw Object.assign(new SolisyncError(0, "storage", "Your games can’t be saved on this device now."), {
      cause: error,
    });
  }
}

/** Reads and changes the journal. Each change is stored when it returns; errors of the store have the code "storage". */
export class Kept {
  /** The journal that was read or stored last. */
  #last = journalOf(undefined);
  /** Changes that the store has refused so far. @type {Set<(journal: Journal) => void>} */
  #unsaved = new Set();

  /** @type {Promise<import("./former.js").Former | null> | undefined} */
  #opened;

  /** @param {import("./stores.js").Store} store @param {() => Date} now */
  constructor(store, now) {
    this.store = store;
    this.now = () => Number(now());
  }

  /** The number of games that the store has refused so far. */
  get unsaved() {
    return this.#unsaved.size;
  }

  /** What version 1.1 has left to send, or null: its store is looked into once a start. @returns {Promise<import("./former.js").Former | null>} */
  opened() {
    this.#opened ??= stored(async () => {
      const { store } = this;
      const value = store.former ? await store.former() : Object(await store.read());
      if (!value || !(store.former || value.journals || value.former)) return null;
      const { takeOver, within } = await import("./former.js");
      return takeOver(store.former ? value : await within(store), this);
    }).catch((error) => {
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }

  async read() {
    return (this.#last = await stored(async () => journalOf(await this.store.read())));
  }

  /** The journal to show: with what isn't stored yet, and as read before if the store can't be read. @returns {Promise<Journal>} */
  async shown() {
    await this.read().catch(() => {});
    const journal = journalOf(structuredClone(this.#last));
    for (const alter of this.#unsaved) alter(journal);
    return journal;
  }

  /** @template T @param {(journal: Journal) => T} alter @returns {Promise<T>} */
  async change(alter) {
    const before = [...this.#unsaved];
    let journal = this.#last;
    const result = await stored(() =>
      this.store.change((value) => {
        journal = journalOf(value);
        for (const earlier of before) earlier(journal);
        const result = alter(journal);
        tidy(journal, this.now());
        return [journal, result];
      }),
    );
    this.#last = journal;
    for (const earlier of before) this.#unsaved.delete(earlier);
    return result;
  }

  /** Store a change that may be made twice, now or with a later change. @param {(journal: Journal) => void} alter */
  note(alter) {
    this.#unsaved.add(alter);
    return this.change(() => {});
  }

  /** Store the changes that the store has refused. */
  async save() {
    if (this.#unsaved.size) await this.change(() => {});
  }

  /** Run work alone; errors of the work itself stay as they are. @template T @param {string} name @param {() => Promise<T>} work @returns {Promise<T>} */
  async exclusively(name, work) {
    const run = await stored(() =>
      this.store.exclusively(name, async () => {
        const [result] = await Promise.allSettled([work()]);
        return result;
      }),
    );
    if (run.status === "rejected") throw run.reason;
    return run.value;
  }
}
