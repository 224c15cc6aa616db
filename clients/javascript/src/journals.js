// @ts-check
/**
 * Journals: finished games that the service has not counted yet, and wins to upload (docs/sync.md "A journal").
 *
 * The functions change a value; a store makes each change one transaction.
 */

/**
 * @typedef {import("./progress.js").Finished} Finished
 * @typedef {{id: string, body: string, day: string | null, refused?: boolean}} Win an upload: the same bytes are sent until there is an answer
 * @typedef {{body: string, games: number}} Sent a push without an answer, and the number of the journal's games in it
 * @typedef {{base: any, answers: number, games: Finished[], sent: Sent | null, wins: Win[], full?: number}} Journal
 *   `base`: the last accepted answer; `answers`: the number of accepted answers; `full`: when the storage for wins was full
 * @typedef {{known: string[], uploaded: Record<string, string>, of: Record<string, Journal>}} Journals by player
 *   `known`: the newest games that were entered; `uploaded`: the replay ids of the newest uploads, by game id
 */

const KNOWN = 200;

/** A time as local time with its offset. @param {Date} moment */
export function localTime(moment) {
  const minutes = -moment.getTimezoneOffset();
  const two = (/** @type {number} */ part) => String(Math.floor(Math.abs(part))).padStart(2, "0");
  const local = new Date(moment.getTime() + minutes * 60_000).toISOString().slice(0, -1);
  return `${local}${minutes < 0 ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}

/** An object without a prototype: a prototype would have entries for players named `constructor` and the like. @param {Iterable<[string, any]>} entries */
const bare = (entries) => Object.setPrototypeOf(Object.fromEntries(entries), null);

/** @param {any} value @returns {value is Journal} */
const isJournal = (value) =>
  Array.isArray(value?.games) &&
  Array.isArray(value.wins) &&
  (value.sent === null || (typeof value.sent?.body === "string" && value.sent.games <= value.games.length));

/** The stored journals, without invalid ones. @param {any} value @returns {Journals} */
export function sound(value) {
  const { known, uploaded, of } = Object(value);
  const journals = Object.entries(Object(of)).filter(([, journal]) => isJournal(journal));
  return {
    known: Array.isArray(known) ? known : [],
    uploaded: bare(Object.entries(Object(uploaded))),
    of: bare(journals),
  };
}

/** Remove what is empty or old. @param {Journals} all */
export function tidy(all) {
  all.known = all.known.slice(-KNOWN);
  all.uploaded = bare(Object.entries(all.uploaded).slice(-KNOWN));
  for (const [name, { base, games, sent, wins }] of Object.entries(all.of)) {
    if (!base && !games.length && !sent && !wins.length) delete all.of[name];
  }
}

/** The journal of a player, which is added if it is missing. @param {Journals} all @param {string} name @returns {Journal} */
export const journalOf = (all, name) => (all.of[name] ??= { base: null, answers: 0, games: [], sent: null, wins: [] });

/** Enter a finished game once, with its upload if it is won. @param {Journals} all @param {string} name @param {Finished} game @param {string | null} body */
export function enterInto(all, name, game, body) {
  if (all.known.includes(game.id)) return;
  all.known.push(game.id);
  const journal = journalOf(all, name);
  journal.games.push(game);
  if (body) journal.wins.push({ id: game.id, body, day: game.day?.date ?? null });
}

/** Accept an answer, unless another push or answer has replaced the state it belongs to. @param {Journals} all @param {string} name @param {any} merged @param {Journal} asked the journal at the time of the request */
export function accept(all, name, merged, asked) {
  const journal = journalOf(all, name);
  if (journal.sent?.body !== asked.sent?.body || journal.answers !== asked.answers) return;
  if (journal.sent) journal.games.splice(0, journal.sent.games);
  Object.assign(journal, { sent: null, base: merged, answers: journal.answers + 1 });
}

/** Remove a player's progress; unsent games stay. @param {Journals} all @param {string} name */
export function forgetProgress(all, name) {
  const journal = journalOf(all, name);
  Object.assign(journal, { base: null, answers: journal.answers + 1 });
}

/** Move the unsent games of one journal to another, or remove them. @param {Journals} all @param {string} from @param {string | null} to null removes them */
export function moveGames(all, from, to) {
  const { games, wins } = journalOf(all, from);
  delete all.of[from];
  if (to === null) return;
  const journal = journalOf(all, to);
  journal.games.push(...games);
  journal.wins.push(...wins);
}
