// @ts-check
/** The methods of a player's client that need the service. solisync.js loads this when it needs the first one. */

import { Client } from "./client.js";
import { entryOf, playerOf, SIGNED_OUT } from "./device_journal.js";
import { loaded } from "./error.js";
import { Following } from "./following.js";
import { giveKey } from "./guest_keys.js";
import { accountOf, giveUpJoin, moveGames } from "./settling.js";
import { become, leaveGuest, Tokens } from "./tokens.js";
import { open, repeated, request } from "./transport.js";

/**
 * @typedef {import("./client.js").Options} Options
 * @typedef {{achievements?: any[], progress?: Record<string, any>, stats?: Record<string, any>} & Record<string, any>} Change
 * @typedef {object} Owner the client
 * @property {(name: keyof import("./solisync.js").Events, data?: any) => void} tell reports an event
 * @property {(seconds: number) => void} later syncs after a pause
 * @property {AbortSignal} closed
 */

export class Account extends Client {
  #tokens;
  #tools;
  #keyed = false;
  /** @type {Following | null} */
  #following = null;

  /** @param {string} url the address of the service @param {import("./device_journal.js").Kept} kept @param {Owner} owner */
  constructor(url, kept, owner) {
    const tokens = new Tokens(url, kept, (why) => owner.tell("signedOut", why));
    super(url, kept, tokens);
    this.owner = owner;
    this.#tokens = tokens;
    this.#tools = { kept, tokens, ask: this.ask.bind(this) };
  }

  /** Continue a session that the service has refused, if it accepts it again. */
  restored() {
    return this.alone(() => this.#restore());
  }

  async #restore() {
    if (await this.#tokens.restored()) this.owner.tell("signedIn");
  }

  #begun() {
    this.owner.tell("signedIn");
    this.owner.later(0);
  }

