// @ts-check
/** What sessions and answers change in the journal of this browser. */

import { isUnsent, playerOf } from "./device_journal.js";
import { GUEST, kept } from "./journal.js";
import { accept, moveGames, sendAgain } from "./settling.js";

/** Take an answer with a player's progress. @param {string} name @param {any} merged */
export const take = (name, merged) => kept.change((journal) => accept(playerOf(journal, name), merged));

/** Move the signed-out games to a player, or remove them. @param {string | null} name null removes them */
export const handOver = (name) =>
  kept.change((journal) => {
    if (name !== null) return moveGames(journal, GUEST, name, true);
    const removed = { settled: kept.now(), error: "removed", win: null }; // their ids stay known
    for (const entry of playerOf(journal, GUEST).games.filter(isUnsent)) Object.assign(entry, removed);
  });

/** Begin a session: keep the progress of this player alone, and send the player's games again. @param {string} name */
export const begin = (name) =>
  kept.change(({ players }) => {
    for (const [other, player] of Object.entries(players)) {
      if (other === name) sendAgain(player);
      else Object.assign(player, { latest: null, played: 0 });
    }
  });

/** Remove a player's progress; unsent games stay, unless the account is gone. @param {string} name @param {boolean} [gone] */
export const forget = (name, gone) =>
  kept.change(({ players }) => {
    if (gone) delete players[name];
    else if (players[name]) Object.assign(players[name], { latest: null, played: 0 });
  });
