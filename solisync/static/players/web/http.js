// @ts-check
/** A request and its errors, the storage of this browser, and the name of the signed-in player. */

const KEY = "solisync";
const PROBE = `${KEY}.probe`;

/** An error of a request: the server's answer, or none at all (status 0). It has the fields of SolisyncError that pages need. */
export class Refusal extends Error {
  /** @param {number} status @param {string} code @param {string} message @param {number} [retryAfter] in seconds */
  constructor(status, code, message, retryAfter = 0) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
  }

  /** Whether the same request may succeed later. */
  get passes() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** Store an item. Return whether the browser has stored it. @param {Storage | null} store @param {string} key @param {string} value */
export function keep(store, key, value) {
  try {
    store?.setItem(key, value);
    return Boolean(store);
  } catch {
    return false;
  }
}

/** @param {() => Storage} open */
function usable(open) {
  try {
    const store = open();
    const kept = keep(store, PROBE, "");
    store.removeItem(PROBE);
    return kept || store.length ? store : null; // one that is full can still be read
  } catch {
    return null;
  }
}

/** localStorage, or null if the browser refuses it. */
export const local = usable(() => localStorage);
/** sessionStorage, or null if the browser refuses it. */
export const own = usable(() => sessionStorage);
/** The username, if localStorage doesn't have it. @type {{username: string | null}} */
export const unkept = { username: null };

/** The name of the signed-in player, or null, as stored in this browser. */
export const username = () => unkept.username ?? local?.getItem(KEY) ?? null;

/** The storage key of a player's game, or of the signed-out game. @param {string} player "" for the signed-out game */
export const gameKey = (player) => `${KEY}.game${player && `.${player}`}`;

/** The storage key of the game of a day's deal. @param {string} player "" for the signed-out game */
export const dayKey = (player) => `${KEY}.day${player && `.${player}`}`;

addEventListener("storage", ({ key }) => key === KEY && dispatchEvent(new Event("session"))); // changed by another tab

/** Throw the error of a request without a usable answer. @returns {never} */
export function unanswered() {
  throw new Refusal(0, "network", "The server can’t be reached. Nothing is lost; please try again.");
}

/** Send one request. Throw a Refusal unless it succeeds. @param {string} path @param {RequestInit} [more] */
export async function send(path, more) {
  const answer = await fetch(path, more).catch(unanswered);
  if (answer.ok) return answer;
  const { status, headers } = answer;
  const code = headers.get("Error-Code");
  if (!code) unanswered(); // from a proxy, or from another server
  const { error } = await answer.json().catch(() => ({}));
  throw new Refusal(status, code, error ?? `the server returned ${status}`, Number(headers.get("Retry-After")));
}

/** The JSON of an answer. An answer without JSON comes from another server, or is cut off. @param {Response} answer @returns {Promise<any>} */
export const json = (answer) => answer.json().then(Object).catch(unanswered);

const WAITING = `${KEY}.waiting`;

/** Note the players with games that wait to be sent, so that pages need not open the journal to know whether there are any. @param {string[]} names */
export const noteWaiting = (names) => keep(local, WAITING, names.join(" "));

/** Whether games of the signed-in player may wait to be sent. Without a note, they may. */
export function waits() {
  const name = username();
  return Boolean(local && name && (local.getItem(WAITING)?.split(" ").includes(name) ?? true));
}

/** The storage key for the time of the last attempt to use a session again that the service has refused. */
export const ASIDE = `${KEY}.aside`;
