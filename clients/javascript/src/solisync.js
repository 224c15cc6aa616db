// @ts-check
/** The client of solisync: a player's session, games, progress and events. docs/clients.md shows how to use it. */

import { Client } from "./client.js";
import { accountOf, Kept, moveGames, playerOf, SIGNED_OUT } from "./device_journal.js";
import { memoryStore } from "./stores.js";
import { become, leaveGuest, Tokens } from "./tokens.js";
import { repeated, request, SolisyncError } from "./transport.js";

export { indexedDbStore } from "./indexed_db.js";
export { localStorageStore, memoryStore } from "./stores.js";
export { SolisyncError };

/**
 * @typedef {import("./client.js").Options} Options
 * @typedef {import("./client.js").GameRecord} GameRecord
 * @typedef {import("./client.js").Change} Change
 * @typedef {import("./stores.js").Store} Store
 */

export class Solisync extends Client {
  #tokens;
  #tools;
  #keyed = false;

  /** @param {string} url the address of the service @param {{store?: Store, background?: boolean, now?: () => Date}} [settings] `background`: sync by itself after each game, and again after errors */
  constructor(url, { store = memoryStore(), background = true, now = () => new Date() } = {}) {
    const kept = new Kept(store, now, () => import("./former.js"));
    const tokens = new Tokens(url, kept, (why) => this.tell("signedOut", why));
    super(url, kept, tokens, background);
    this.#tokens = tokens;
    this.#tools = { kept: this.kept, tokens: this.#tokens, ask: this.ask.bind(this) };
  }

  /** The id of the signed-in account, or null. */
  async player() {
    await this.kept.opened();
    const { player, session, refused } = await this.kept.read();
    return session && !refused ? player : null;
  }

  /** Continue the stored session; without one, run `begin`. @param {() => Promise<unknown>} begin such as `() => solis.guest()` */
  async restoreOr(begin) {
    if (!(await this.player())) await this.alone(() => this.#restore()).catch(() => {}); // the next sync tries again
    if (!(await this.player())) await begin();
    else this.later(0);
  }

  /** Continue a session that the service has refused, if it accepts it again. */
  async #restore() {
    if (await this.#tokens.restored()) this.tell("signedIn");
  }

  #begun() {
    this.tell("signedIn");
    this.later(0);
  }

  /** @param {string} path @param {string} username @param {string} password @param {Options} options */
  #begin(path, username, password, { signal }) {
    return this.alone(async () => {
      const { pair, player } = await this.#tokens.begun(path, username, password, signal);
      await this.kept.change((journal) => {
        const { guest, joining } = journal;
        const account = accountOf(pair);
        if (guest?.gone && guest.id && !guest.left) moveGames(journal, guest.id, account, false);
        if (guest?.gone) journal.guest = null;
        journal.joining = account === journal.player ? joining : null;
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
      if (!(await this.player()) && (await this.#tokens.guest(options))) this.#begun();
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
      const { beginJoin, finishJoin } = await import("./joins.js");
      if ((await this.kept.read()).joining === null) {
        const { username: name } = await this.me(options);
        if (name === username.trim()) return; // it has succeeded before
        await this.send(options); // the games of the guest reach the service
        const { pair, player } = await this.#tokens.begun("/api/auth/login", username, password, options.signal);
        await this.#tokens.settled((journal) => beginJoin(journal, pair, player));
      }
      await finishJoin(this.#tools).finally(() => this.#begun());
    });
  }

  /** End the session. Unsent games stay in the store until the same player logs in. A guest is deleted, with its games. */
  signOut() {
    return this.alone(async () => {
      const { refused, isGuest } = await this.kept.read();
      const isSetAside = refused && isGuest === false; // the service can't end it
      const { guest = false } = isSetAside ? {} : await this.me();
      if (guest) await this.ask("DELETE", "/api/account");
      else if (!isSetAside) await this.#tokens.leave();
      await this.kept.change((journal) => {
        const name = String(journal.player);
        if (guest) delete journal.players[name];
        else Object.assign(playerOf(journal, name), { latest: null, played: 0 });
        if (guest || journal.guest?.left) journal.guest = null;
        Object.assign(journal, SIGNED_OUT);
      });
      this.tell("signedOut", "left");
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

  /** @protected */
  async prepare() {
    await this.#restore();
    if ((await this.kept.read()).joining)
      await (await import("./joins.js")).firstJoin(this.#tools, (error) => this.tell("trouble", error));
    const { isGuest, guest, player } = await this.kept.read();
    if (this.#keyed || isGuest === false || (guest?.had && guest.id === player)) return;
    await (await import("./guest_keys.js")).giveKey(this.#tools);
    this.#keyed = true; // once a start
  }
}
