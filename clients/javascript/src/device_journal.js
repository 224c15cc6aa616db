// @ts-check
/**
 * The journal of a device: its session, and the finished games of each account (docs/clients.md "The journal's format").
 *
 * The functions change a journal; a store makes each change one transaction.
 */

/**
 * @typedef {{access_token: string, refresh_token: string}} Pair
 * @typedef {{since: number, at: number, days: number}} Refusal times of the first and of the last answer that counts, and how many count: one a day
 * @typedef {{key: string, id: string | null, from: string | null, had: boolean, refused: Refusal | null, gone: boolean, left: boolean}} Guest
 *   `id`: the account, once the device has had it; `from`: an account that is gone, whose games go along; `had`: whether
 *   the service knows the key; `left`: claimed or joined, which a database can lose with its last hours
 * @typedef {{game_id: string, mode?: any, draw_mode?: string, won?: boolean, score?: number, seconds?: number, ended_at?: string, undone?: boolean, seed?: string}} Game
 *   as it is sent
 * @typedef {{id: string, won: boolean, score: number, seconds: number, draw: 1 | 3, mode?: string | {Difficulty: string}, undone?: boolean,
 *   day?: {date: string} | null, seed?: string | number | bigint | null, replay?: Record<string, any> | null}} GameRecord
 *   a finished game; `id` is a UUID, `day` the deal of the day that was played, and `replay` of a win is what docs/replays.md describes, where the seed may be a BigInt
 * @typedef {{body: string | null, replay: string | null, refused: boolean}} Win an upload: the same text is sent until there is an answer
 * @typedef {{game: Game, day: string | null, settled: number | null, again: boolean, error: string | null, win: Win | null}} Entry
 * @typedef {{latest: any, played: number, day: string | null, full: number, games: Entry[]}} Player
 * @typedef {object} Journal
 * @property {string | null} player the id of the account, also after the service has ended the session
 * @property {boolean | null} isGuest whether that account is a guest; null if unknown
 * @property {Pair | null} session
 * @property {string | null} retryKey of a refresh without an answer
 * @property {{path: string, username: string, key: string} | null} signing a login without an answer
 * @property {Refusal & {why: string} | null} refused set while the session is set aside; the code of the first refusal
 * @property {Guest | null} guest
 * @property {{from: string, token: string, key: string | null, refused: number} | null} joining
 *   the guest whose games the player takes over, its refresh token, its key until that is tried, and the time of the service's last refusal
 * @property {Record<string, Player>} players by account; "" has the games from before a sign-in
 */

const VERSION = 2;
export const DAY_MS = 86_400_000;
const KEPT_DAYS = 30;
const KEPT = 200;

/** What a journal has after signing out. */
export const SIGNED_OUT = { player: null, isGuest: null, session: null, retryKey: null, refused: null, joining: null };

/** @param {any} [player] @returns {Player} */
function complete(player) {
  const { games } = Object(player);
  const sound = Array.isArray(games) ? games.filter((entry) => typeof entry?.game?.game_id === "string") : [];
  return { latest: null, played: 0, day: null, full: 0, ...player, games: sound };
}

/** The journal in a store, with all fields. @param {any} value @returns {Journal} */
export function journalOf(value) {
  const { version = VERSION, players = {}, ...rest } = Object(value);
  if (version > VERSION) throw new Error("A newer version of this game has written the journal.");
  const entries = Object.entries(Object(players)).map(([name, player]) => [name, complete(player)]);
  const bare = Object.setPrototypeOf(Object.fromEntries(entries), null); // a prototype would have entries for names like `constructor`
  return { ...SIGNED_OUT, signing: null, guest: null, ...rest, version, players: bare };
}

/** A player, who is added if missing. @param {Journal} journal @param {string} name */
export const playerOf = (journal, name) => (journal.players[name] ??= complete());

/** @param {Entry} entry */
export const isUnsent = ({ settled, error }) => !settled && !error;

/** Whether a game must be sent, perhaps again. @param {Entry} entry */
export const isDue = (entry) => isUnsent(entry) || entry.again;

/** Whether an upload waits. @param {Entry} entry */
export const waits = ({ win }) => win && !win.replay && !win.refused;

/** The entry of a game, of any player. @param {Journal} journal @param {string} id @returns {Entry | undefined} */
export const entryOf = ({ players }, id) =>
  Object.values(players)
    .flatMap(({ games }) => games)
    .find(({ game }) => game.game_id === id);

/** Remove what is old or empty. @param {Journal} journal @param {number} now */
export function tidy({ players }, now) {
  const isOld = (/** @type {Entry} */ entry) =>
    !isDue(entry) && !waits(entry) && now - Number(entry.settled) > KEPT_DAYS * DAY_MS;
  for (const [name, player] of Object.entries(players)) {
    const old = player.games.slice(0, -KEPT).filter(isOld);
    if (old.length) player.games = player.games.filter((entry) => !old.includes(entry));
    if (!player.latest && !player.games.length) delete players[name];
  }
}

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** The service refuses other numbers. @param {number} value */
const whole = (value) => Math.min(Math.max(0, Math.floor(value)) || 0, 2 ** 31 - 1);

