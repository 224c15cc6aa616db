// @ts-check
/**
 * The API, and this browser's session.
 *
 * The refresh token is a cookie that no script can read; the access token is in memory and in sessionStorage. A refresh
 * token can be used once, so all that replaces the cookie happens in one tab at a time, outlives the page (keepalive),
 * and hands the new access token to the other tabs.
 */

/** @typedef {{token: string, username: string, since: number}} Grant what the server gave, and when by this clock */

const HALF_LIFE = 12 * 3600_000; // access tokens live for 24 h
const ANSWER_MS = 16_000; // the server gives up after 15
const KEY = "solisync";
const LEASE = "solisync.lease";
const PENDING = "solisync.pending";
const OFFLINE = "The server can’t be reached. Nothing is lost: try again.";
const ENDED = "Your session has ended. Please sign in again.";

/** An answer that is not the one asked for, or none at all (status 0). */
export class Refusal extends Error {
  /** @param {number} status @param {string} code @param {string} message @param {number} [wait] seconds */
  constructor(status, code, message, wait = 0) {
    super(message);
    Object.assign(this, { name: "Refusal" });
    this.status = status;
    this.code = code;
    this.wait = wait;
  }
}

/** sessionStorage or localStorage, or null where the browser refuses it. @param {"local" | "session"} kind */
function storage(kind) {
  try {
    const store = kind === "local" ? localStorage : sessionStorage;
    store.setItem(`${KEY}.probe`, "");
    store.removeItem(`${KEY}.probe`);
    return store;
  } catch {
    return null;
  }
}

/** localStorage, or null where the browser refuses it. */
export const local = storage("local");
const own = storage("session");
const channel = new BroadcastChannel(KEY);
/** @type {Grant | null} */
let grant = JSON.parse(own?.getItem(KEY) ?? "null");

/** The name of the player who is signed in, as far as this browser knows; else null. */
export const username = () => (local ? local.getItem(KEY) : (grant?.username ?? null));

/** @param {Grant | null} next */
function adopt(next) {
  grant = next;
  if (next) own?.setItem(KEY, JSON.stringify(next));
  else own?.removeItem(KEY);
}

/** Take what the server gave, or the end of the session, and tell all tabs. @param {Grant | null} next */
function announce(next) {
  adopt(next);
  if (next) local?.setItem(KEY, next.username);
  else for (const key of [KEY, `${KEY}.avatar`]) local?.removeItem(key);
  channel.postMessage({ grant: next });
  dispatchEvent(new Event("session"));
}

channel.onmessage = ({ data }) => {
  if (data.wanted) {
    if (grant && username()) channel.postMessage({ grant });
  } else if (data.grant?.token !== grant?.token) {
    adopt(data.grant);
    dispatchEvent(new Event("session"));
  }
};

/** @param {number} milliseconds @returns {Promise<void>} */
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Run something in one tab at a time. @template T @param {() => Promise<T>} work @returns {Promise<T>} */
async function exclusively(work) {
  if (navigator.locks) return navigator.locks.request(KEY, work);
  // Plain HTTP: there are no locks, so a lease in localStorage, taken when it is still ours after a moment.
  const me = String(Math.random());
  const holder = () => (local?.getItem(LEASE) ?? "").split(" ");
  while (local && holder()[0] !== me) {
    if (!(Number(holder()[1]) > Date.now())) local.setItem(LEASE, `${me} ${Date.now() + 2 * ANSWER_MS}`);
    await sleep(60 + Math.random() * 60);
  }
  try {
    return await work();
  } finally {
    if (holder()[0] === me) local?.removeItem(LEASE);
  }
}

/**
 * One request; throws a Refusal unless it succeeds.
 * @param {string} method @param {string} path @param {RequestInit} [more]
 */
async function send(method, path, more) {
  let answer;
  try {
    answer = await fetch(path, { method, ...more });
  } catch {
    throw new Refusal(0, "offline", OFFLINE);
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({}));
  const wait = Number(answer.headers.get("Retry-After")) || 0;
  const code = answer.headers.get("Error-Code") ?? "";
  throw new Refusal(answer.status, code, told.error ?? `the server answered ${answer.status}`, wait);
}

