// @ts-check
/**
 * The journal of this browser: finished games that the service has not counted yet, and wins to upload.
 *
 * It has the players by their names; the one named "" has the games that were played signed out.
 */

import * as device from "./device_journal.js";
import { entering, isUnsent, Kept, localTime, playerOf } from "./device_journal.js";
import { noteWaiting, username } from "./http.js";
import { indexedDbStore } from "./indexed_db.js";

/**
 * @typedef {import("./device_journal.js").Entry} Entry
 * @typedef {{id: string, won: boolean, score: number, seconds: number, at: string, day: {date: string} | null, game: import("./device_journal.js").Game}} Finished
 * @typedef {{id: string, day: string | null, refused: boolean}} Win
 * @typedef {{base: any, games: Finished[], wins: Win[]}} Journal the last answer, the games that aren't counted yet, and the wins that aren't uploaded
 * @typedef {{known: string[], uploaded: Record<string, string>, unsaved: number, of: Record<string, Journal>}} Journals `known`: all games; `uploaded`: replays by game
 */

export { localTime };

const KEY = "solisync.journals";
export const GUEST = "";
const GUEST_WINS = 20;
const AGAIN_MS = 10_000;
const PATIENT_MS = 5_000;

const channel = new BroadcastChannel(KEY);
channel.onmessage = () => dispatchEvent(new Event("journal"));

/** Hold the lock under which a page of version 1.1 sends, so that none does while this page is open. Return whether this page has it. @returns {Promise<boolean>} */
const held = new Promise((resolve) => {
  if (!navigator.locks) return resolve(true); // on plain HTTP
  setTimeout(resolve, PATIENT_MS, false);
  navigator.locks.request("solisync.outbox", { mode: "shared" }, () => {
    resolve(true);
    return new Promise(() => {}); // until the page is left
  });
});

/** The players with games that wait to be sent. @param {any} value of the store */
const waiting = (value) =>
  Object.entries(device.journalOf(value).players)
    .filter(([name, { games }]) => name !== GUEST && games.some((each) => isUnsent(each) || device.waits(each)))
    .map(([name]) => name);

const store = indexedDbStore(KEY);
/** The journal in IndexedDB. */
export const kept = new Kept(
  {
    ...store,
    async change(alter) {
      const result = await store.change((value) => {
        const before = waiting(value);
        const [next, result] = alter(value);
        noteWaiting([...before, ...waiting(next)]); // right also if this transaction fails, or the browser
        return [next, result];
      });
      channel.postMessage("changed");
      dispatchEvent(new Event("journal"));
      return result;
    },
    async former() {
      const former = await store.former?.();
      return former && (await held) ? { ...former, exclusively: (_, work) => work() } : null;
    },
  },
  () => new Date(),
  () => import("./former.js"),
);

/** What the pages show of a player. @param {import("./device_journal.js").Player} player @returns {Journal} */
const view = ({ latest, games }) => ({
  base: latest,
  games: games.filter(isUnsent).map(({ game, day }) => ({
    id: game.game_id,
    won: Boolean(game.won),
    score: game.score ?? 0,
    seconds: game.seconds ?? 0,
    at: game.ended_at ?? "",
    day: day === null ? null : { date: day },
    game,
  })),
  wins: games
    .filter(({ win }) => win && !win.replay)
    .map(({ game, day, win }) => ({ id: game.game_id, day, refused: Boolean(win?.refused) })),
});

/** The journals to show: with the unsaved games, and as read before if they can't be read. @returns {Promise<Journals>} */
export async function journals() {
  await kept.opened().catch(() => {});
  const { players } = await kept.shown();
  const entries = Object.values(players).flatMap(({ games }) => games);
  const uploaded = entries.flatMap(({ game, win }) => (win?.replay ? [[game.game_id, win.replay]] : []));
  return {
    known: entries.map(({ game }) => game.game_id),
    uploaded: Object.fromEntries(uploaded),
    unsaved: kept.unsaved,
    of: Object.fromEntries(Object.entries(players).map(([name, player]) => [name, view(player)])), // read by journalOf
  };
}

/** The journal of a player. @param {Journals} all @param {string} name @returns {Journal} */
export const journalOf = ({ of }, name) => (Object.hasOwn(of, name) ? of[name] : { base: null, games: [], wins: [] });

/** Store all games that aren't stored yet, now or later. */
const save = () =>
  kept.save().catch(() => {
    dispatchEvent(new Event("journal"));
    setTimeout(save, AGAIN_MS);
  });

/** Enter a finished game once, with its upload if it is won. If the browser can't store it, keep it in this page, and try again. @param {import("./device_journal.js").GameRecord} record @param {Date} ended @param {string} [player] the player of the game, if not the signed-in player */
export function enter(record, ended, player) {
  const change = entering(record, ended, player || (username() ?? GUEST));
  const noted = kept.note((journal) => {
    change(journal);
    const wins = playerOf(journal, GUEST).games.filter(({ win }) => win?.body);
    for (const entry of wins.slice(0, -GUEST_WINS)) entry.win = null;
  });
  return noted.catch(save);
}
