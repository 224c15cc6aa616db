// @ts-check
/**
 * A session with tokens in a store.
 *
 * A refresh token works once, so only one refresh runs at a time, over all calls and tabs. Its `retry_key` stays stored
 * until there is an answer: the same request then has the same answer, also after a crash. A session that the service
 * refuses is set aside, because the service may run on another database for a while. It is tried again for a week.
 */

import { DAY_MS } from "./progress.js";
import { post, repeated, SolisyncError } from "./transport.js";

/**
 * @typedef {{access_token: string, refresh_token: string}} Pair
 * @typedef {{since: number, at: number, days: number}} Refusal times of the first and of the last answer that counts, and how many count: one a day
 * @typedef {Refusal & {why: string, session: Pair, retryKey: string | null}} Lost a session that the service has refused
 * @typedef {{player: string | null, session: Pair | null, retryKey: string | null, lost: Lost | null}} Session
 *   `player`: the id of the account, also after the service has ended the session
 * @typedef {{read: () => Promise<Session>, change: <T>(alter: (session: any) => T) => Promise<T>, exclusively: <T>(name: string, work: () => Promise<T>) => Promise<T>}} Kept
 */

const RENEWALS = 2; // other tabs may renew the tokens too
const AGAIN_MS = 60_000;
const WEEK_DAYS = 7;
const COUNTING = 3; // so one wrong clock ends nothing

/** Count a refusal, at most one a day. @param {Refusal | null} before @param {number} now @returns {Refusal} */
export function counted(before, now) {
  const { since = now, at = 0, days = 0 } = before ?? {};
  return before && Math.abs(now - at) < DAY_MS ? { since, at, days } : { since, at: now, days: days + 1 };
}

/** Whether the service has refused for a week. @param {Refusal | null} refusal */
export const isFinal = (refusal) => refusal !== null && refusal.days >= COUNTING && refusal.at - refusal.since >= WEEK_DAYS * DAY_MS;

const newKey = () => [...crypto.getRandomValues(new Uint32Array(4))].map((word) => word.toString(16).padStart(8, "0")).join("");

/** The id of the account whose token this is. @param {Pair} pair */
export const accountOf = ({ access_token: token }) =>
  String(JSON.parse(atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"))).sub);

const signedOut = () => new SolisyncError(401, "signed_out", "Your session has ended. Please sign in again.");

export class Tokens {
  #tried = -AGAIN_MS;

  /** @param {string} url @param {Kept} kept @param {() => Date} now @param {(why: string) => void} ended called when the service has ended the session */
  constructor(url, kept, now, ended) {
    this.url = url;
    this.kept = kept;
    this.now = now;
    this.ended = ended;
  }

  /** The session, or else an error with the code "signed_out". @param {string} [as] the only account that may have it */
  async session(as) {
    const { session } = await this.kept.read();
    if (!session || (as && accountOf(session) !== as)) throw signedOut();
    return session;
  }

  /** Get the tokens of a session. @param {string} path @param {string} body @param {AbortSignal} [signal] @returns {Promise<Pair>} */
  async begun(path, body, signal) {
    const { json } = await post(`${this.url}${path}`, body, { signal });
    return { access_token: json.access_token, refresh_token: json.refresh_token };
  }

  /** Run `work` with the access token. If the service refuses the token, run it again with the next one, twice at most. @template T @param {(token: string) => Promise<T>} work @param {string} [as] the only account for which it may run @returns {Promise<T>} */
  async authorized(work, as) {
    for (let renewals = 0; ; renewals++) {
      const session = await this.session(as);
      try {
        return await work(session.access_token);
      } catch (error) {
        if (error.code === "user_not_found") await this.#end(session, error.code);
        if (renewals === RENEWALS || error.code !== "unauthorized") throw error;
      }
      await this.renew(session);
    }
  }

  /** Exchange the tokens, unless they are no longer `spent`. @param {Pair} spent */
  renew(spent) {
    return this.kept.exclusively("refresh", () => this.#renew(spent));
  }

  /** @param {Pair} spent */
  async #renew(spent) {
    const isSpent = (/** @type {Session} */ { session }) => session?.refresh_token === spent.refresh_token;
    const key = await this.kept.change((kept) => isSpent(kept) && (kept.retryKey ??= newKey()));
    if (!key) return; // another call has done it, or the player has changed
    try {
      const pair = await this.#exchanged(spent, key);
      await this.kept.change((kept) => void (isSpent(kept) && Object.assign(kept, { session: pair, retryKey: null })));
    } catch (error) {
      if (error.code !== "unauthorized") throw error;
      await this.#end(spent, error.code);
      throw signedOut();
    }
  }

  /** @param {Pair} spent @param {string} key @returns {Promise<Pair>} */
  #exchanged({ refresh_token }, key) {
    const body = JSON.stringify({ refresh_token, retry_key: key });
    return repeated(() => this.begun("/api/auth/refresh", body));
  }

  /** Set a session aside that the service refuses. @param {Pair} pair @param {string} why */
  async #end(pair, why) {
    const ended = await this.kept.change((kept) => {
      if (kept.session?.refresh_token !== pair.refresh_token) return false;
      const { session, retryKey } = kept;
      const lost = { ...counted(null, Number(this.now())), why, session, retryKey };
      Object.assign(kept, { session: null, retryKey: null, lost });
      return true;
    });
    if (ended) this.ended(why);
  }

  /** Try the session again that was set aside, once a minute at most. Return whether the service accepts it again. After a week of refusals forget it, and the games of an account that doesn't exist. */
  async restored() {
    const { session, lost } = await this.kept.read();
    if (session || !lost || performance.now() - this.#tried < AGAIN_MS) return false;
    this.#tried = performance.now();
    return this.kept.exclusively("refresh", async () => {
      const isLost = (/** @type {Session} */ kept) => !kept.session && kept.lost?.session.refresh_token === lost.session.refresh_token;
      const key = await this.kept.change((kept) => isLost(kept) && (kept.lost.retryKey ??= newKey()));
      if (!key) return false;
      try {
        const pair = await this.#exchanged(lost.session, key);
        return await this.kept.change((kept) => isLost(kept) && Boolean(Object.assign(kept, { session: pair, lost: null })));
      } catch (error) {
        if (error.code !== "unauthorized") throw error;
      }
      return this.kept.change((kept) => {
        if (!isLost(kept)) return false;
        Object.assign(kept.lost, counted(kept.lost, Number(this.now())));
        if (!isFinal(kept.lost)) return false;
        if (kept.lost.why === "user_not_found") delete kept.journals.of[kept.player];
        kept.lost = null;
        return false;
      });
    });
  }

  /** Run `change` when no refresh is without an answer, as one might have spent the token of the session. @template T @param {(kept: any) => T} change @returns {Promise<T>} */
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
