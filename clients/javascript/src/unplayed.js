// @ts-check
/** What a client that sends games by their ids pushes: all other progress, beside that of a player who has never played. */

import { NO_DAYS, NO_GAMES } from "./shown.js";

const NEVER = "1970-01-01T00:00:00Z";
const NOBODY = "00000000-0000-0000-0000-000000000000";

/** The payload of a player who has never played, with other progress. Games aren't counted by a push. @param {any} change */
export function unplayed({ stats, progress, ...more }) {
  for (const name of Object.keys({ ...stats, ...progress }))
    if (name in NO_GAMES || (name in NO_DAYS && !name.startsWith("unlocked")) || name.startsWith("daily"))
      throw new TypeError(`${name} follows from games: finish() sends them`);
  return {
    achievements: [],
    ...more,
    user_id: NOBODY,
    stats: { ...stats, ...NO_GAMES, last_modified: NEVER }, // JSON has null for Infinity, which the service knows
    progress: { ...NO_DAYS, ...progress, last_modified: NEVER },
    last_modified: NEVER,
  };
}
