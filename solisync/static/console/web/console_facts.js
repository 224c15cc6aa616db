// @ts-check
/** Constants of the service. `make docs` writes this file. */

export const ACTS = /** @type {const} */ (["suspend", "unsuspend", "lock", "unlock", "end_sessions", "rename", "restore", "delete", "link", "hide", "show", "name", "remove_avatar", "unlist", "list_again", "check", "delete_replay", "export"]);
export const KINDS = /** @type {const} */ (["names", "avatars", "players", "entries", "replays"]);
export const MEMBERS = 2000;
export const NOTE_MAX = 500;
export const NUMBERS = /** @type {const} */ (["registrations", "guests", "active", "replays", "verified", "refuted", "suspensions", "deletions"]);
export const REASONS = /** @type {const} */ (["name", "avatar", "cheating", "spam", "takeover", "request", "legal", "other"]);
export const SORTS = /** @type {const} */ (["newest", "last_used", "replays", "bytes"]);
export const STATES = /** @type {const} */ (["guests", "suspended", "locked"]);
export const TEXT_MAX = 100;
export const VERDICTS = /** @type {const} */ (["pending", "verified", "refuted", "undecided", "unreadable"]);
export const WHERE = /** @type {const} */ (["name", "part", "display_name", "address"]);
