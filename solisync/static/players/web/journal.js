// @ts-check
/**
 * The journals of this browser: finished games that the server has not counted yet, and wins to upload.
 *
 * Each player has a journal; the one named "" has the games that were played signed out.
 */

import { username } from "./http.js";
import { indexedDbStore } from "./indexed_db.js";
import { accept, enterInto, journalOf, localTime, moveGames, sound, tidy } from "./journals.js";

/** @typedef {import("./journals.js").Journals} Journals */

export { journalOf, localTime };

const KEY = "solisync.journals";
export const GUEST = "";
const GUEST_WINS = 20;

const store = indexedDbStore(KEY);
const channel = new BroadcastChannel(KEY);
channel.onmessage = () => dispatchEvent(new Event("journal"));

/** Read all journals. @returns {Promise<Journals>} */
export const journals = async () => sound(await store.read());

/** Change the journals and store them. A change that can't be stored lasts until the page is left. @template T @param {(all: Journals) => T} alter @returns {Promise<T>} */
export async function change(alter) {
  const result = await store.change((value) => {
    const all = sound(value);
    const result = alter(all);
    tidy(all);
    return [all, result];
  });
  channel.postMessage("changed");
  dispatchEvent(new Event("journal"));
  return result;
}

/** Change the journals, and keep the progress of the signed-in player only. @template T @param {(all: Journals) => T} alter @returns {Promise<T>} */
export const changeOwn = (alter) =>
  change((all) => {
    const result = alter(all);
    for (const name in all.of) if (name !== username()) all.of[name].base = null;
    return result;
  });

/** Accept an answer, unless another push or answer has replaced the state it belongs to. @param {string} name @param {any} merged @param {import("./journals.js").Journal} asked the journal at the time of the request */
export const take = (name, merged, asked) => changeOwn((all) => accept(all, name, merged, asked));

/** Enter a finished game once, with its upload if it is won. @param {import("./progress.js").Finished} game @param {string | null} body @param {string} [player] the player of the game, if not the signed-in player */
export const enter = (game, body, player) =>
  change((all) => {
    enterInto(all, player || (username() ?? GUEST), game, body);
    const guest = journalOf(all, GUEST);
    guest.wins = guest.wins.slice(-GUEST_WINS);
  });

/** Move the signed-out games to a player's journal, or remove them. @param {string | null} name null removes them */
export const handOver = (name) => change((all) => moveGames(all, GUEST, name));