  /** @param {string} path @param {string} username @param {string} password @param {Options} options */
  #begin(path, username, password, { signal }) {
    return this.alone(async () => {
      await this.#joinFirst().catch(() => {}); // the player sends the guest's games
      const { pair, player } = await this.#tokens.begun(path, username, password, signal);
      await this.kept.change((journal) => {
        const { guest } = journal;
        const account = accountOf(pair);
        if (guest?.gone && guest.id && !guest.left) moveGames(journal, guest.id, account, false);
        if (guest?.gone) journal.guest = null;
        become(journal, pair, player);
      });
      this.#begun();
    });
  }

  /** Sign in to this device's guest, an account without a password, or create it. If there is a session, it stays. @param {Options & {anew?: boolean}} [options] `anew`: after an error, give up the guest that is gone, or the player's session that is set aside. A gone guest's unsent games go along */
  guest(options) {
    return this.alone(async () => {
      const { session, isGuest } = await this.kept.read();
      if (session && isGuest === false && !options?.anew) await this.#tokens.session(); // a player's session that is set aside
      if (!(await this.kept.player()) && (await this.#tokens.guest(options))) this.#begun();
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
    return this.ask("GET", "/api/me", options);
  }

  /** Give the guest a username and a password. After a lost answer, the same again succeeds. @param {string} username @param {string} password @param {Options & {listReplays?: boolean}} [options] `listReplays`: list the guest's wins publicly */
  async claim(username, password, { signal, listReplays = false } = {}) {
    const body = JSON.stringify({ username, password: password.normalize(), list_replays: listReplays });
    const { id } = await this.ask("POST", "/api/me/claim", { body, signal });
    await this.kept.change((journal) => {
      if (journal.player === id) leaveGuest(journal);
    });
  }

  /** Log in as a player, who takes over the guest's games. After an error, call this again. @param {string} username @param {string} password @param {Options} [options] */
  join(username, password, options = {}) {
    return this.alone(async () => {
      const { beginJoin, finishJoin } = await loaded(import("./joins.js"));
      await finishJoin(this.#tools); // of this player or of another one, if a join had no answer
      const me = await this.me(options);
      if (me.username === username.trim()) return; // it has succeeded
      await this.send(options); // the games of the guest reach the service
      const { pair, player } = await this.#tokens.begun("/api/auth/login", username, password, options.signal);
      await this.#tokens.settled((journal) => beginJoin(journal, pair, player));
      await finishJoin(this.#tools).finally(() => this.#begun());
    });
  }

  /** End the session on the service, and return whether it was a guest's, who is deleted then. */
  async #leave() {
    await this.#restore();
    await this.#joinFirst().catch(() => {}); // the player sends the guest's games
    const { guest = false } = await this.me();
    if (guest) await this.ask("DELETE", "/api/account");
    else await this.#tokens.leave();
    return guest;
  }

  /** End the session. Unsent games stay in the store until the same player logs in. A guest is deleted, with its games. */
  signOut() {
    return this.alone(async () => {
      const { player, session, refused, isGuest: wasGuest } = await this.kept.read();
      const isSetAside = !wasGuest && player && (!session || refused); // the service can't end it
      const isDeleted =
        !isSetAside &&
        (await this.#leave().catch((error) => {
          const isGone = error.code === "user_not_found"; // the answer to its deletion was lost
          if (!wasGuest || !(isGone || error.code === "signed_out")) throw error;
          return isGone;
        }));
      await this.kept.change((journal) => {
        const name = String(journal.player);
        giveUpJoin(journal);
        if (isDeleted) delete journal.players[name];
        else Object.assign(playerOf(journal, name), { latest: null, played: 0 });
        if (wasGuest || isDeleted || journal.guest?.left) journal.guest = null;
        Object.assign(journal, SIGNED_OUT);
      });
      this.owner.tell("signedOut", "left");
    });
  }

  /** Exchange the tokens. Requests do this by themselves. */
  async refresh() {
    await this.kept.opened();
    await this.#tokens.renew(await this.#tokens.session());
  }

  /** The deal of the day, with its seed as text. @param {Options} [options] @returns {Promise<import("./klondike_game.js").Day & {seed: string}>} */
  async daily(options = {}) {
    const { json } = await repeated(() => request(`${this.url}/api/daily-challenge`, options), options.signal);
    return { ...json, seed: String(json.seed) };
  }

  async #joinFirst() {
    if ((await this.kept.read()).joining)
      await (await loaded(import("./joins.js"))).firstJoin(this.#tools, (error) => this.owner.tell("trouble", error));
  }

  /** @protected */
  async prepare() {
    await this.#restore();
    await this.#joinFirst();
    const { isGuest, guest, player } = await this.kept.read();
    if (this.#keyed || isGuest === false || (guest?.had && guest.id === player)) return;
    await giveKey(this.#tools);
    this.#keyed = true; // once a start
  }

  /** Pull the newest progress. @param {Options} [options] */
  pull(options) {
    return this.alone(async () => {
      await this.take(await this.carrier.account(), "GET", "/api/sync/pull", options);
      this.owner.tell("progress");
    });
  }

  /** Push other progress than games, which the service merges with the player's: achievements, unlocks, and fields of your own. The same again changes nothing. @param {Change} change @param {Options} [options] */
  async push(change, options) {
    const body = JSON.stringify((await loaded(import("./unplayed.js"))).unplayed(change));
    return this.alone(async () => {
      await this.take(await this.carrier.account(), "POST", "/api/sync/push", { ...options, body });
      this.owner.tell("progress");
    });
  }

  /** The verdict on a win, or null before its upload. @param {string} id the game's @param {Options} [options] @returns {Promise<import("../messages.js").VerdictAnswer | null>} */
  async verdict(id, options) {
    const replay = entryOf(await this.kept.read(), id)?.win?.replay;
    return replay ? this.ask("GET", `/api/replays/${replay}/verdict`, options) : null;
  }

  /** @protected */
  async uploaded() {
    await this.#following?.settled(); // events of verdicts may have come before the answers to the uploads
  }

  /** Keep a stream of events open, pull when the progress has changed elsewhere, and report verdicts. @param {string[]} boards whose changes are events too */
  stream(boards) {
    if (this.#following) return;
    const { kept, carrier, url, seen, owner } = this;
    const query = new URLSearchParams(boards.map((board) => ["board", board]));
    this.#following = new Following({
      kept,
      seen,
      open: (signal) => carrier.authorized((token) => open(`${url}/api/events?${query}`, { token, signal })),
      tell: owner.tell,
      pull: () => this.pull(),
      verdict: (id) => this.verdict(id),
    });
    this.#following.run(owner.closed).finally(() => (this.#following = null));
  }

  /** Open the stream again, without a pause. */
  restart() {
    this.#following?.stream.restart();
  }
}