/** Return a change that enters a finished game once. @param {GameRecord} record @param {Date} ended @param {string | null} [as] the account, if not the present one @returns {(journal: Journal) => void} */
export function entering(record, ended, as = null) {
  const { won, score, seconds, draw, mode = "Classic", undone = false, day, replay, seed = replay?.seed } = record;
  if (!UUID.test(record.id)) throw new TypeError("id must be a UUID");
  const id = record.id.toLowerCase();
  const text = (/** @type {any} */ _, /** @type {any} */ value) => (typeof value === "bigint" ? String(value) : value);
  const body = won && replay ? JSON.stringify({ ...replay, game_id: id }, text) : null;
  const game = {
    game_id: id,
    mode,
    draw_mode: draw === 3 ? "DrawThree" : "DrawOne",
    won,
    score: whole(score),
    seconds: whole(seconds),
    ended_at: localTime(ended),
    undone,
    ...((seed ?? null) !== null && { seed: String(seed) }),
  };
  let owner = as;
  return (journal) => {
    owner ??= journal.player ?? "";
    if (entryOf(journal, id)) return;
    const win = body ? { body, replay: null, refused: false } : null;
    const entry = { game, day: day?.date ?? null, settled: null, again: false, error: null, win };
    playerOf(journal, owner).games.push(entry);
  };
}

/** A time as local time with its offset. @param {Date} moment */
export function localTime(moment) {
  const minutes = -moment.getTimezoneOffset();
  const two = (/** @type {number} */ part) => String(Math.floor(Math.abs(part))).padStart(2, "0");
  const local = new Date(moment.getTime() + minutes * 60_000).toISOString().slice(0, -1);
  return `${local}${minutes < 0 ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}

/** @template T @param {() => Promise<T>} work of a store @returns {Promise<T>} */
async function stored(work) {
  try {
    return await work();
  } catch (error) {
    const { SolisyncError } = await import("./error.js");
    if (error instanceof SolisyncError) throw error;
    throw Object.assign(new SolisyncError(0, "storage", "Your games can’t be saved on this device now."), {
      cause: error,
    });
  }
}

/** Reads and changes the journal. Each change is stored when it returns; errors of the store have the code "storage". */
export class Kept {
  /** The journal that was read or stored last. */
  #last = journalOf(undefined);
  /** Changes that the store has refused so far. @type {Set<(journal: Journal) => void>} */
  #unsaved = new Set();

  /** @type {Promise<import("./former.js").Former | null> | undefined} */
  #opened;

  /** @param {import("./stores.js").Store} store @param {() => Date} now @param {() => Promise<typeof import("./former.js")>} load loads the module for stores of version 1.1 */
  constructor(store, now, load) {
    this.store = store;
    this.load = load;
    this.now = () => Number(now());
  }

  /** The number of games that the store has refused so far. */
  get unsaved() {
    return this.#unsaved.size;
  }

  /** What version 1.1 has left to send, or null: its store is looked into once a start. @returns {Promise<import("./former.js").Former | null>} */
  opened() {
    this.#opened ??= stored(async () => {
      const { store } = this;
      const value = store.former ? await store.former() : Object(await store.read());
      if (!value || !(store.former || value.journals || value.former)) return null;
      const { takeOver, within } = await this.load();
      return takeOver(store.former ? value : await within(store), this);
    }).catch((error) => {
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }

  /** The id of the signed-in account, or null. */
  async player() {
    await this.opened();
    const { player, session, refused } = await this.read();
    return session && !refused ? player : null;
  }

  async read() {
    return (this.#last = await stored(async () => journalOf(await this.store.read())));
  }

  /** The journal to show: with what isn't stored yet, and as read before if the store can't be read. @returns {Promise<Journal>} */
  async shown() {
    await this.read().catch(() => {});
    const journal = journalOf(structuredClone(this.#last));
    for (const alter of this.#unsaved) alter(journal);
    return journal;
  }

  /** @template T @param {(journal: Journal) => T} alter @returns {Promise<T>} */
  async change(alter) {
    const before = [...this.#unsaved];
    let journal = this.#last;
    const result = await stored(() =>
      this.store.change((value) => {
        journal = journalOf(value);
        for (const earlier of before) earlier(journal);
        const result = alter(journal);
        tidy(journal, this.now());
        return [journal, result];
      }),
    );
    this.#last = journal;
    for (const earlier of before) this.#unsaved.delete(earlier);
    return result;
  }

  /** Store a change that may be made twice, now or with a later change. @param {(journal: Journal) => void} alter */
  note(alter) {
    this.#unsaved.add(alter);
    return this.change(() => {});
  }

  /** Store the changes that the store has refused. */
  async save() {
    if (this.#unsaved.size) await this.change(() => {});
  }

  /** Run work alone; errors of the work itself stay as they are. @template T @param {string} name @param {() => Promise<T>} work @returns {Promise<T>} */
  async exclusively(name, work) {
    const run = await stored(() =>
      this.store.exclusively(name, async () => {
        const [result] = await Promise.allSettled([work()]);
        return result;
      }),
    );
    if (run.status === "rejected") throw run.reason;
    return run.value;
  }
}
