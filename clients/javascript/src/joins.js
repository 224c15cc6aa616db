// @ts-check
/** Joins: a player takes over the games of a guest. */

import { DAY_MS, playerOf } from "./device_journal.js";
import { unanswered } from "./error.js";
import { accept, accountOf, moveGames } from "./settling.js";
import { become, leaveGuest } from "./tokens.js";

/**
 * @typedef {import("./error.js").SolisyncError} SolisyncError
 * @typedef {{kept: import("./device_journal.js").Kept, tokens: import("./tokens.js").Tokens,
 *   ask: (method: string, path: string, content?: {body: string}) => Promise<any>}} Tools `ask` sends a request as the player
 */

const GONE = ["guest_gone", "not_a_guest", "unauthorized"]; // a join with such an error would never succeed

/** Whether a join may succeed another day. @param {SolisyncError} error */
const isRefused = ({ status, code, passes }) =>
  code === "guest_unknown" || (!passes && (status === 400 || status === 403));

/** Sign in as a player who takes over the guest of the session. The guest's settled games follow when it has succeeded. @param {import("./device_journal.js").Journal} journal @param {import("./device_journal.js").Pair} pair @param {{guest: boolean}} [named] */
export function beginJoin(journal, pair, named) {
  const { session, guest, player } = journal;
  const from = String(player);
  moveGames(journal, from, accountOf(pair), false);
  const key = guest?.id === player ? guest.key : null;
  leaveGuest(journal);
  become(journal, pair, named);
  journal.joining = session && { from, token: session.refresh_token, key, refused: 0 };
}

/** Send the join that has begun, if any. If the guest's token isn't valid, sign in to the guest by its key once. @param {Tools} tools @returns {Promise<void>} */
export async function finishJoin(tools) {
  const { kept, tokens, ask } = tools;
  const { joining, player } = await kept.read();
  if (joining === null) return;
  const body = JSON.stringify({ guest_refresh_token: joining.token });
  const { merged, error } = await ask("POST", "/api/me/join", { body }).catch((error) => ({ error }));
  if (!error) {
    if (!merged?.stats) throw unanswered();
    return kept.change((journal) => {
      journal.joining = null;
      moveGames(journal, joining.from, String(player), true);
      accept(playerOf(journal, String(player)), merged);
    });
  }
  if (error.code === "unauthorized") await ask("GET", "/api/me"); // throws if the error was about the player's session
  const isInvalid = error.code === "unauthorized" || error.code === "not_a_guest";
  let [token, cause] = ["", error];
  if (isInvalid && joining.key) token = await tokens.tokenOfGuest(joining.key).catch((error) => ((cause = error), ""));
  await kept.change((journal) => {
    if (token) journal.joining = { ...joining, token, key: null };
    else if (GONE.includes(cause.code)) journal.joining = null;
    else if (isRefused(cause)) journal.joining = { ...joining, refused: kept.now() };
  });
  if (token) return finishJoin(tools);
  throw cause;
}

/** Finish a join before other work, unless the service has refused it today. A refusal holds nothing up. @param {Tools} tools @param {(error: SolisyncError) => void} refused called at the first refusal */
export async function firstJoin(tools, refused) {
  const { joining } = await tools.kept.read();
  if (!joining || Math.abs(tools.kept.now() - joining.refused) < DAY_MS) return;
  await finishJoin(tools).catch((error) => {
    if (!GONE.includes(error.code) && !isRefused(error)) throw error;
    if (!joining.refused) refused(error);
  });
}
