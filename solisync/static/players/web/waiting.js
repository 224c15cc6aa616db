// @ts-check
/** What waits to be sent, on all pages but /play: it is sent, and named until then. Pages load this only when something waits. */

import { username } from "./http.js";
import { journalOf, journals } from "./journal.js";
import { addButton, inWords, settle, trouble } from "./outbox.js";
import { byId, h, tell } from "./page.js";

async function show() {
  const { wins, games } = journalOf(await journals(), username() ?? "");
  const waits = wins.length + games.length > 0;
  const before = byId("waits");
  if (!waits || !trouble) {
    before?.remove();
    if (before && !waits) tell("All games are sent.");
    return;
  }
  const told = inWords(trouble.error, wins, games.length);
  if (before?.firstChild.textContent === told.textContent) return;
  const bar = h("div", { id: "waits", class: "refused", role: "status" }, told);
  before?.remove();
  byId("main").prepend(bar);
  addButton(bar);
}

for (const name of ["outbox", "session", "journal"]) addEventListener(name, show); // "journal": of this tab or another
settle();
