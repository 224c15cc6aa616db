// @ts-check
/** The client of solisync: a player's session, games, progress and events. docs/clients.md shows how to use it. */

import { Stream } from "./events.js";
import { accept, enterInto, forgetProgress, journalOf, localTime, moveGames, sound, tidy } from "./journals.js";
import { statsOf, withGames } from "./progress.js";
import { Sender } from "./sender.js";
import { memoryStore } from "./stores.js";
import { accountOf, Tokens } from "./tokens.js";
import { open, post, repeated, request, SolisyncError } from "./transport.js";

export { indexedDbStore } from "./indexed_db.js";
export { localStorageStore, memoryStore } from "./stores.js";
export { SolisyncError };

/**
 * @typedef {import("./stores.js").Store} Store
 * @typedef {import("./journals.js").Journals} Journals
 * @typedef {import("./progress.js").Day} Day
 * @typedef {{player: string | null, session: import("./tokens.js").Pair | null, retryKey: string | null, joining: string | null, journals: Journals}} State
 *   `joining`: the refresh token of a guest whose games the player takes over
 * @typedef {{id: string, won: boolean, score: number, seconds: number, draw: 1 | 3, undone?: boolean, day?: Day | null, replay?: object | null}} GameRecord
 *   a finished game; `id` is a UUID, and `replay` of a win is what docs/replays.md describes, where the seed may be a BigInt
 * @typedef {{signal?: AbortSignal}} Options
 * @typedef {import("../messages.js").VerdictAnswer["status"]} Status
 * @typedef {{signedIn: undefined, signedOut: string, progress: undefined, verdict: {replay_id: string, game_id: string | null, status: Status},
 *   trouble: SolisyncError, event: import("../messages.js").StreamEvent}} Events the data of events, by name
 */

const AGAIN_S = 60;
const GONE = ["guest_gone", "not_a_guest", "unauthorized"]; // errors of a join that would never succeed

/** The value of a store, without what isn't valid. @param {any} value @returns {State} */
function stateOf(value) {
  const { player = null, session = null, retryKey = null, joining = null, journals } = Object(value);
  return { player, session, retryKey, joining, journals: sound(journals) };
}

export class Solisync {
  #url;
  #store;
  #now;
  #background;
  #tokens;
  #sender;
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

  /** @param {string} url the address of the service @param {{store?: Store, background?: boolean, now?: () => Date}} [options] `background`: sync by itself after each game, and again after errors */
  constructor(url, { store = memoryStore(), background = true, now = () => new Date() } = {}) {
    this.#url = url.replace(/\/+$/, "");
    this.#store = store;
    this.#background = background;
    this.#now = now;
    const kept = {
      read: () => this.#read(),
      change: (/** @type {any} */ alter) => this.#change(alter),
      exclusively: store.exclusively,
    };
    this.#tokens = new Tokens(this.#url, kept, (why) => this.#tell("signedOut", why));
    const journals = {
      read: async () => (await this.#read()).journals,
      change: (/** @type {any} */ alter) => this.#change((state) => alter(state.journals)),
    };
    this.#sender = new Sender(journals, (method, path, body, as) => this.#ask(method, path, { body, as }), now);
    const online = () => {
      this.#stream?.restart();
      this.#later(0);
    };
    globalThis.addEventListener?.("online", online, { signal: this.#closed.signal }); // in browsers
  }

  async #read() {
    return stateOf(await this.#store.read());
  }

  /** @template T @param {(state: State) => T} alter @returns {Promise<T>} */
  #change(alter) {
    return this.#store.change((value) => {
      const state = stateOf(value);
      const result = alter(state);
      tidy(state.journals);
      return [state, result];
    });
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
    return this.#store.exclusively("sync", work);
  }

