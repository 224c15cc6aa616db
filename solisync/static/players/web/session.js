// @ts-check
/**
 * This browser's session.
 *
 * The refresh token is in a cookie that scripts can't read. The access token is in memory and in sessionStorage. A
 * refresh token works once, so only one tab at a time sends a request that replaces the cookie. The request continues
 * when its page is left, and the tab sends the new access token to the other tabs. If the answer is lost, the next
 * refresh repeats the request with the same key, and gets the same answer.
 */

import { ASIDE, json, keep, local, own, Refusal, send, unkept, username } from "./http.js";
import { exclusively } from "./locks.js";
import { accountOf } from "./settling.js";
import { ANSWER_MS, authorized, newKey, sleep } from "./transport.js";

/** @typedef {{token: string, username: string, since: number}} Grant an access token, and the time of its arrival by this clock */

const HALF_LIFE = 12 * 3600_000;
const SUPERSEDED_MS = [300, 1000];
const KEY = "solisync";
const RETRY = "solisync.retry";
const SIGNING = "solisync.signing"; // the key of a login without an answer, and whose it is
const ACCOUNTS = "solisync.accounts"; // names of players in this browser, each with its account

const channel = new BroadcastChannel(KEY);
/** @type {Grant | null} */
let grant = JSON.parse(own?.getItem(KEY) ?? "null");
if (grant?.username !== username()) grant = null; // another player has signed in, in another tab

/** Use a grant in this tab. @param {Grant | null} next @param {boolean} ended whether the session has ended by itself */
function adopt(next, ended) {
  grant = next;
  if (next) keep(own, KEY, JSON.stringify(next));
  else own?.removeItem(KEY);
  dispatchEvent(new CustomEvent("session", { detail: ended }));
}

/** Use a new grant, or the end of the session, in all tabs. @param {Grant | null} next @param {boolean} [ended] */
function announce(next, ended = false) {
  unkept.username = next && !keep(local, KEY, next.username) ? next.username : null;
  if (!next) local?.removeItem(KEY);
  if (next || !ended) local?.removeItem(ASIDE);
  channel.postMessage({ grant: next, ended });
  adopt(next, ended);
}

/** Use a grant from the server in all tabs. What this browser keeps by name is the account's. @param {Grant} next */
async function welcome(next) {
  const account = accountOf({ access_token: next.token });
  const names = new Map(JSON.parse(local?.getItem(ACCOUNTS) ?? "[]"));
  if (names.get(next.username) !== account) {
    if (names.size) await import("./renamed.js").then(({ follow }) => follow(names, account, next.username));
    keep(local, ACCOUNTS, JSON.stringify([...names.set(next.username, account)]));
  }
  announce(next);
}

channel.onmessage = ({ data }) => {
  if (!data.wanted) adopt(data.grant, data.ended);
  else if (grant && username()) channel.postMessage({ grant });
};

/** Send a request that replaces the cookie. @param {string} method @param {string} path @param {object} body @param {string} [bearer] */
async function replaceCookie(method, path, body, bearer) {
  const headers = { "Content-Type": "application/json", ...(bearer && { Authorization: `Bearer ${bearer}` }) };
  const signal = AbortSignal.timeout(ANSWER_MS);
  const answer = await send(path, { method, headers, body: JSON.stringify(body), keepalive: true, signal });
  const { access_token: token, username } = await json(answer);
  local?.removeItem(RETRY);
  if (token) await welcome({ token, username, since: Date.now() });
  else announce(null);
}

/** Begin a session. After a lost answer, the same again gets the same session, by a key that is stored until there is an answer. @param {{username?: string, register?: boolean}} body @param {(body: object) => Promise<void>} begin */
async function signIn(body, begin) {
  const who = `${body.username} ${body.register ?? false}`;
  const [kept, known] = (own?.getItem(SIGNING) ?? "").split("\n");
  const key = kept === who ? known : newKey();
  keep(own, SIGNING, `${who}\n${key}`);
  await begin({ ...body, retry_key: key }).catch((error) => {
    if (error.passes === false) own?.removeItem(SIGNING);
    throw error;
  });
  own?.removeItem(SIGNING);
  const { begin: noteSession } = await import("./own_journal.js");
  await noteSession(username() ?? "").catch(() => {}); // on a full disk, the next first sync of a day sends games again
}

