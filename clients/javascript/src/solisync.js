// @ts-check
/**
 * The client of solisync: a player's session, games, progress and events. docs/clients.md shows how to use it.
 *
 * This module has what needs no connection: it stores finished games and shows the player's progress. service.js, which
 * has the rest, loads at the first request.
 */

import { entering, isUnsent, Kept, waits } from "./device_journal.js";
import { loaded, SolisyncError } from "./error.js";
import { shown } from "./shown.js";
import { memoryStore } from "./stores.js";

export { indexedDbStore } from "./indexed_db.js";
export { localStorageStore, memoryStore } from "./stores.js";
export { SolisyncError };

/**
 * @typedef {import("./service.js").Account} Account
 * @typedef {import("./service.js").Change} Change
 * @typedef {import("./client.js").Options} Options
 * @typedef {import("./device_journal.js").GameRecord} GameRecord
 * @typedef {import("./stores.js").Store} Store
 * @typedef {import("../messages.js").VerdictAnswer["status"]} Status
 * @typedef {{signedIn: undefined, signedOut: string, progress: undefined, verdict: {replay_id: string, game_id: string | null, status: Status},
 *   trouble: SolisyncError, event: import("../messages.js").StreamEvent}} Events the data of events, by name
 */

const AGAIN_S = 60;

export class Solisync {
  /** @type {Map<string, Set<(data: any) => void>>} */
  #listeners = new Map();
  #closed = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** The boards of the stream, if one was asked for. @type {string[] | undefined} */
  #boards;
  #kept;
  #load;
  /** @type {Promise<Account> | undefined} */
  #loading;

  /** @param {string} url the address of the service @param {{store?: Store, background?: boolean, now?: () => Date}} [settings] `background`: sync by itself after each game, and again after errors */
  constructor(url, { store = memoryStore(), background = true, now = () => new Date() } = {}) {
    this.#kept = new Kept(store, now, () => import("./former.js"));
    const { signal: closed } = this.#closed;
    const owner = { tell: this.#tell.bind(this), later: this.#later.bind(this), closed };
    this.#load = async () => new (await loaded(import("./service.js"))).Account(url, this.#kept, owner);
    this.background = background;
    const online = () => {
      this.#loading?.then((account) => account.restart());
      this.#later(0);
    };
    globalThis.addEventListener?.("online", online, { signal: closed }); // in browsers
  }

  async #account() {
    this.#loading ??= this.#load().catch((error) => {
      this.#loading = undefined;
      throw error;
    });
    const account = await this.#loading;
    if (this.#boards) account.stream(this.#boards);
    return account;
  }

  /** A method of service.js. @template {keyof Account} Name @param {Name} name @returns {Account[Name]} */
  #online(name) {
    const run = async (/** @type {any[]} */ ...given) => /** @type {any} */ (await this.#account())[name](...given);
    return /** @type {any} */ (run);
  }

  /** Sign in to this device's guest, an account without a password, or create it. */
  guest = this.#online("guest");
  /** Create an account. */
  register = this.#online("register");
  /** Log in. */
  login = this.#online("login");
  /** Give the guest a username and a password. After a lost answer, the same again succeeds. */
  claim = this.#online("claim");
  /** Log in as a player, who takes over the guest's games. After an error, call this again. */
  join = this.#online("join");
  /** End the session. Unsent games stay in the store until the same player logs in. A guest is deleted, with its games. */
  signOut = this.#online("signOut");
  /** Exchange the tokens. Requests do this by themselves. */
  refresh = this.#online("refresh");
  /** The player's data from the service. */
  me = this.#online("me");
  /** The deal of the day, with its seed as text. */
  daily = this.#online("daily");
  /** Pull the newest progress. */
  pull = this.#online("pull");
  /** Push other progress than games, which the service merges with the player's. */
  push = this.#online("push");
  /** The verdict on a win, or null before its upload. */
  verdict = this.#online("verdict");

  /** The id of the signed-in account, or null. */
  player() {
    return this.#kept.player();
  }

  /** Continue the stored session; without one, run `begin`. @param {() => Promise<unknown>} begin such as `() => solis.guest()` */
  async restoreOr(begin) {
    if (!(await this.player())) await this.#online("restored")().catch(() => {}); // the next sync tries again
    if (!(await this.player())) await begin();
    else this.#later(0);
  }

  /** Call `listener` at each event of a name. Return a function that ends this. @template {keyof Events} Name @param {Name} name @param {(data: Events[Name]) => void} listener */
  on(name, listener) {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  /** @param {keyof Events} name @param {any} [data] */
  #tell(name, data) {
    for (const listener of this.#listeners.get(name) ?? []) queueMicrotask(() => listener(data)); // its errors are the game's
  }

  /** Store a finished game, and send it later; this needs no session. The same game again changes nothing. After an error with the code "storage", the client keeps the game in memory, and tries again to store it. @param {GameRecord} record */
  async finish(record) {
    const enter = entering(record, new Date(this.#kept.now()));
    await this.#kept
      .note(enter)
      .catch((error) => {
        this.#later(AGAIN_S);
        throw error;
      })
      .finally(() => this.#tell("progress"));
    this.#later(0);
  }

  /** Send all games, upload all wins, and pull the newest progress. @param {Options & {again?: boolean}} [options] `again`: upload also what the service has refused */
  async sync(options) {
    try {
      await this.#kept.save();
      await (await this.#account()).sync(options);
    } finally {
      this.#tell("progress");
    }
  }

  /** Sync after a pause, and again after errors. @param {number} seconds */
  #later(seconds) {
    if (!this.background || this.#closed.signal.aborted) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () =>
        this.sync().catch((error) => {
          if (error.code !== "signed_out") this.#tell("trouble", error);
          if (error.passes) this.#later(error.retryAfter || AGAIN_S);
        }),
      1000 * seconds,
    );
  }

  async #player() {
    await this.#kept.opened().catch(() => {});
    const { player, players } = await this.#kept.shown();
    return players[player ?? ""];
  }

  /** The player's statistics, with all unsent games; Infinity seconds of a fastest win before the first one. @returns {Promise<import("../messages.js").Stats>} */
  async totals() {
    return shown(await this.#player()).stats;
  }

  /** The player's progress, with the statistics and days of unsent games; null before the first sync. @returns {Promise<import("../messages.js").Payload | null>} */
  async progress() {
    const player = await this.#player();
    return player?.latest ? shown(player) : null;
  }

  /** The number of games that aren't sent or uploaded yet. */
  async unsent() {
    const { games = [] } = Object(await this.#player());
    return games.filter((/** @type {import("./device_journal.js").Entry} */ entry) => isUnsent(entry) || waits(entry))
      .length;
  }

  /** Keep a stream of events open, pull when the progress has changed elsewhere, and report verdicts. @param {string[]} [boards] whose changes are events too */
  stream(boards = []) {
    this.#boards ??= boards;
    this.#account().catch(() => {}); // the next request tries again
  }

  /** End the stream and the work in the background. The store stays. */
  close() {
    this.#closed.abort();
    clearTimeout(this.#timer);
  }
}
