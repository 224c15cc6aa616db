// @ts-check
/**
 * A session with tokens in a store, and the key of this device's guest.
 *
 * A refresh token works once, so only one refresh runs at a time, over all calls and tabs. Each request for tokens has a
 * key that is stored until there is an answer: the same request then has the same answer, also after a crash. The service
 * may run on another database for a while, so a session that it refuses is set aside, and tried again for a week; the key
 * of a guest is always tried again.
 */

import { DAY_MS, playerOf } from "./device_journal.js";
import { SolisyncError, unanswered } from "./error.js";
import { accountOf, giveUpJoin, moveGames, sendAgain } from "./settling.js";
import { authorized, newKey, post, repeated } from "./transport.js";

/**
 * @typedef {import("./device_journal.js").Journal} Journal
 * @typedef {import("./device_journal.js").Pair} Pair
 * @typedef {import("./device_journal.js").Refusal} Refusal
 * @typedef {import("./device_journal.js").Guest} Guest
 * @typedef {{pair: Pair, player?: {id: string, username: string, guest: boolean}}} Begun
 */

const AGAIN_MS = 60_000;
const WEEK_MS = 7 * DAY_MS;
const COUNTING = 3; // so that one wrong clock ends nothing

/** Count a refusal, at most one a day. @param {Refusal | null} before @param {number} now @returns {Refusal} */
function counted(before, now) {
  const { since = now, at = 0, days = 0 } = before ?? {};
  return before && Math.abs(now - at) < DAY_MS ? { since, at, days } : { since, at: now, days: days + 1 };
}

/** Whether the service has refused for a week. @param {Refusal | null} refusal */
const isFinal = (refusal) => refusal !== null && refusal.days >= COUNTING && refusal.at - refusal.since >= WEEK_MS;

/** A guest with a new key. @param {string | null} [id] @param {string | null} [from] @returns {Guest} */
export const newGuest = (id = null, from = null) => ({
  key: newKey(),
  id,
  from,
  had: false,
  refused: null,
  gone: false,
  left: false,
});

/** Sign in. The account gets the games from before, and all its games are sent again. @param {Journal} journal @param {Pair} session @param {{guest: boolean}} [named] */
export function become(journal, session, named) {
  const player = accountOf(session);
  if (player !== journal.player) giveUpJoin(journal, player);
  moveGames(journal, "", player, true);
  sendAgain(playerOf(journal, player));
  const isGuest = named?.guest ?? null;
  Object.assign(journal, { player, isGuest, session, retryKey: null, signing: null, refused: null });
}

/** Note that the guest is a player's now. Its key stays. @param {Journal} journal */
export function leaveGuest(journal) {
  journal.isGuest = false;
  if (journal.guest && journal.guest.id === journal.player) journal.guest.left = true;
}

const signedOut = () => new SolisyncError(401, "signed_out", "Your session has ended. Please sign in again.");

export class Tokens {
  #tried = -AGAIN_MS;

  /** @param {string} url @param {import("./device_journal.js").Kept} kept @param {(why: string) => void} ended called when the service has ended the session */
  constructor(url, kept, ended) {
    this.url = url.replace(/\/+$/, "");
    this.kept = kept;
    this.now = kept.now;
    this.ended = ended;
  }

  /** The session, or else an error with the code "signed_out". @param {string} [as] the only account that may have it */
  async session(as) {
    const { session, refused } = await this.kept.read();
    if (!session || refused || (as && accountOf(session) !== as)) throw signedOut();
    return session;
  }

  async account() {
    return accountOf(await this.session());
  }

