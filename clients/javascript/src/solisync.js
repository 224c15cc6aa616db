// @ts-check
/** The client of solisync: a player's session, games, progress and events. docs/clients.md shows how to use it. */

import { Stream } from "./events.js";
import { accept, enterInto, forgetProgress, journalOf, localTime, moveGames } from "./journals.js";
import { beginJoin, Joins } from "./joins.js";
import { Kept, SIGNED_OUT } from "./kept.js";
import { statsOf, withGames } from "./progress.js";
import { Sender } from "./sender.js";
import { memoryStore } from "./stores.js";
import { accountOf, become, leaveGuest, newGuest, Tokens } from "./tokens.js";
import { open, repeated, request, SolisyncError } from "./transport.js";

export { indexedDbStore } from "./indexed_db.js";
export { localStorageStore, memoryStore } from "./stores.js";
export { SolisyncError };

/**
 * @typedef {import("./stores.js").Store} Store
 * @typedef {import("./kept.js").State} State
 * @typedef {import("./progress.js").Day} Day
 * @typedef {{id: string, won: boolean, score: number, seconds: number, draw: 1 | 3, undone?: boolean, day?: Day | null, replay?: object | null}} GameRecord
 *   a finished game; `id` is a UUID, and `replay` of a win is what docs/replays.md describes, where the seed may be a BigInt
 * @typedef {{signal?: AbortSignal}} Options
 * @typedef {import("../messages.js").VerdictAnswer["status"]} Status
 * @typedef {{signedIn: undefined, signedOut: string, progress: undefined, verdict: {replay_id: string, game_id: string | null, status: Status},
 *   trouble: SolisyncError, event: import("../messages.js").StreamEvent}} Events the data of events, by name
 */

const AGAIN_S = 60;

/** The service refuses other numbers. @param {number} value */
const whole = (value) => Math.max(0, Math.floor(value));

export class Solisync {
  #url;
  #kept;
  #now;
  #background;
  #tokens;
  #sender;
  #joins;
  /** @type {Map<string, Set<(data: any) => void>>} */
  #listeners = new Map();
  #closed = new AbortController();
  /** @type {Stream | null} */
  #stream = null;
  /** The games of uploads without a verdict. @type {Set<string>} */
  #awaited = new Set();
  /** The verdicts that were reported, by replay. @type {Map<string, string>} */
  #verdicts = new Map();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** @type {string | null} the revision of the last pull or push */
  #revision = null;
  #keyed = false;

