// @ts-check
/** One request and what it refuses; what this browser stores, and who is signed in here. */

const KEY = "solisync";

/** An answer that is not the one asked for, or none at all (status 0). */
export class Refusal extends Error {
  /** @param {number} status @param {string} code @param {string} message @param {number} [wait] in seconds */
  constructor(status, code, message, wait = 0) {
    super(message);
    this.status = status;
    this.code = code;
    this.wait = wait;
  }

  /** Whether another attempt may succeed later. */
  get passes() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** @param {() => Storage} open */
function usable(open) {
  try {
    const store = open();
    store.setItem(`${KEY}.probe`, "");
    store.removeItem(`${KEY}.probe`);
    return store;
  } catch {
    return null;
  }
}

/** localStorage, or null where the browser refuses it. */
export const local = usable(() => localStorage);
/** sessionStorage, likewise. */
export const own = usable(() => sessionStorage);
/** @type {{username: string | null}} */
export const unkept = { username: null };

/** The name of the player who is signed in, as far as this browser knows. */
export const username = () => (local ? local.getItem(KEY) : unkept.username);

/** Where the game of a player is stored; of nobody in particular, if it is played signed out. @param {string} player "" then */
export const gameKey = (player) => `${KEY}.game${player && `.${player}`}`;

addEventListener("storage", ({ key }) => key === KEY && dispatchEvent(new Event("session"))); // another tab

/** One request; throws a Refusal unless it succeeds. @param {string} path @param {RequestInit} [more] */
export async function send(path, more) {
  let answer;
  try {
    answer = await fetch(path, more);
  } catch {
    throw new Refusal(0, "offline", "The server can’t be reached. Nothing is lost; please try again.");
  }
  if (answer.ok) return answer;
  const { error } = await answer.json().catch(() => ({}));
  const { status, headers } = answer;
  const wait = Number(headers.get("Retry-After"));
  throw new Refusal(status, headers.get("Error-Code") ?? "", error ?? `the server returned ${status}`, wait);
}
