// @ts-check
/**
 * The store of version 1.1, which counted games in totals.
 *
 * A push without an answer stays there, and is repeated with its bytes: the service may have counted its games, so they
 * are never sent by their ids. All other games move to the journal. This happens at each start, because a page or program
 * of version 1.1 may still be open and finish games.
 */

import { entryOf, localTime, playerOf } from "./device_journal.js";
import { accountOf, moveGames } from "./settling.js";

/** @typedef {import("./device_journal.js").Entry} Entry */

const IN_TOTALS = "in_totals"; // the error of a game that is never sent by its id
const KNOWN = 200;
const SESSION = ["session", "tokens", "retryKey", "retry_key", "guest", "joining"];

/** @param {any} journal */
const isSound = ({ games, wins, sent }) =>
  Array.isArray(games) &&
  Array.isArray(wins) &&
  (!sent || (typeof sent.body === "string" && sent.games <= games.length));

/** The journals of a value that the npm package, the pages or Python's `Device` of version 1.1 have stored, by account, without invalid ones. @param {any} value @returns {Record<string, any>} */
function journalsOf(value) {
  const journals = Object.entries(Object(value.of ?? value.journals?.of ?? value.journals));
  return Object.setPrototypeOf(Object.fromEntries(journals.filter(([, journal]) => isSound(Object(journal)))), null);
}

/** A game as it is sent by its id. @param {any} game @param {any} win its upload, if any @param {string} now @returns {import("./device_journal.js").Game} */
function gameOf(game, win, now) {
  const { won, score, seconds, undone = false } = game;
  const { seed } = Object(win && JSON.parse(win.body));
  const { game_id = game.id, draw_mode = game.draw === 3 ? "DrawThree" : "DrawOne", at: ended_at = now } = game;
  const sent = { game_id, mode: "Classic", draw_mode, won, score, seconds, ended_at, undone };
  return (seed ?? null) === null ? sent : { ...sent, seed: String(seed) };
}

/** @param {any} each a game or a win of either kind */
const idOf = (each) => each.id ?? each.game_id;

/** The progress with the games of a push. @param {any} base @param {any} sent */
function pushed(base, sent) {
  const { stats, progress } = JSON.parse(sent.body);
  return { ...base, stats: { ...base?.stats, ...stats }, progress: { ...base?.progress, ...progress } };
}

export class Former {
  /** @param {import("./stores.js").Store} store @param {import("./device_journal.js").Kept} kept */
  constructor(store, kept) {
    this.store = store;
    this.kept = kept;
  }

  /** Repeat the push of an account that has no answer, if any. @param {string} name @param {(body: string) => Promise<void>} push */
  async push(name, push) {
    await this.store.exclusively("sync", async () => {
      const { sent } = Object(journalsOf(Object(await this.store.read()))[name]);
      if (!sent) return;
      let counted = true;
      await push(sent.body).catch((error) => {
        if (error.status !== 400 || error.passes) throw error;
        counted = false; // nothing was stored
      });
      const ids = await this.store.change((value) => {
        const journal = journalsOf(value)[name];
        const ids = journal.games.slice(0, sent.games).map(idOf);
        if (counted) journal.games.splice(0, sent.games);
        journal.sent = null;
        return [value, ids];
      });
      if (counted) return;
      await this.kept.change((journal) => {
        for (const id of ids) Object.assign(Object(entryOf(journal, id)), { settled: null, error: null });
      });
    });
  }
}

/** The fields of a session in a value. @param {any} value */
function sessionOf({ session, tokens, retryKey, retry_key, isGuest, joining }) {
  const from = (/** @type {string} */ token) => accountOf({ access_token: token });
  const begun = typeof joining === "string" ? { token: joining, key: null, refused: 0 } : (joining ?? null);
  return {
    session: session ?? tokens ?? null,
    retryKey: retryKey ?? retry_key ?? null,
    isGuest: isGuest ?? null,
    joining: begun && { from: from(begun.token), ...begun },
  };
}

/** The newest games that a value of version 1.1 knows, and their replays. @param {any} former @returns {{known: string[], uploaded: Record<string, string>}} */
function knownTo(former) {
  const { known = former.finished, uploaded = former.uploaded } = former.journals ?? former;
  return { known: Array.isArray(known) ? known.slice(-KNOWN) : [], uploaded: Object(uploaded) };
}