  /** @param {string} url the address of the service @param {{store?: Store, background?: boolean, now?: () => Date}} [options] `background`: sync by itself after each game, and again after errors */
  constructor(url, { store = memoryStore(), background = true, now = () => new Date() } = {}) {
    this.#url = url.replace(/\/+$/, "");
    this.#kept = new Kept(store);
    this.#background = background;
    this.#now = now;
    this.#tokens = new Tokens(this.#url, this.#kept, now, (why) => this.#tell("signedOut", why));
    const journals = {
      read: async () => (await this.#kept.read()).journals,
      change: (/** @type {any} */ alter) => this.#kept.change((state) => alter(state.journals)),
    };
    const ask = (/** @type {string} */ method, /** @type {string} */ path, /** @type {string | null} */ body = null) =>
      this.#ask(method, path, { body });
    this.#joins = new Joins(this.#kept, this.#tokens, ask, now, (error) => this.#tell("trouble", error));
    this.#sender = new Sender(journals, (method, path, body, as) => this.#ask(method, path, { body, as }), now);
    const online = () => {
      this.#stream?.restart();
      this.#later(0);
    };
    globalThis.addEventListener?.("online", online, { signal: this.#closed.signal }); // in browsers
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

  /** @template T @param {() => Promise<T>} work which nothing that sends games or changes the player may interrupt @returns {Promise<T>} */
  #alone(work) {
    return this.#kept.exclusively("sync", work);
  }

  /** Send a request as the player, which may be repeated, and return its JSON. @param {string} method @param {string} path @param {{body?: string | null, as?: string, signal?: AbortSignal}} [content] */
  async #ask(method, path, { body = null, as, signal } = {}) {
    const { json, headers } = await this.#tokens.authorized(
      (token) => repeated(() => request(`${this.#url}${path}`, { method, body, token, signal }), signal),
      as,
    );
    if (path === "/api/sync/pull") this.#revision = /"(.*)"/.exec(headers.get("ETag") ?? "")?.[1] ?? null;
    return json;
  }

  // The session

  /** The id of the signed-in account, or null. */
  async player() {
    const { player, session, refused } = await this.#kept.read();
    return session && !refused ? player : null;
  }

  /** Continue the stored session; without one, run `begin`. @param {() => Promise<unknown>} begin such as `() => solis.guest()` */
  async restoreOr(begin) {
    if (!(await this.player())) await this.#alone(() => this.#restore()).catch(() => {}); // the next sync tries again
    if (!(await this.player())) await begin();
    else this.#later(0);
  }

  /** Continue a session that the service has refused, if it accepts it again. */
  async #restore() {
    if (await this.#tokens.restored()) this.#tell("signedIn");
  }

  /** @param {string} path @param {string} username @param {string} password @param {Options} options */
  #begin(path, username, password, { signal }) {
    return this.#alone(async () => {
      const { pair, player } = await this.#tokens.begun(path, username, password, signal);
      await this.#kept.change((state) => {
        const { guest, joining } = state;
        const account = accountOf(pair);
        if (guest?.gone && guest.id && !guest.left) moveGames(state.journals, guest.id, account);
        if (guest?.gone) state.guest = null;
        state.joining = account === state.player ? joining : null;
        become(state, pair, player);
      });
      this.#tell("signedIn");
      this.#later(0);
    });
  }

  /** Sign in to this device's guest, an account without a password, or create it. If there is a session, it stays. @param {Options & {anew?: boolean}} [options] `anew`: after an error, give up the guest that is gone, or the player's session that is set aside. A gone guest's unsent games go along */
  guest(options) {
    return this.#alone(async () => {
      const { session, isGuest } = await this.#kept.read();
      if (session && isGuest === false && !options?.anew) await this.#tokens.session(); // a player's session that is set aside
      if ((await this.player()) || !(await this.#tokens.guest(options))) return;
      this.#tell("signedIn");
      this.#later(0);
    });
  }

  /** Create an account. @param {string} username @param {string} password @param {Options} [options] */
  register(username, password, options = {}) {
    return this.#begin("/api/auth/register", username, password, options);
  }

  /** Log in. @param {string} username @param {string} password @param {Options} [options] */
  login(username, password, options = {}) {
    return this.#begin("/api/auth/login", username, password, options);
  }

  /** The player's data from the service. @param {Options} [options] @returns {Promise<import("../messages.js").Me>} */
  me(options) {
    return this.#ask("GET", "/api/me", options);
  }

  /** Give the guest a username and a password. After a lost answer, the same again succeeds. @param {string} username @param {string} password @param {Options & {listReplays?: boolean}} [options] `listReplays`: list the guest's wins publicly */
  async claim(username, password, { signal, listReplays = false } = {}) {
    const body = JSON.stringify({ username, password: password.normalize(), list_replays: listReplays });
    const { id } = await this.#ask("POST", "/api/me/claim", { body, signal });
    await this.#kept.change((state) => {
      if (state.player === id) leaveGuest(state);
    });
  }

  /** Log in as a player, who takes over the guest's games. After an error, call this again. @param {string} username @param {string} password @param {Options} [options] */
  join(username, password, options = {}) {
    return this.#alone(async () => {
      if ((await this.#kept.read()).joining === null) {
        const { username: name } = await this.me(options);
        if (name === username.trim()) return; // it has succeeded before
        await this.#send(options); // the games of the guest reach the service
        const { pair, player } = await this.#tokens.begun("/api/auth/login", username, password, options.signal);
        await this.#tokens.settled((state) => beginJoin(state, pair, player));
      }
      await this.#joins.finish().finally(() => {
        this.#tell("signedIn");
        this.#later(0);
      });
    });
  }

  /** End the session. Unsent games stay in the store until the same player logs in. A guest is deleted, with its games. */
  signOut() {
    return this.#alone(async () => {
      const { refused, isGuest } = await this.#kept.read();
      const isSetAside = refused && isGuest === false; // the service can't end it
      const { guest = false } = isSetAside ? {} : await this.me();
      if (guest) await this.#ask("DELETE", "/api/account");
      else if (!isSetAside) await this.#tokens.leave();
      await this.#kept.change((state) => {
        if (guest) delete state.journals.of[String(state.player)];
        else forgetProgress(state.journals, String(state.player));
        if (guest || state.guest?.left) state.guest = null;
        Object.assign(state, SIGNED_OUT);
      });
      this.#tell("signedOut", "left");
    });
  }

  /** Exchange the tokens. Requests do this by themselves. */
  async refresh() {
    await this.#tokens.renew(await this.#tokens.session());
  }

  // Games

  /** The deal of the day, with its seed as text. @param {Options} [options] @returns {Promise<Day & {seed: string}>} */
  async daily(options = {}) {
    const { json } = await repeated(() => request(`${this.#url}/api/daily-challenge`, options), options.signal);
    return { ...json, seed: String(json.seed) };
  }

  /** Store a finished game, and send it later. The same game again changes nothing. After an error with the code "storage", the client keeps the game in memory, and tries again to store it. @param {GameRecord} record */
  async finish({ id, won, score, seconds, draw, undone = false, day = null, replay = null }) {
    const body =
      replay &&
      JSON.stringify({ ...replay, game_id: id }, (_, value) => (typeof value === "bigint" ? String(value) : value));
    const at = localTime(this.#now());
    const game = { id, at, won, score: won ? whole(score) : 0, seconds: whole(seconds), draw, undone, day };
    /** @type {string | null} */
    let owner = null;
    await this.#kept
      .note(({ player, journals }) => {
        if ((owner ??= player) !== null) enterInto(journals, owner, game, body);
      })
      .catch((error) => {
        this.#tell("progress");
        this.#later(AGAIN_S);
        throw error;
      });
    if (owner === null) throw new SolisyncError(401, "signed_out", "Sign in first.");
    this.#tell("progress");
    this.#later(0);
  }

  /** Push all games, upload all wins, and pull the newest progress. @param {Options} [options] */
  sync(options = {}) {
    return this.#alone(() => this.#send(options)).finally(() => this.#tell("progress"));
  }

  /** Give a guest a key that began with version 1.1. @param {string} account */
  async #giveKey(account) {
    const { isGuest, guest } = await this.#kept.read();
    if (this.#keyed || isGuest === false || (guest?.id === account && guest.had)) return;
    const me = await this.me();
    this.#keyed = true; // once a start
    const key = await this.#kept.change((state) => {
      if (state.player !== account) return null;
      state.isGuest = me.guest === true;
      if (state.isGuest && state.guest?.id !== account) state.guest = newGuest(account);
      return state.isGuest && state.guest?.key;
    });
    if (!key) return;
    try {
      await this.#ask("PUT", "/api/me/guest-key", { body: JSON.stringify({ guest_key: key }) });
    } catch {
      return; // a node of version 1.1 knows no keys
    }
    await this.#kept.change(({ guest }) => {
      if (guest?.key === key) guest.had = true;
    });
  }

  /** @param {Options} options */
  async #send({ signal }) {
    signal?.throwIfAborted();
    await this.#kept.save();
    await this.#restore();
    await this.#joins.first();
    const name = accountOf(await this.#tokens.session());
    await this.#giveKey(name);
    await this.#sender.count(name, true);
    const { uploaded: before } = (await this.#kept.read()).journals;
    await this.#sender.upload(name).finally(async () => {
      const { uploaded } = (await this.#kept.read()).journals;
      for (const game of Object.keys(uploaded)) if (!before[game]) this.#awaited.add(game);
    });
    if (this.#stream?.open) await this.#askForVerdicts(); // their events may have come before the answers to the uploads
  }

  /** Pull the newest progress, unless a push has no answer. @param {Options} [options] */
  pull({ signal } = {}) {
    return this.#alone(async () => {
      const name = accountOf(await this.#tokens.session());
      const asked = journalOf((await this.#kept.read()).journals, name);
      if (asked.sent) return;
      const { merged } = await this.#ask("GET", "/api/sync/pull", { as: name, signal });
      await this.#kept.change((state) => accept(state.journals, name, merged, asked));
      this.#tell("progress");
    });
  }

  /** Sync after a pause, and again after errors. @param {number} seconds */
  #later(seconds) {
    if (!this.#background || this.#closed.signal.aborted) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () =>
        this.sync().catch((error) => {
          this.#tell("trouble", error);
          if (error.passes) this.#later(error.retryAfter || AGAIN_S);
        }),
      1000 * seconds,
    );
  }

  async #journal() {
    const { player, journals } = await this.#kept.shown();
    return journalOf(journals, player ?? "");
  }

  /** The player's statistics, with all unsent games; Infinity seconds of a fastest win before the first sync. @returns {Promise<import("../messages.js").Stats>} */
  async totals() {
    const { base, games } = await this.#journal();
    return statsOf(base, games);
  }

  /** The player's progress, with all unsent games; null before the first sync. @returns {Promise<import("../messages.js").Payload | null>} */
  async progress() {
    const { base, games } = await this.#journal();
    return base && { ...base, ...withGames(base, games, localTime(this.#now())) };
  }

  /** The number of games and uploads that are not sent yet. */
  async unsent() {
    const { games, wins } = await this.#journal();
    return Math.max(games.length, wins.filter(({ refused }) => !refused).length);
  }

  /** The verdict on a win, or null before its upload. @param {string} id the game's @param {Options} [options] @returns {Promise<import("../messages.js").VerdictAnswer | null>} */
  async verdict(id, options) {
    const { uploaded } = (await this.#kept.read()).journals;
    return uploaded[id] ? this.#ask("GET", `/api/replays/${uploaded[id]}/verdict`, options) : null;
  }

  // Events

  /** Keep a stream of events open, pull when the progress has changed elsewhere, and report verdicts. @param {string[]} [boards] whose changes are events too */
  stream(boards = []) {
    if (this.#stream) return;
    const query = new URLSearchParams(boards.map((board) => ["board", board]));
    const ask = (/** @type {AbortSignal} */ signal) =>
      this.#tokens.authorized((token) => open(`${this.#url}/api/events?${query}`, { token, signal }));
    this.#stream = new Stream(ask, (event) => this.#hear(event).catch((error) => this.#tell("trouble", error)));
    this.#stream
      .run(this.#closed.signal)
      .catch((error) => this.#tell("trouble", error))
      .finally(() => (this.#stream = null));
  }

  /** @param {import("./events.js").StreamEvent} event */
  async #hear({ event, data }) {
    if (event === "alive") return;
    this.#tell("event", { event, data });
    if (event === "verdict") await this.#judged(data.replay_id, data.status);
    if (event === "progress" && data.own) this.#revision = data.revision;
    else if ((event === "hello" || event === "progress") && data.revision !== this.#revision) await this.pull();
    if (event === "hello") await this.#askForVerdicts(); // their events may have been sent before the stream was open
  }

  async #askForVerdicts() {
    for (const game of this.#awaited) {
      const verdict = await this.verdict(game);
      if (verdict && verdict.status !== "pending")
        await this.#judged((await this.#kept.read()).journals.uploaded[game], verdict.status);
    }
  }

  /** Report a verdict once. @param {string} replay @param {Status} status */
  async #judged(replay, status) {
    const { uploaded } = (await this.#kept.read()).journals;
    const game = Object.keys(uploaded).find((id) => uploaded[id] === replay) ?? null;
    if (game) this.#awaited.delete(game);
    if (this.#verdicts.get(replay) === status) return;
    this.#verdicts.set(replay, status);
    this.#tell("verdict", { replay_id: replay, game_id: game, status });
  }

  /** End the stream and the work in the background. The store stays. */
  close() {
    this.#closed.abort();
    clearTimeout(this.#timer);
  }
}
