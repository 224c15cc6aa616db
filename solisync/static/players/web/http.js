// @ts-check
/** The storage of this browser, and the name of the signed-in player. */

import { open, SolisyncError } from "./transport.js";

const KEY = "solisync";
const PROBE = `${KEY}.probe`;

export { open as send, SolisyncError as Refusal };

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

/** The storage key for the time of the last attempt to use a session again that the service has refused. */
export const ASIDE = `${KEY}.aside`;
