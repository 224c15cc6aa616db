// @ts-check
/** What this browser keeps of a player whom an operator has renamed. It loads after a rename only. */

import { gameKey, local } from "./http.js";
import { change } from "./journal.js";

/** Give the journal and the saved game of the player the new name, unless another player has left some under it. @param {string} from @param {string} to */
export function rename(from, to) {
  const game = local?.getItem(gameKey(from));
  if (game && !local?.getItem(gameKey(to))) {
    local?.setItem(gameKey(to), game);
    local?.removeItem(gameKey(from));
  }
  return change(({ of }) => {
    if (!of[from] || of[to]) return;
    of[to] = of[from];
    delete of[from];
  });
}
