// @ts-check
/**
 * Games, progress and events of a player, whatever carries the session.
 *
 * Each game has an id, under which the service counts it once. So requests are repeated until they have an answer.
 */

import { accept, DAY_MS, entering, entryOf, isDue, isUnsent, playerOf, sendAgain, waits } from "./device_journal.js";
import { shown } from "./shown.js";
import { open, repeated, request, SolisyncError, unanswered } from "./transport.js";

/**
 * @typedef {import("./device_journal.js").Kept} Kept
 * @typedef {{signal?: AbortSignal}} Options
 * @typedef {import("./device_journal.js").GameRecord} GameRecord
 * @typedef {{achievements?: any[], progress?: Record<string, any>, stats?: Record<string, any>} & Record<string, any>} Change
 * @typedef {import("../messages.js").VerdictAnswer["status"]} Status
 * @typedef {{signedIn: undefined, signedOut: string, progress: undefined, verdict: {replay_id: string, game_id: string | null, status: Status},
 *   trouble: SolisyncError, event: import("../messages.js").StreamEvent}} Events the data of events, by name
 * @typedef {object} Carrier
 * @property {() => Promise<string>} account the account of the session, or else an error with the code "signed_out"
 * @property {<T>(work: (token: string) => Promise<T>, as?: string) => Promise<T>} authorized run `work` with an access token, and again with the next one; only as that account
 */

const AGAIN_S = 60;
const BATCH = 100;
const ROUNDS = 3;
const FINAL = [400, 413]; // a replay with this answer would have it again

export class Client {
  /** @type {Map<string, Set<(data: any) => void>>} */
  #listeners = new Map();
  #closed = new AbortController();
  /** @type {Promise<import("./following.js").Following> | null} */
  #following = null;
  /** The revision of the last answer with progress, and the games of uploads without a verdict. */
  #seen = { revision: /** @type {string | null} */ (null), awaited: /** @type {Set<string>} */ (new Set()) };
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {string} url the address of the service @param {Kept} kept @param {Carrier} carrier @param {boolean} background */
  constructor(url, kept, carrier, background) {
    /** @protected */ this.url = url.replace(/\/+$/, "");
    /** @protected */ this.kept = kept;
    /** @protected */ this.carrier = carrier;
    this.background = background;
    const online = () => {
      this.#following?.then(({ stream }) => stream.restart());
      this.later(0);
    };
    globalThis.addEventListener?.("online", online, { signal: this.#closed.signal }); // in browsers
  }

  /** Call `listener` at each event of a name. Return a function that ends this. @template {keyof Events} Name @param {Name} name @param {(data: Events[Name]) => void} listener */
  on(name, listener) {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  /** @protected @param {keyof Events} name @param {any} [data] */
  tell(name, data) {
    for (const listener of this.#listeners.get(name) ?? []) queueMicrotask(() => listener(data)); // its errors are the game's
  }

  /** @protected @template T @param {() => Promise<T>} work which nothing that sends games or changes the player may interrupt @returns {Promise<T>} */
  async alone(work) {
    await this.kept.opened();
    return this.kept.exclusively("sync", work);
  }

  /** Send a request as the player, which may be repeated, and return its JSON. @protected @param {string} method @param {string} path @param {{body?: string | null, as?: string, signal?: AbortSignal}} [content] */
  async ask(method, path, { body = null, as, signal } = {}) {
    await this.kept.opened();
    const { json, headers } = await this.carrier.authorized(
      (token) => repeated(() => request(`${this.url}${path}`, { method, body, token, signal }), signal),
      as,
    );
    const [, revision] = /"(.*)"/.exec(headers.get("ETag") ?? "") ?? [];
    if (json.merged) this.#seen.revision = revision ?? null;
    return json;
  }

  // Games

  /** Store a finished game, and send it later; this needs no session. The same game again changes nothing. After an error with the code "storage", the client keeps the game in memory, and tries again to store it. @param {GameRecord} record */
  async finish(record) {
    const enter = entering(record, new Date(this.kept.now()));
    await this.kept
      .note(enter)
      .catch((error) => {
        this.later(AGAIN_S);
        throw error;
      })
      .finally(() => this.tell("progress"));
    this.later(0);
  }

  /** Send all games, upload all wins, and pull the newest progress. @param {Options & {again?: boolean}} [options] `again`: upload also what the service has refused */
  sync(options = {}) {
    return this.alone(() => this.send(options)).finally(() => this.tell("progress"));
  }

  /** What must come before games. @protected @returns {Promise<void>} */
  async prepare() {}

  /** @protected @param {Options & {again?: boolean}} options */
  async send({ signal, again = false }) {
    signal?.throwIfAborted();
    await this.kept.save();
    await this.prepare();
    const name = await this.carrier.account();
    const former = await this.kept.opened();
    await former?.push(name, (body) => this.#take(name, "POST", "/api/sync/push", { body }));
    await this.#count(name, signal);
    await this.#upload(name, again);
    await (await this.#following)?.settled(); // events of verdicts may have come before the answers to the uploads
  }

  /** Send a request, and take the progress in its answer. @param {string} name @param {string} method @param {string} path @param {{body?: string, signal?: AbortSignal}} [content] @param {(player: import("./device_journal.js").Player, answer: any) => void} [settle] */
  async #take(name, method, path, content, settle) {
    const answer = await this.ask(method, path, { ...content, as: name });
    if (!answer.merged?.stats) throw unanswered(); // from another server
    await this.kept.change((journal) => {
      const player = playerOf(journal, name);
      accept(player, answer.merged, answer.games?.filter((/** @type {any} */ { counted }) => counted).length);
      settle?.(player, answer);
    });
  }

  /** Send the games that the service may not know; without any, pull. @param {string} name @param {AbortSignal} [signal] */
  async #count(name, signal) {
    for (let round = 0; round < ROUNDS; round++) {
      const today = new Date(this.kept.now()).toISOString().slice(0, 10);
      const due = await this.kept.change((journal) => {
        const player = playerOf(journal, name);
        if (player.day !== today) sendAgain(player, this.kept.now() - 2 * DAY_MS);
        player.day = today;
        return player.games.filter(isDue).map(({ game }) => game);
      });
      if (!due.length && !round) await this.#take(name, "GET", "/api/sync/pull", { signal });
      if (!due.length) return;
      for (let first = 0; first < due.length; first += BATCH)
        await this.#countSome(name, due.slice(first, first + BATCH), signal);
    }
  }

  /** @param {string} name @param {import("./device_journal.js").Game[]} games @param {AbortSignal} [signal] */
  async #countSome(name, games, signal) {
    const content = { body: JSON.stringify({ games }), signal };
    await this.#take(name, "POST", "/api/games", content, (player, { games: results }) => {
      for (const [place, { error }] of results.entries()) {
        const entry = player.games.find(({ game }) => game.game_id === games[place].game_id);
        if (entry) Object.assign(entry, { settled: entry.settled ?? this.kept.now(), again: false, error });
      }
    }).catch((error) => {
      if (error.code !== "not_found") throw error;
      throw new SolisyncError(503, "unavailable", "The service can’t count this game yet. Nothing is lost."); // version 1.1
    });
  }

  /** Upload all wins, and throw the first refusal at the end. After "replay_storage_full", wins wait for a day. @param {string} name @param {boolean} again */
  async #upload(name, again) {
    const wins = await this.kept.change((journal) => {
      const player = playerOf(journal, name);
      for (const { win } of again ? player.games : []) if (win) win.refused = false;
      const isFull = !again && Math.abs(this.kept.now() - player.full) < DAY_MS;
      return isFull ? [] : player.games.filter(waits).map(({ game, win }) => ({ id: game.game_id, body: win?.body }));
    });
    let refusal;
    for (const { id, body } of wins) {
      const { id: replay, error } = await this.ask("POST", "/api/replays", { body, as: name }).catch((error) => ({
        error,
      }));
      if (error && (!FINAL.includes(error.status) || error.passes)) throw error;
      refusal ??= error;
      const isFull = error?.code === "replay_storage_full";
      await this.kept.change((journal) => {
        playerOf(journal, name).full = isFull ? this.kept.now() : 0;
        const entry = entryOf(journal, id);
        if (entry && !isFull)
          entry.win = { body: replay ? null : (body ?? null), replay: replay ?? null, refused: !replay };
      });
      if (isFull) break;
      if (replay) this.#seen.awaited.add(id);
    }
    if (refusal) throw refusal;
  }