/**
 * A request that replaces the cookie. Who leaves the page in the middle of it leaves a note: until its answer must have
 * come, the old cookie may be spent already.
 * @param {string} method @param {string} path @param {object} body @param {Record<string, string>} [headers]
 */
async function exchange(method, path, body, headers) {
  const left = Number(local?.getItem(PENDING) ?? 0) + ANSWER_MS - Date.now();
  if (left > 0 && left <= ANSWER_MS) await sleep(left);
  local?.setItem(PENDING, String(Date.now()));
  try {
    const answer = await send(method, path, {
      body: JSON.stringify(body),
      headers: { "Content-Type": "application/json", ...headers },
      keepalive: true,
    });
    const told = await answer.json();
    announce(told.access_token ? { token: told.access_token, username: told.username, since: Date.now() } : null);
  } finally {
    local?.removeItem(PENDING);
  }
}

/** The grant of another tab, if one has an answer at once. @returns {Promise<Grant | null>} */
function askTabs() {
  const before = grant?.token;
  channel.postMessage({ wanted: true });
  return sleep(80).then(() => (grant?.token === before ? null : grant));
}

/**
 * Get a newer grant than `stale`: another tab's, or with the cookie. None: the player is signed out.
 * @param {string | null} stale
 */
const renew = (stale) =>
  exclusively(async () => {
    if (!username() || (grant && grant.token !== stale) || (await askTabs())) return;
    try {
      await exchange("POST", "/api/session/refresh", {});
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 401) throw error;
      announce(null);
    }
  });

/** The access token; null for who is signed out. */
async function accessToken() {
  if (!username()) return null;
  const left = Date.now() - Number(local?.getItem(PENDING) ?? 0) < ANSWER_MS;
  if (!grant) await renew(null);
  // Half of its life is left, so what can't be renewed now goes on with the one it has.
  else if (!left && Math.abs(Date.now() - grant.since) > HALF_LIFE) await renew(grant.token).catch(() => {});
  return grant?.token ?? null;
}

/**
 * Ask the API as the player who is signed in.
 * @param {string} method @param {string} path @param {{json?: unknown, body?: BodyInit, type?: string}} [content]
 */
export async function ask(method, path, content = {}) {
  const { json, body = json === undefined ? undefined : JSON.stringify(json), type = "application/json" } = content;
  for (const last of [false, true]) {
    const token = await accessToken();
    if (!token) throw new Refusal(401, "signed_out", ENDED);
    /** @type {Record<string, string>} */
    const headers = { Authorization: `Bearer ${token}` };
    if (body !== undefined) headers["Content-Type"] = type;
    try {
      return await send(method, path, { body, headers });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.code === "user_not_found") await signOut().catch(() => announce(null));
      if (last || error.code !== "unauthorized") throw error;
      await renew(token);
    }
  }
  throw new Refusal(401, "signed_out", ENDED);
}

/** The JSON that a route answers to everybody. @param {string} path @returns {Promise<any>} */
export const read = async (path) => (await send("GET", path)).json();

/** The JSON that a route answers to the player. @param {string} path @returns {Promise<any>} */
export const readOwn = async (path) => (await ask("GET", path)).json();

/** @param {string} name @param {string} password @param {boolean} [register] */
export const signIn = (name, password, register = false) =>
  exclusively(() => exchange("POST", "/api/session", { username: name, password, ...(register && { register }) }));

/** End the session, on the server and in all tabs. */
export const signOut = () => exclusively(() => exchange("DELETE", "/api/session", {}));

/** @param {string} current @param {string} next */
export async function changePassword(current, next) {
  const body = { current_password: current, new_password: next };
  for (const last of [false, true]) {
    const token = await accessToken();
    try {
      const headers = { Authorization: `Bearer ${token}` };
      return await exclusively(() => exchange("PUT", "/api/session/password", body, headers));
    } catch (error) {
      if (last || !(error instanceof Refusal) || error.code !== "unauthorized") throw error;
      await renew(token);
    }
  }
}
