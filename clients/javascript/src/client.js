// @ts-check
/**
 * Sends the games of a player, whatever carries the session.
 *
 * Each game has an id, under which the service counts it once. So requests are repeated until they have an answer.
 */

import { DAY_MS, entryOf, isDue, playerOf, waits } from "./device_journal.js";
import { SolisyncError, unanswered } from "./error.js";
import { accept, sendAgain } from "./settling.js";
import { repeated, request } from "./transport.js";

/**
 * @typedef {import("./device_journal.js").Kept} Kept
 * @typedef {{signal?: AbortSignal}} Options
 * @typedef {object} Carrier
 * @property {() => Promise<string>} account the account of the session, or else an error with the code "signed_out"
 * @property {<T>(work: (token: string) => Promise<T>, as?: string) => Promise<T>} authorized run `work` with an access token, and again with the next one; only as that account
 */

const BATCH = 100;
const ROUNDS = 3;
const FINAL = [400, 413]; // a replay with this answer would have it again

export class Client {
  /** @protected The revision of the last answer with progress, and the games of uploads without a verdict. */
  seen = { revision: /** @type {string | null} */ (null), awaited: /** @type {Set<string>} */ (new Set()) };

  /** @param {string} url the address of the service @param {Kept} kept @param {Carrier} carrier */
  constructor(url, kept, carrier) {
    /** @protected */ this.url = url.replace(/\/+$/, "");
    /** @protected */ this.kept = kept;
    /** @protected */ this.carrier = carrier;
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
    if (json.merged) this.seen.revision = revision ?? null;
    return json;
  }

  /** Send all games, upload all wins, and pull the newest progress. @param {Options & {again?: boolean}} [options] `again`: upload also what the service has refused */
  sync(options = {}) {
    return this.alone(() => this.send(options));
  }

  /** What must come before games. @protected @returns {Promise<void>} */
  async prepare() {}

  /** What follows uploads. @protected @returns {Promise<void>} */
  async uploaded() {}

  /** @protected @param {Options & {again?: boolean}} options */
  async send({ signal, again = false }) {
    signal?.throwIfAborted();
    await this.kept.save();
    await this.prepare();
    const name = await this.carrier.account();
    const former = await this.kept.opened();
    await former?.push(name, (body) => this.take(name, "POST", "/api/sync/push", { body }));
    await this.#count(name, signal);
    await this.#upload(name, again);
    await this.uploaded();
  }

  /** Send a request, and take the progress in its answer. @protected @param {string} name @param {string} method @param {string} path @param {{body?: string, signal?: AbortSignal}} [content] @param {(player: import("./device_journal.js").Player, answer: any) => void} [settle] */
  async take(name, method, path, content, settle) {
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
      if (!due.length && !round) await this.take(name, "GET", "/api/sync/pull", { signal });
      if (!due.length) return;
      for (let first = 0; first < due.length; first += BATCH)
        await this.#countSome(name, due.slice(first, first + BATCH), signal);
    }
  }

  /** @param {string} name @param {import("./device_journal.js").Game[]} games @param {AbortSignal} [signal] */
  async #countSome(name, games, signal) {
    const content = { body: JSON.stringify({ games }), signal };
    await this.take(name, "POST", "/api/games", content, (player, { games: results }) => {
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
      if (replay) this.seen.awaited.add(id);
    }
    if (refusal) throw refusal;
  }
}
