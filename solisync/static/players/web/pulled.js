// @ts-check
/** The progress of the account, as the service answered last. */

import { ask } from "./api.js";
import { json, username } from "./http.js";
import { journalOf, journals, kept } from "./journal.js";
import { take } from "./own_journal.js";
import { ANSWER_MS } from "./transport.js";

/** @type {string | null | undefined} */
let revision;

/** Whether a revision of the player's progress was read last. @param {string | null} other */
export const knows = (other) => other === revision;

/** Pull the player's progress, to which the journal adds unsent games. Without a connection, return the last answer instead. */
export const pull = () =>
  kept.exclusively("sync", async () => {
    const name = username() ?? "";
    const { base } = journalOf(await journals(), name);
    const signal = AbortSignal.timeout(ANSWER_MS);
    const answer = await ask("GET", "/api/sync/pull", { as: name, signal }).catch((error) => {
      if (error.status === 0 && base) return null;
      throw error;
    });
    if (!answer) return base;
    revision = /"(.*)"/.exec(answer.headers.get("ETag") ?? "")?.[1] ?? null;
    const { merged } = await json(answer);
    await take(name, merged).catch(() => {}); // a full disk
    return merged;
  });