/** Whether a value of version 1.1 has anything that isn't taken yet. @param {any} former @param {import("./device_journal.js").Journal} journal */
function hasMore(former, journal) {
  const ofPlayers = Object.values(journalsOf(former));
  const isLater = (/** @type {any} */ { games, wins, sent }) => wins.length || games.length > (sent?.games ?? 0);
  const ids = [...knownTo(former).known, ...ofPlayers.flatMap(({ games }) => games.map(idOf))];
  return former.session || former.tokens || ofPlayers.some(isLater) || ids.some((id) => !entryOf(journal, id));
}

/** Enter what a value of version 1.1 has, and return whether its session is this journal's now. This may happen twice. @param {import("./device_journal.js").Journal} journal @param {any} former @param {Date} moment */
function enter(journal, former, moment) {
  const now = localTime(moment);
  const settled = { day: null, settled: moment.getTime(), again: false, error: IN_TOTALS, win: null };
  const add = (/** @type {string} */ name, /** @type {Entry} */ entry) => {
    const known = entryOf(journal, entry.game.game_id);
    if (!known) playerOf(journal, name).games.push(entry);
    else if (known.error === IN_TOTALS && !entry.error) Object.assign(known, entry); // its push was refused
  };
  const taken = sessionOf(former);
  const takes = taken.session && (!journal.session || journal.player === accountOf(taken.session));
  if (takes) Object.assign(journal, taken, { player: accountOf(taken.session), refused: null });
  if (takes) journal.guest ??= former.guest ?? null;
  journal.player ??= former.player ?? null;
  for (const [name, { base, games, sent, wins }] of Object.entries(journalsOf(former))) {
    const mine = playerOf(journal, name);
    mine.latest ??= sent ? pushed(base, sent) : base;
    mine.played ||= base?.stats?.games_played ?? 0;
    const uploads = new Map(
      wins.map((/** @type {any} */ { body, refused = false, ...win }) => [idOf(win), { body, replay: null, refused }]),
    );
    for (const [place, each] of games.entries()) {
      const win = uploads.get(idOf(each)) ?? null;
      uploads.delete(idOf(each));
      const entry = { ...settled, game: gameOf(each, win, now), day: each.day?.date ?? null, win };
      add(name, place < (sent?.games ?? 0) ? entry : { ...entry, settled: null, error: null });
    }
    for (const [id, win] of uploads) add(name, { ...settled, game: { game_id: id }, win });
  }
  const { known, uploaded } = knownTo(former);
  for (const id of known) {
    const replay = uploaded[id];
    add(journal.player ?? "", {
      ...settled,
      game: { game_id: id },
      win: replay ? { body: null, replay, refused: false } : null,
    });
  }
  if (journal.player) moveGames(journal, "", journal.player, true);
  return Boolean(takes);
}

/** The store of version 1.1 in a value that both versions have in the same place. @param {import("./stores.js").Store} store @returns {Promise<import("./stores.js").Store>} */
export async function within(store) {
  await store.change((value) => [value.journals ? { former: value } : value, undefined]);
  return {
    read: async () => (await store.read()).former,
    change: (alter) =>
      store.change((value) => {
        const [former, result] = alter(value.former);
        return [{ ...value, former }, result];
      }),
    exclusively: (name, work) => store.exclusively(`former.${name}`, work),
  };
}

/** Move what a store of version 1.1 has to the journal. @param {import("./stores.js").Store} store @param {import("./device_journal.js").Kept} kept @returns {Promise<Former>} */
export async function takeOver(store, kept) {
  const move = async () => {
    const former = await store.read();
    if (!former || !hasMore(former, await kept.read())) return;
    const takes = await kept.change((journal) => enter(journal, former, new Date(kept.now())));
    const taken = new Set(
      Object.values(journalsOf(former)).flatMap(({ games, wins }) => [...games, ...wins].map(idOf)),
    );
    await store.change((value) => {
      for (const journal of Object.values(journalsOf(value))) {
        const isLeft = (/** @type {any} */ each) => !taken.has(idOf(each)); // finished since
        const sent = journal.sent?.games ?? 0;
        journal.games = journal.games.filter(
          (/** @type {any} */ each, /** @type {number} */ place) => place < sent || isLeft(each),
        );
        journal.wins = journal.wins.filter(isLeft);
      }
      for (const name of takes ? SESSION : []) if (name in value) value[name] = null;
      return [value, undefined];
    });
  };
  await store.exclusively("sync", () => store.exclusively("refresh", move));
  return new Former(store, kept);
}