  /** Ask for tokens with a key, so that the request may be repeated. @param {string} path @param {object} body @param {AbortSignal} [signal] @returns {Promise<Begun>} */
  async #asked(path, body, signal) {
    const { json } = await repeated(() => post(`${this.url}${path}`, JSON.stringify(body), { signal }), signal);
    return { pair: { access_token: json.access_token, refresh_token: json.refresh_token }, player: json.player };
  }

  /** Log in or register. After a lost answer, the same call gets the same session. @param {string} path @param {string} username @param {string} password @param {AbortSignal} [signal] */
  async begun(path, username, password, signal) {
    const { key } = await this.kept.change((kept) => {
      const { signing } = kept;
      if (signing?.path === path && signing.username === username) return signing;
      return (kept.signing = { path, username, key: newKey() });
    });
    const asked = (/** @type {string} */ password) => this.#asked(path, { username, password, retry_key: key }, signal);
    const nfc = password.normalize();
    try {
      return await asked(nfc).catch((error) => {
        if (error.code !== "invalid_credentials" || nfc === password) throw error;
        return asked(password); // an older account may have it as it was typed
      });
    } catch (error) {
      if (error.passes === false) await this.kept.change((kept) => void (kept.signing = null));
      throw error;
    }
  }

  /** Sign in to this device's guest by its key, or create it, instead of the session `spent`. Return whether that was still the session. @param {{anew?: boolean, spent?: Pair | null, signal?: AbortSignal}} [options] `anew`: with a new key if the guest is gone */
  async guest({ anew = false, spent = null, signal } = {}) {
    const guest = await this.kept.change((kept) => {
      const { guest } = kept;
      if (!guest || (guest.gone && anew)) kept.guest = newGuest(null, guest && !guest.left ? guest.id : null);
      return /** @type {Guest} */ (kept.guest);
    });
    const { key, id, from, left } = guest;
    const create = id === null || isFinal(guest.refused);
    const { pair, player } = await this.#asked("/api/auth/guest", { guest_key: key, create }, signal).catch(
      async (error) => {
        await this.kept.change(({ guest: now }) => {
          if (now?.key !== key) return;
          if (error.code === "guest_unknown") now.refused = counted(now.refused, this.now());
          if (error.code === "guest_gone") now.gone = true;
        });
        throw error;
      },
    );
    if (!player && !create) throw unanswered(); // a node of version 1.1 has created another guest
    return this.kept.change((kept) => {
      if (!kept.refused && kept.session?.refresh_token !== spent?.refresh_token) return false;
      const account = accountOf(pair);
      const before = left ? null : (id ?? from);
      if (before) moveGames(kept, before, account, before === id); // all if the service has lost the account
      kept.guest = player ? { ...newGuest(account), key, had: true } : null;
      become(kept, pair, player);
      return true;
    });
  }

  /** A refresh token of this device's guest. @param {string} key */
  async tokenOfGuest(key) {
    const { pair, player } = await this.#asked("/api/auth/guest", { guest_key: key, create: false });
    if (!player) throw unanswered(); // a node of version 1.1 has created another guest
    return pair.refresh_token;
  }

  /** Sign in by the key, if the account is this device's guest. @param {string} account @param {Pair | null} [spent] its session @returns {Promise<boolean>} */
  async #byKey(account, spent) {
    const { guest } = await this.kept.read();
    if (!guest?.had || guest.id !== account) return false;
    return this.guest({ spent }).catch((error) => {
      if (error.code !== "guest_unknown" && error.code !== "guest_gone") throw error;
      return false;
    });
  }

  /** Run `work` with the access token, and again with the next one. @template T @param {(token: string) => Promise<T>} work @param {string} [as] the only account for which it may run @returns {Promise<T>} */
  authorized(work, as) {
    const sessions = {
      current: () => this.session(as),
      renew: (/** @type {Pair} */ session) => this.renew(session),
      unknown: (/** @type {Pair} */ session) => this.#end(session, "user_not_found"),
    };
    return authorized(sessions, ({ access_token: token }) => work(token));
  }

  /** Exchange the tokens, unless they are no longer `spent`. @param {Pair} spent */
  renew(spent) {
    return this.kept.exclusively("refresh", () => this.#renew(spent));
  }

  /** @param {Pair} spent */
  async #renew(spent) {
    const isSpent = (/** @type {Journal} */ { session }) => session?.refresh_token === spent.refresh_token;
    const key = await this.kept.change((kept) => isSpent(kept) && (kept.retryKey ??= newKey()));
    if (!key) return; // another call has done it, or the player has changed
    try {
      const { pair } = await this.#asked("/api/auth/refresh", { refresh_token: spent.refresh_token, retry_key: key });
      await this.kept.change((kept) => {
        if (isSpent(kept)) Object.assign(kept, { session: pair, retryKey: null, refused: null });
      });
    } catch (error) {
      if (error.code !== "unauthorized") throw error;
      if (await this.#byKey(accountOf(spent), spent)) return;
      await this.#end(spent, error.code);
      throw signedOut();
    }
  }

  /** Set a session aside that the service refuses. After a week forget it, and the games of an account that doesn't exist. @param {Pair} pair @param {string} why */
  async #end(pair, why) {
    const isFirst = await this.kept.change((kept) => {
      const { session, refused, guest, players } = kept;
      if (session?.refresh_token !== pair.refresh_token) return false;
      kept.refused = { why, ...refused, ...counted(refused, this.now()) };
      if (!isFinal(kept.refused)) return !refused;
      const account = accountOf(pair);
      if (kept.refused.why === "user_not_found" && guest?.id !== account) delete players[account];
      Object.assign(kept, { session: null, retryKey: null, refused: null });
      return false;
    });
    if (isFirst) this.ended(why);
  }

  /** Try what was set aside, once a minute at most: the session, and the guest's key. Return whether there is a session again. @returns {Promise<boolean>} */
  async restored() {
    const { session, refused, player } = await this.kept.read();
    if ((session && !refused) || !player || performance.now() - this.#tried < AGAIN_MS) return false;
    this.#tried = performance.now();
    const work = () => (session ? this.#renew(session).then(() => true) : this.#byKey(player));
    return this.kept.exclusively("refresh", work).catch((error) => {
      if (error.code !== "signed_out") throw error;
      return false;
    });
  }

  /** Run `change` when no refresh is without an answer, as one might have spent the token of the session. @template T @param {(journal: any) => T} change @returns {Promise<T>} */
  settled(change) {
    return this.kept.exclusively("refresh", async () => {
      const { session, retryKey } = await this.kept.read();
      if (session && retryKey) await this.#renew(session);
      return this.kept.change(change);
    });
  }

  /** End the session, on the service too. */
  async leave() {
    const { refresh_token } = await this.settled((kept) => kept.session ?? {});
    if (!refresh_token) throw signedOut();
    await repeated(() => post(`${this.url}/api/auth/logout`, JSON.stringify({ refresh_token })));
  }
}
