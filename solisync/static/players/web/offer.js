// @ts-check
/** The offer to add the games that were played signed out to the player's account. */

import { handOver } from "./own_journal.js";
import { counted, h, say } from "./page.js";

/** A bar with the offer. @param {string} name @param {import("./journal.js").Journal} guest the journal of the signed-out games @param {() => Promise<void>} done */
export function offer(name, { wins, games }, done) {
  const parts = [
    wins.length && counted(wins.length, "win"),
    games.length > wins.length && counted(games.length - wins.length, "other game"),
  ];
  const handed = (/** @type {string | null} */ to) => async () => {
    await handOver(to);
    say(to ? "Added" : "Removed");
    await done();
  };
  return h(
    "div",
    { class: "bar", role: "group", "aria-label": "Games played while signed out" },
    h("p", {}, `${parts.filter(Boolean).join(" and ")} played here while signed out: add to ${name}’s account?`),
    h("button", { type: "button", click: handed(name) }, "Add"),
    h("button", { type: "button", click: handed(null) }, "Not mine"),
  );
}
