// @ts-check
/** Joins: a player takes over the games of a guest. */

import { accept, journalOf, moveGames } from "./journals.js";
import { DAY_MS } from "./progress.js";
import { accountOf, become, leaveGuest } from "./tokens.js";

/** @typedef {import("./transport.js").SolisyncError} SolisyncError */

const GONE = ["guest_gone", "not_a_guest", "unauthorized"]; // a join with such an error would never succeed

/** Whether a join may succeed another day. @param {SolisyncError} error */
const isRefused = ({ status, code }) => status === 400 || status === 403 || code === "guest_unknown";

/** Sign in as a player who takes over the guest of the session. @param {import("./kept.js").State} state @param {import("./tokens.js").Pair} pair @param {{guest: boolean}} [player] */
export function beginJoin(state, pair, player) {
  const { session, guest } = state;
  moveGames(state.journals, String(state.player), accountOf(pair));
  const key = guest?.id === state.player ? guest.key : null;
  state.joining = session && { token: session.refresh_token, key, refused: 0 };
  leaveGuest(state);
  become(state, pair, player);
}

export class Joins {
  /** @param {import("./kept.js").Kept} kept @param {import("./tokens.js").Tokens} tokens @param {(method: string, path: string, body?: string) => Promise<any>} ask send a request as the player @param {() => Date} now @param {(error: SolisyncError) => void} refused called at the first refusal */
  constructor(kept, tokens, ask, now, refused) {
    this.kept = kept;
    this.tokens = tokens;
    this.ask = ask;
    this.now = () => Number(now());
    this.refused = refused;
  }

  /** Send the join that has begun, if any. If the guest's token isn't valid, sign in to the guest by its key once. @returns {Promise<void>} */
  async finish() {
    const { joining, player, journals } = await this.kept.read();
    if (joining === null) return;
    const asked = journalOf(journals, String(player));
    const body = JSON.stringify({ guest_refresh_token: joining.token });
    const { merged, error } = await this.ask("POST", "/api/me/join", body).catch((error) => ({ error }));
    if (!error) {
      return this.kept.change((state) => {
        state.joining = null;
        if (!asked.sent) accept(state.journals, String(player), merged, asked);
      });
    }
    if (error.code === "unauthorized") await this.ask("GET", "/api/me"); // throws if the error was about the player's session
    const { token, cause = error } = await this.#anew(joining, error).catch((cause) => ({ token: null, cause }));
    await this.kept.change((state) => {
      if (token) state.joining = { ...joining, token, key: null };
      else if (GONE.includes(cause.code)) state.joining = null;
      else if (isRefused(cause)) state.joining = { ...joining, refused: this.now() };
    });
    if (token) return this.finish();
    throw cause;
  }

  /** Another token of the guest, if its key is left to try. @param {import("./kept.js").Joining} joining @param {SolisyncError} error @returns {Promise<{token: string | null, cause?: SolisyncError}>} */
  async #anew({ key }, { code }) {
    return {
      token: key && (code === "unauthorized" || code === "not_a_guest") ? await this.tokens.tokenOfGuest(key) : null,
    };
  }

  /** Finish the join before other work, unless the service has refused it today. A refusal holds nothing up. */
  async first() {
    const { joining } = await this.kept.read();
    if (!joining || Math.abs(this.now() - joining.refused) < DAY_MS) return;
    await this.finish().catch((error) => {
      if (!GONE.includes(error.code) && !isRefused(error)) throw error;
      if (!joining.refused) this.refused(error);
    });
  }
}
