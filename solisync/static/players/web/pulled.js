// @ts-check
/** The progress of the account, as the service answered last. */

import { ask } from "./api.js";
import { username } from "./http.js";
import { journals, take } from "./journal.js";
import { exclusively } from "./locks.js";

/** @type {string | null | undefined} */
let revision;

/** Whether a revision of the player's progress was read last. @param {string | null} other */
export const knows = (other) => other === revision;

/**
 * Pull the player's progress. The journal accepts the answer too, because it adds new games to the last answer. While a
 * push has no answer, or without a connection, return the last answer instead.
 */
export const pull = () =>
  exclusively("solisync.outbox", async () => {
    const name = username() ?? "";
    const journal = (await journals()).of[name];
    if (journal?.sent && journal.base) return journal.base;
    const answer = await ask("GET", "/api/sync/pull", { as: name }).catch((error) => {
      if (error.status === 0 && journal?.base) return null;
      throw error;
    });
    if (!answer) return journal.base;
    revision = /"(.*)"/.exec(answer.headers.get("ETag") ?? "")?.[1] ?? null;
    const { merged } = await answer.json();
    if (journal?.base) await take(name, merged, journal);
    return merged;
  });
