// @ts-check
/** What this browser keeps of players by their names, when a name and its account have changed. It loads only then. */

import { dayKey, gameKey, local } from "./http.js";
import { kept } from "./journal.js";

/** Move the journal and the saved games to another name, unless there is something under it. @param {string} from @param {string} to */
function move(from, to) {
  for (const key of [gameKey, dayKey]) {
    const game = local?.getItem(key(from));
    if (!game || local?.getItem(key(to))) continue;
    local?.setItem(key(to), game);
    local?.removeItem(key(from));
  }
  return kept.change(({ players }) => {
    if (!players[from] || players[to]) return;
    players[to] = players[from];
    delete players[from];
  });
}

/** Give an account what this browser keeps of it, under its new name. What another account has left under that name waits for its player, under its id. @param {Map<string, string>} names the accounts of names so far @param {string} account @param {string} name */
export async function follow(names, account, name) {
  const owner = names.get(name);
  if (owner) await move(name, owner);
  for (const [former, its] of names) if (its === account && names.delete(former)) await move(former, name);
  await move(account, name);
}
