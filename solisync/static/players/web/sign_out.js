// @ts-check
/** Signing out on /account: it first sends unsent games, and asks if that fails. */

import { exchange } from "./api.js";
import { username } from "./http.js";
import { journalOf, journals } from "./journal.js";
import { forget } from "./own_journal.js";
import { sleep } from "./transport.js";
import { counted, h } from "./page.js";

const SETTLE_MS = 5_000;

/** The number of a player's finished games that are not sent yet. @param {string} name */
async function unsent(name) {
  const { games, wins } = journalOf(await journals(), name);
  return Math.max(games.length, wins.length);
}

/** Ask whether to sign out with unsent games. @param {string} name @param {number} games @returns {Promise<boolean>} */
const leaves = (name, games) =>
  new Promise((resolve) => {
    const closed = () => {
      resolve(dialog.returnValue === "leave");
      dialog.remove();
    };
    const dialog = h(
      "dialog",
      { id: "unsent", "aria-labelledby": "unsent-heading", close: closed },
      h("h2", { id: "unsent-heading" }, `${counted(games, "game")} couldn’t be sent yet`),
      h("p", {}, `Unsent games stay in this browser until ${name} signs in here again. Other players can’t see them.`),
      h(
        "form",
        { method: "dialog", class: "row" },
        h("button", { class: "main" }, "Stay signed in"),
        h("button", { value: "leave" }, "Sign out"),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  });

/** Sign out, and remove the player's progress from this browser. */
export async function signOut() {
  const name = username() ?? "";
  if (await unsent(name)) {
    const sent = import("./outbox.js").then(({ settle }) => settle(true)).catch(() => {});
    await Promise.race([sent, sleep(SETTLE_MS)]);
  }
  const games = await unsent(name);
  if (games && !(await leaves(name, games))) return;
  await exchange("DELETE", "/api/session");
  await forget(name);
}
