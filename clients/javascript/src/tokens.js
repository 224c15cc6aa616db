// @ts-check
/**
 * A session with tokens in a store.
 *
 * A refresh token works once, so only one refresh runs at a time, over all calls and tabs. Its `retry_key` stays stored
 * until there is an answer: the same request then has the same answer, also after a crash.
 */

import { post, repeated, SolisyncError } from "./transport.js";

/**
 * @typedef {{access_token: string, refresh_token: string}} Pair
 * @typedef {{player: string | null, session: Pair | null, retryKey: string | null}} Session
 *   `player`: the id of the account, also after the service has ended the session
 * @typedef {{read: () => Promise<Session>, change: <T>(alter: (session: any) => T) => Promise<T>, exclusively: <T>(name: string, work: () => Promise<T>) => Promise<T>}} Kept
 */

const RENEWALS = 2; // other tabs may renew the tokens too

const newKey = () => [...crypto.getRandomValues(new Uint32Array(4))].map((word) => word.toString(16).padStart(8, "0")).join("");

/** The id of the account whose token this is. @param {Pair} pair */
export const accountOf = ({ access_token: token }) =>
  String(JSON.parse(atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"))).sub);

const signedOut = () => new SolisyncError(401, "signed_out", "Your session has ended. Please sign in again.");

export class Tokens {
  /** @param {string} url @param {Kept} kept @param {(why: string) => void} ended called when the service has ended the session */
  constructor(url, kept, ended) {
    this.url = url;
    this.kept = kept;
    this.ended = ended;
  }

  /** The session, or else an error with the code "signed_out". @param {string} [as] the only account that may have it */
  async session(as) {
    const { session } = await this.kept.read();
    if (!session || (as && accountOf(session) !== as)) throw signedOut();
    return session;
  }

  /** Begin a session, instead of another one. @param {string} path @param {object} body @param {AbortSignal} [signal] @returns {Promise<Pair>} */
  async begun(path, body, signal) {
    const { json } = await post(`${this.url}${path}`, JSON.stringify(body), { signal });
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
    const body = JSON.stringify({ refresh_token: spent.refresh_token, retry_key: key });
    try {
      const { json } = await repeated(() => post(`${this.url}/api/auth/refresh`, body));
      const pair = { access_token: json.access_token, refresh_token: json.refresh_token };
      await this.kept.change((kept) => void (isSpent(kept) && Object.assign(kept, { session: pair, retryKey: null })));
    } catch (error) {
      if (error.code !== "unauthorized") throw error;
      await this.#end(spent, error.code);
      throw signedOut();
    }
  }

  /** @param {Pair} pair @param {string} why */
  async #end(pair, why) {
    const ended = await this.kept.change((kept) => {
      if (kept.session?.refresh_token !== pair.refresh_token) return false;
      Object.assign(kept, { session: null, retryKey: null });
      return true;
    });
    if (ended) this.ended(why);
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
