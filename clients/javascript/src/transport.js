// @ts-check
/** Requests to the service. */

import { SolisyncError, unanswered } from "./error.js";

/**
 * @typedef {{method?: string, body?: BodyInit | null, token?: string,
 *   signal?: AbortSignal | null, keepalive?: boolean}} Content `token`: the access token
 */

export const ANSWER_MS = 45_000; // the service reads a body for 30 s at most, and answers within 15 s
const RETRY_MOST = 86_400; // seconds; only a misconfigured proxy asks for a longer wait
const ATTEMPTS = 3;
const PAUSE_MS = 300;
const PATIENT_S = 5;
const RENEWALS = 2; // other tabs may renew the tokens too

/** @param {number} milliseconds @param {AbortSignal | null} [signal] ends the pause early */
export const sleep = (milliseconds, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => resolve(clearTimeout(timer)), { once: true });
  });

/** A new key for a request that may be repeated. */
export const newKey = () => crypto.getRandomValues(new Uint32Array(5)).join("-"); // 160 bits

/** The seconds of Retry-After, given as seconds or as a date; 0 without either. @param {Headers} headers */
export function secondsOf(headers) {
  const text = headers.get("Retry-After") ?? "";
  const until = Date.parse(text) - (Date.parse(headers.get("Date") ?? "") || Date.now());
  const seconds = /^\d+$/.test(text) ? Number(text) : Math.ceil(until / 1000);
  return Math.min(Math.max(seconds || 0, 0), RETRY_MOST);
}

/** @param {Response} answer */
async function errorOf(answer) {
  const { status, headers } = answer;
  const code = headers.get("Error-Code");
  const retryAfter = secondsOf(headers);
  const { error } = Object(await answer.json().catch(() => null));
  if (!code) return unanswered(status, retryAfter); // from a proxy, or from another server
  const until = headers.get("Suspended-Until");
  const more = { retryAfter, requestId: headers.get("X-Request-Id"), until: until ? new Date(until) : null };
  return new SolisyncError(status, code, error ?? `the server returned ${status}`, more);
}

/** Send a request, and let `read` read the answer if it is a success. @template T @param {string} url @param {Content} content @param {(answer: Response) => T} read @returns {Promise<Awaited<T>>} */
async function exchanged(url, { token, signal, ...content }, read) {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), ANSWER_MS);
  try {
    const answer = await fetch(url, {
      ...content,
      redirect: "error",
      headers: {
        ...(content.body && { "Content-Type": "application/json" }),
        ...(token && { Authorization: `Bearer ${token}` }),
      },
      signal: signal ? AbortSignal.any([signal, limit.signal]) : limit.signal,
    });
    if (!answer.ok) throw await errorOf(answer);
    return await read(answer);
  } catch (error) {
    if (error instanceof SolisyncError) throw error;
    signal?.throwIfAborted();
    throw unanswered();
  } finally {
    clearTimeout(timer);
  }
}

/** Send a request, and return the answer as soon as it begins. @param {string} url @param {Content} [content] */
export const open = (url, content = {}) => exchanged(url, content, (answer) => answer);

/** Send a request, and return the JSON of the answer, and its headers. @param {string} url @param {Content} [content] @returns {Promise<{json: any, headers: Headers}>} */
export const request = (url, content = {}) =>
  exchanged(url, content, async (answer) => ({ json: Object(await answer.json()), headers: answer.headers }));

/** Send JSON. @param {string} url @param {string} body @param {Content} [content] */
export const post = (url, body, content) => request(url, { ...content, method: "POST", body });

/** Run `work` until it succeeds, three times at most, and only while the pauses stay short. @template T @param {() => Promise<T>} work a request that may be repeated @param {AbortSignal | null} [signal] @returns {Promise<T>} */
export async function repeated(work, signal) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const passes = error instanceof SolisyncError && error.passes && error.retryAfter <= PATIENT_S;
      if (!passes || attempt === ATTEMPTS) throw error;
      await sleep(error.retryAfter * 1000 + PAUSE_MS * 2 ** (attempt - 1) * (0.5 + Math.random()), signal);
    }
  }
}

/** Run `work` with a session. If the service refuses its token, run it again with the next one, twice at most. @template S, T @param {{current: () => Promise<S>, renew: (session: S) => Promise<unknown>, unknown: (session: S) => unknown}} sessions `renew` exchanges the tokens, unless that has happened; `unknown`: the service doesn't know the account @param {(session: S) => Promise<T>} work @returns {Promise<T>} */
export async function authorized({ current, renew, unknown }, work) {
  for (let renewals = 0; ; renewals++) {
    const session = await current();
    try {
      return await work(session);
    } catch (error) {
      if (error.code === "user_not_found") await unknown(session);
      if (renewals === RENEWALS || error.code !== "unauthorized") throw error;
    }
    await renew(session);
  }
}
