// @ts-check
/** The state of a client in a store. */

import { sound, tidy } from "./journals.js";
import { SolisyncError } from "./transport.js";

/**
 * @typedef {import("./tokens.js").Session & {joining: Joining | null, journals: import("./journals.js").Journals}} State
 * @typedef {{token: string, key: string | null, refused: number}} Joining the refresh token of a guest whose games the player takes over, and its key until that is tried; the time of the service's last refusal
 */

/** What a store has after signing out. */
export const SIGNED_OUT = { player: null, isGuest: null, session: null, retryKey: null, refused: null, joining: null };

/** The value of a store, without invalid journals. @param {any} value @returns {State} */
function stateOf(value) {
  const state = { ...SIGNED_OUT, signing: null, guest: null, ...value };
  const { joining, journals } = state;
  if (typeof joining === "string") state.joining = { token: joining, key: null, refused: 0 }; // version 1.1 has stored it
  return { ...state, journals: sound(journals) };
}

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

/** Reads and changes the state. Each change is stored when it returns; errors of the store have the code "storage". */
export class Kept {
  /** The state that was read or stored last. @type {State} */
  #last = stateOf(undefined);
  /** Changes that the store has refused so far. @type {Set<(state: State) => void>} */
  #unsaved = new Set();

  /** @param {import("./stores.js").Store} store */
  constructor(store) {
    this.store = store;
  }

  async read() {
    return (this.#last = stateOf(await stored(() => this.store.read())));
  }

  /** The state to show: with what isn't stored yet, and as read before if the store can't be read. @returns {Promise<State>} */
  async shown() {
    await this.read().catch(() => {});
    const state = structuredClone(this.#last);
    for (const alter of this.#unsaved) alter(state);
    return state;
  }

  /** @template T @param {(state: State) => T} alter @returns {Promise<T>} */
  async change(alter) {
    const before = [...this.#unsaved];
    let state = this.#last;
    const result = await stored(() =>
      this.store.change((value) => {
        state = stateOf(value);
        for (const earlier of before) earlier(state);
        const result = alter(state);
        tidy(state.journals);
        return [state, result];
      }),
    );
    this.#last = state;
    for (const earlier of before) this.#unsaved.delete(earlier);
    return result;
  }

  /** Store a change that may be made twice, now or with a later change. @param {(state: State) => void} alter */
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
