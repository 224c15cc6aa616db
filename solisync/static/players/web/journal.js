// @ts-check
/**
 * The journals of this browser: finished games that the server has not counted yet, and wins to upload.
 *
 * Each player has a journal; the one named "" has the games that were played signed out.
 */

import { Refusal, username } from "./http.js";
import { databaseStore } from "./indexed_db.js";
import { accept, enterInto, journalOf, localTime, moveGames, sound, tidy } from "./journals.js";

/** @typedef {import("./journals.js").Journals} Journals */

export { journalOf, localTime };

const KEY = "solisync.journals";
export const GUEST = "";
const GUEST_WINS = 20;
const AGAIN_MS = 10_000;

const store = databaseStore(KEY);
/** Changes by finished games that the browser has refused to store so far. @type {Set<(all: Journals) => void>} */
const unsaved = new Set();
let last = sound(null);
const channel = new BroadcastChannel(KEY);
channel.onmessage = () => dispatchEvent(new Event("journal"));

const refuse = () => {
  throw new Refusal(0, "storage", "This browser can’t save games now.");
};

/** Read all journals as they are stored. @returns {Promise<Journals>} */
export const stored = async () => (last = sound(await store.read().catch(refuse)));

/** The journals to show: with the `unsaved` games, and as read before if they can't be read. @returns {Promise<Journals & {unsaved: number}>} */
export async function journals() {
  await stored().catch(() => {});
  const all = sound(structuredClone(last));
  for (const enter of unsaved) enter(all);
  return { ...all, unsaved: unsaved.size };
}

/** Change the journals and store them. @template T @param {(all: Journals) => T} alter @returns {Promise<T>} */
export async function change(alter) {
  const before = [...unsaved];
  const result = await store
    .change((value) => {
      const all = sound(value);
      for (const enter of before) enter(all);
      const result = alter(all);
      tidy(all);
      return [all, result];
    })
    .catch(refuse);
  for (const enter of before) unsaved.delete(enter);
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

/** Store all games that aren't stored yet, now or later. */
const save = () =>
  change(() => {}).catch(() => {
    dispatchEvent(new Event("journal"));
    setTimeout(() => unsaved.size && save(), AGAIN_MS);
  });

/** Enter a finished game once, with its upload if it is won. If the browser can't store it, keep it in this page, and try again. @param {import("./progress.js").Finished} game @param {string | null} body @param {string} [player] the player of the game, if not the signed-in player */
export function enter(game, body, player) {
  const owner = player || (username() ?? GUEST);
  unsaved.add((all) => {
    enterInto(all, owner, game, body);
    const guest = journalOf(all, GUEST);
    guest.wins = guest.wins.slice(-GUEST_WINS);
  });
  return save();
}

/** Move the signed-out games to a player's journal, or remove them. @param {string | null} name null removes them */
export const handOver = (name) => change((all) => moveGames(all, GUEST, name));