/** Exchange the cookie for the next one and a grant. The key stays stored until there is an answer, so that any page can repeat the request. */
async function refresh() {
  const key = local?.getItem(RETRY) ?? newKey();
  keep(local, RETRY, key);
  for (const pause of [...SUPERSEDED_MS, 0]) {
    try {
      return await replaceCookie("POST", "/api/session/refresh", { retry_key: key });
    } catch (error) {
      if (error.status !== 401) throw error;
      if (!pause) {
        local?.removeItem(RETRY);
        throw error;
      }
    }
    await sleep(pause); // another tab may just have used this cookie, and the next one is on its way
  }
}

/** Get a grant whose token isn't `stale`, from another tab or with the cookie. Without one, the player is signed out. @param {string} [stale] */
const renew = (stale) =>
  exclusively(KEY, async () => {
    const stands = () => !username() || (grant && grant.token !== stale);
    if (stands()) return;
    channel.postMessage({ wanted: true });
    await sleep(80);
    if (stands()) return;
    try {
      await refresh();
    } catch (error) {
      if (error.status !== 401) throw error;
      announce(null, true);
    }
  });

/** End the session in this browser, because the service doesn't know the account. Perhaps it runs on another database for a while, so the cookie stays. */
function setAside() {
  keep(local, ASIDE, String(Date.now()));
  announce(null, true);
}

/** Use the session again that was set aside, if the service accepts the cookie. */
export const again = () =>
  exclusively(KEY, async () => {
    if (username() || !local?.getItem(ASIDE)) return;
    keep(local, ASIDE, String(Date.now()));
    await refresh().catch(({ status }) => status === 401 && local?.removeItem(ASIDE)); // the service has removed the cookie
  });

/** The grant, which is renewed after half of its lifetime; if that fails, the old token still works. @param {string} [as] the only player who may have it */
async function current(as) {
  if (username() && !grant) await renew();
  else if (grant && Math.abs(Date.now() - grant.since) > HALF_LIFE) await renew(grant.token).catch(() => {});
  if (!username() || !grant || (as && grant.username !== as))
    throw new Refusal(401, "signed_out", "Your session has ended. Please sign in again.");
  return grant;
}

/** Run `work` with the access token, and again with the next one. @template T @param {(token: string) => Promise<T>} work @param {string} [as] the only player for whom it may run @returns {Promise<T>} */
const withToken = (work, as) =>
  authorized({ current: () => current(as), renew: ({ token }) => renew(token), unknown: setAside }, ({ token }) =>
    work(token),
  );

/** Begin, change or end the session. @param {string} method @param {string} path @param {object} [body] */
export function exchange(method, path, body = {}) {
  const work = (/** @type {string | undefined} */ token = undefined) =>
    exclusively(KEY, async () => {
      if (local?.getItem(RETRY)) await refresh().catch(() => {}); // otherwise a late answer would bring back the old session
      const begin = (/** @type {object} */ given) => replaceCookie(method, path, given, token);
      return method === "POST" && path === "/api/session" ? signIn(body, begin) : begin(body);
    });
  return method === "PUT" ? withToken(work) : work();
}

/** Send a request as the player, or only as a certain player. @param {string} method @param {string} path @param {{json?: object, body?: Blob, as?: string, signal?: AbortSignal}} [content] */
export const ask = (method, path, { json, body, as, signal } = {}) =>
  withToken((token) => {
    const type = body?.type ?? (json && "application/json");
    const headers = { Authorization: `Bearer ${token}`, ...(type && { "Content-Type": type }) };
    return send(path, { method, signal, headers, body: json ? JSON.stringify(json) : body });
  }, as);

/** How client.js sends requests as the player, by the cookie. @type {import("./client.js").Carrier} */
export const carrier = {
  authorized: withToken,
  account: async () => (await current()).username,
};

/** The player's data from the server. If the username has changed there, this browser stores the new one. */
export async function me() {
  const before = username();
  const player = await json(await ask("GET", "/api/me"));
  if (grant && username() === before && player.username !== before)
    await welcome({ ...grant, username: player.username });
  return player;
}