  /** Pull the newest progress. @param {Options} [options] */
  pull(options) {
    return this.alone(async () => {
      await this.#take(await this.carrier.account(), "GET", "/api/sync/pull", options);
      this.tell("progress");
    });
  }

  /** Push other progress than games, which the service merges with the player's: achievements, unlocks, and fields of your own. The same again changes nothing. @param {Change} change @param {Options} [options] */
  async push(change, options) {
    const body = JSON.stringify((await import("./unplayed.js")).unplayed(change));
    return this.alone(async () => {
      await this.#take(await this.carrier.account(), "POST", "/api/sync/push", { ...options, body });
      this.tell("progress");
    });
  }

  /** Sync after a pause, and again after errors. @protected @param {number} seconds */
  later(seconds) {
    if (!this.background || this.#closed.signal.aborted) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () =>
        this.sync().catch((error) => {
          if (error.code !== "signed_out") this.tell("trouble", error);
          if (error.passes) this.later(error.retryAfter || AGAIN_S);
        }),
      1000 * seconds,
    );
  }

  async #player() {
    await this.kept.opened().catch(() => {});
    const { player, players } = await this.kept.shown();
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

  /** The verdict on a win, or null before its upload. @param {string} id the game's @param {Options} [options] @returns {Promise<import("../messages.js").VerdictAnswer | null>} */
  async verdict(id, options) {
    const replay = entryOf(await this.kept.read(), id)?.win?.replay;
    return replay ? this.ask("GET", `/api/replays/${replay}/verdict`, options) : null;
  }

  // Events

  /** Keep a stream of events open, pull when the progress has changed elsewhere, and report verdicts. @param {string[]} [boards] whose changes are events too */
  stream(boards = []) {
    const { kept, carrier, url } = this;
    const query = new URLSearchParams(boards.map((board) => ["board", board]));
    const tools = {
      kept,
      seen: this.#seen,
      open: (/** @type {AbortSignal} */ signal) =>
        carrier.authorized((token) => open(`${url}/api/events?${query}`, { token, signal })),
      tell: this.tell.bind(this),
      pull: () => this.pull(),
      verdict: (/** @type {string} */ id) => this.verdict(id),
    };
    this.#following ??= import("./following.js").then(({ Following }) => {
      const following = new Following(tools);
      following.run(this.#closed.signal).finally(() => (this.#following = null));
      return following;
    });
  }

  /** End the stream and the work in the background. The store stays. */
  close() {
    this.#closed.abort();
    clearTimeout(this.#timer);
  }
}
