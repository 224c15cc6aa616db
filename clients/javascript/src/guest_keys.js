// @ts-check
/** Keys for guests that began with version 1.1. */

import { newGuest } from "./tokens.js";

/** Give the guest of the session a key, unless it has one. @param {import("./joins.js").Tools} tools */
export async function giveKey({ kept, tokens, ask }) {
  const account = await tokens.account();
  const me = await ask("GET", "/api/me");
  const key = await kept.change((journal) => {
    if (journal.player !== account) return null;
    journal.isGuest = me.guest === true;
    if (journal.isGuest && journal.guest?.id !== account) journal.guest = newGuest(account);
    return journal.isGuest && journal.guest?.key;
  });
  if (!key) return;
  try {
    await ask("PUT", "/api/me/guest-key", { body: JSON.stringify({ guest_key: key }) });
  } catch {
    return; // a node of version 1.1 knows no keys
  }
  await kept.change(({ guest }) => {
    if (guest?.key === key) guest.had = true;
  });
}
