// @ts-check
/** Changes of a journal by sessions and by answers of the service. */

import { isUnsent, playerOf } from "./device_journal.js";

/**
 * @typedef {import("./device_journal.js").Entry} Entry
 * @typedef {import("./device_journal.js").Journal} Journal
 * @typedef {import("./device_journal.js").Player} Player
 */

/** Send games again that the service has settled since a time: it can lose what it has acknowledged. @param {Player} player @param {number} [since] */
export function sendAgain({ games }, since = 0) {
  for (const entry of games) if (entry.settled && entry.settled >= since && !entry.error) entry.again = true;
}

/** Take an answer of the service. If it has lost games, send all again. @param {Player} player @param {any} merged @param {number} [counted] how many games are new in it */
export function accept(player, merged, counted = 0) {
  if (merged.stats.games_played - counted < player.played) sendAgain(player);
  player.latest = merged;
  if (Number.isSafeInteger(merged.stats.games_played)) player.played = merged.stats.games_played;
}

/** Move games to another account: those that aren't settled, or all. @param {Journal} journal @param {string} from @param {string} to @param {boolean} all */
export function moveGames(journal, from, to, all) {
  const old = journal.players[from];
  if (!old || from === to) return;
  const goes = (/** @type {Entry} */ entry) => all || isUnsent(entry);
  playerOf(journal, to).games.push(...old.games.filter(goes));
  old.games = old.games.filter((entry) => !goes(entry));
  if (all) delete journal.players[from];
}

/** Give up the join of a player, who sends the guest's games instead. If the next account is this guest, the games stay. @param {Journal} journal @param {string} [next] the account of the next session */
export function giveUpJoin(journal, next) {
  const { joining, player } = journal;
  if (joining && joining.from !== next) moveGames(journal, joining.from, String(player), true);
  journal.joining = null;
}

/** The id of the account whose token this is. @param {{access_token: string}} pair */
export const accountOf = ({ access_token: token }) =>
  String(JSON.parse(atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"))).sub);