  /** Send a request as the player, which may be repeated, and return its JSON. @param {string} method @param {string} path @param {{body?: string | null, as?: string, signal?: AbortSignal}} [content] */
  async #ask(method, path, { body = null, as, signal } = {}) {
    /** @type {Record<string, string>} */
    const headers = body === null ? {} : { "Content-Type": "application/json" };
    const { json, headers: fields } = await this.#tokens.authorized((token) =>
      repeated(() => request(`${this.#url}${path}`, { method, headers, body, token, signal }), signal), as);
    if (path === "/api/sync/pull") this.#revision = /"(.*)"/.exec(fields.get("ETag") ?? "")?.[1] ?? null;
    return json;
  }

  // The session

  /** The id of the signed-in account, or null. */
  async player() {
    const { player, session } = await this.#read();
    return session && player;
  }

  /** Continue the stored session; without one, run `begin`. @param {() => Promise<unknown>} begin such as `() => solis.guest()` */
  async restoreOr(begin) {
    if (!(await this.player())) await begin();
    else this.#later(0);
  }

  /** @param {string} path @param {object} body @param {Options & {keep?: boolean}} options `keep` keeps a session that another tab has just begun */
  #begin(path, body, { keep = false, signal }) {
    return this.#alone(async () => {
      if (keep && (await this.player())) return;
      const pair = await this.#tokens.begun(path, body, signal);
      await this.#change((state) => Object.assign(state, { player: accountOf(pair), session: pair, retryKey: null, joining: null }));
      this.#tell("signedIn");
      this.#later(0);
    });
  }

  /** Create a guest: an account without a password. If there is a session, it stays. @param {Options} [options] */
  guest({ signal } = {}) {
    return this.#begin("/api/auth/guest", {}, { keep: true, signal });
  }

  /** Create an account. @param {string} username @param {string} password @param {Options} [options] */
  register(username, password, { signal } = {}) {
    return this.#begin("/api/auth/register", { username, password }, { signal });
  }

  /** Log in. @param {string} username @param {string} password @param {Options} [options] */
  login(username, password, { signal } = {}) {
    return this.#begin("/api/auth/login", { username, password }, { signal });
  }

  /** The player's data from the service. @param {Options} [options] @returns {Promise<import("../messages.js").Me>} */
  me(options) {
    return this.#ask("GET", "/api/me", options);
  }

  /** Give the guest a username and a password. After a lost answer, the same again succeeds. @param {string} username @param {string} password @param {Options} [options] */
  async claim(username, password, options) {
    try {
      await this.#ask("POST", "/api/me/claim", { body: JSON.stringify({ username, password }), ...options });
    } catch (error) {
      if (error.code !== "not_a_guest" || (await this.me(options)).username !== username.trim()) throw error;
    }
  }

  /** Log in as a player, who takes over the guest's games. After an error, call this again. @param {string} username @param {string} password @param {Options} [options] */
  join(username, password, options = {}) {
    return this.#alone(async () => {
      if ((await this.#read()).joining === null) {
        const { username: name } = await this.me(options);
        if (name === username.trim()) return; // it has succeeded before
        await this.#send(options); // the games of the guest reach the service
        const pair = await this.#tokens.begun("/api/auth/login", { username, password }, options.signal);
        await this.#tokens.settled((state) => {
          moveGames(state.journals, String(state.player), accountOf(pair));
          Object.assign(state, { player: accountOf(pair), session: pair, joining: state.session?.refresh_token ?? null });
        });
      }
      await this.#join();
      this.#tell("signedIn");
      this.#later(0);
    });
  }

  async #join() {
    const { joining, player, journals } = await this.#read();
    if (joining === null) return;
    const asked = journalOf(journals, String(player));
    try {
      const { merged } = await this.#ask("POST", "/api/me/join", { body: JSON.stringify({ guest_refresh_token: joining }) });
      await this.#change((state) => {
        state.joining = null;
        if (!asked.sent) accept(state.journals, String(player), merged, asked);
      });
    } catch (error) {
      if (error.code === "unauthorized") await this.me(); // throws if the error was about the player's session
      if (GONE.includes(error.code)) await this.#change((state) => void (state.joining = null));
      throw error;
    }
  }

  /** End the session. Unsent games stay in the store until the same player logs in. */
  signOut() {
    return this.#alone(async () => {
      await this.#tokens.leave();
      await this.#change((state) => {
        forgetProgress(state.journals, String(state.player));
        Object.assign(state, { player: null, session: null, retryKey: null, joining: null });
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

  /** Store a finished game, and send it later. The same game again changes nothing. @param {GameRecord} record */
  async finish({ id, won, score, seconds, draw, undone = false, day = null, replay = null }) {
    const body = replay && JSON.stringify({ ...replay, game_id: id }, (_, value) => (typeof value === "bigint" ? String(value) : value));
    const points = won ? Math.max(0, Math.floor(score)) : 0; // the service refuses other numbers
    const game = { id, at: localTime(this.#now()), won, score: points, seconds: Math.max(0, Math.floor(seconds)), draw, undone, day };
    await this.#change(({ player, journals }) => {
      if (player === null) throw new SolisyncError(401, "signed_out", "Sign in first.");
      enterInto(journals, player, game, body);
    });
    this.#tell("progress");
    this.#later(0);
  }

  /** Push all games, upload all wins, and pull the newest progress. @param {Options} [options] */
  sync(options = {}) {
    return this.#alone(() => this.#send(options)).finally(() => this.#tell("progress"));
  }

  /** @param {Options} options */
  async #send({ signal }) {
    signal?.throwIfAborted();
    await this.#join();
    const name = accountOf(await this.#tokens.session());
    this.#sender.refused.clear();
    await this.#sender.count(name, true);
    const { uploaded: before } = (await this.#read()).journals;
    await this.#upload(name);
    const { uploaded } = (await this.#read()).journals;
    for (const game of Object.keys(uploaded)) if (!before[game]) this.#awaited.add(game);
    if (this.#stream?.open) await this.#askForVerdicts(); // their events may have come before the answers to the uploads
  }

  /** Upload all wins; a refused replay doesn't hold up the others. @param {string} name @returns {Promise<void>} */
  async #upload(name) {
    try {
      await this.#sender.upload(name);
    } catch (error) {
      if (error.status === 400 && !error.passes) await this.#upload(name);
      throw error;
    }
  }

  /** Pull the newest progress, unless a push has no answer. @param {Options} [options] */
  pull({ signal } = {}) {
    return this.#alone(async () => {
      const name = accountOf(await this.#tokens.session());
      const asked = journalOf((await this.#read()).journals, name);
      if (asked.sent) return;
      const { merged } = await this.#ask("GET", "/api/sync/pull", { as: name, signal });
      await this.#change((state) => accept(state.journals, name, merged, asked));
      this.#tell("progress");
    });
  }

  /** Sync after a pause, and again after errors. @param {number} seconds */
  #later(seconds) {
    if (!this.#background || this.#closed.signal.aborted) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.sync().catch((error) => {
      this.#tell("trouble", error);
      if (error.passes) this.#later(error.retryAfter || AGAIN_S);
    }), 1000 * seconds);
  }

  async #journal() {
    const { player, journals } = await this.#read();
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
    return Math.max(games.length, wins.length);
  }

  /** The verdict on a win, or null before its upload. @param {string} id the game's @param {Options} [options] @returns {Promise<import("../messages.js").VerdictAnswer | null>} */
  async verdict(id, options) {
    const { uploaded } = (await this.#read()).journals;
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
    this.#stream.run(this.#closed.signal).catch((error) => this.#tell("trouble", error)).finally(() => (this.#stream = null));
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
      if (verdict && verdict.status !== "pending") await this.#judged((await this.#read()).journals.uploaded[game], verdict.status);
    }
  }

  /** Report a verdict once. @param {string} replay @param {Status} status */
  async #judged(replay, status) {
    const { uploaded } = (await this.#read()).journals;
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
