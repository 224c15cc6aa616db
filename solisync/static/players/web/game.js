// @ts-check
/** A game in play, with its time, steps and redo; and its copy in this browser's storage. */

import { dayKey, gameKey, local, username } from "./http.js";
import { COLUMNS, FOUNDATIONS, SEED_MAX, STOCK } from "./klondike.js";
import { Klondike } from "./klondike_game.js";

/**
 * @typedef {import("./board.js").Step} Step
 * @typedef {import("./klondike.js").Move} Move
 * @typedef {import("./klondike_game.js").Day} Day
 * @typedef {{id: string, deal: string, draw: number, day: Day | null, moves: string, undos: number[], ms: number}} Kept
 *   a game in its stored form; `moves` has three letters for each move
 */

const MOVES_MAX = 20_000; // the server doesn't check longer games
const PILES = [...FOUNDATIONS, ...COLUMNS, "w"];
const LETTERS = "abcdefghijkl"; // one for each pile
const STOCK_LETTERS = "s-0";
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The text if it is a seed in its only accepted spelling, or null. @param {string | null} text */
export const seedOf = (text) =>
  /^(0|[1-9]\d{0,19})$/.test(text ?? "") && BigInt(text ?? "") <= SEED_MAX ? text : null;

/** A random seed of 53 bits, which a JavaScript number holds exactly. */
export const newSeed = () => String(crypto.getRandomValues(new BigUint64Array(1))[0] >> 11n);

/** Seeds of deals that can be won with either draw, for the first game, which doesn't wait for a search. */
const FIRST = [
  103, 105, 107, 109, 112, 113, 114, 115, 118, 119, 120, 127, 130, 131, 132, 133, 134, 136, 137, 138, 139, 140, 141,
  142, 143, 148, 151, 153, 154, 156, 158, 162,
];
export const firstSeed = () => String(FIRST[Math.floor(Math.random() * FIRST.length)]);

/** @param {Move} move */
const lettered = (move) =>
  move === STOCK
    ? STOCK_LETTERS
    : LETTERS[PILES.indexOf(move.from)] + LETTERS[PILES.indexOf(move.to)] + move.count.toString(14);

/** @param {string} letters @returns {Move} */
const read = (letters) =>
  letters === STOCK_LETTERS
    ? STOCK
    : {
        from: PILES[LETTERS.indexOf(letters[0])],
        to: PILES[LETTERS.indexOf(letters[1])],
        count: parseInt(letters[2], 14),
      };

export class Game extends Klondike {
  player = ""; // the username of the player, or "" for a signed-out game
  milliseconds = 0;
  /** @type {{move: Move, step: Step}[]} the moves that aren't undone */
  made = [];
  /** @type {Move[]} the moves that redo can make again, the next one last */
  undone = [];
  /** All positions of the game in their order, including those undone later. */
  passed = [this.position];

  /** Make a move, and return its step, or null if the rules refuse it. @param {Move} move */
  play(move) {
    const played = super.play(move);
    if (!played) return null;
    const [from, to] = played.turned ? ["w", "s"] : [move.from, move.to];
    /** @type {Step} */
    const step = {
      input: move === STOCK ? "stock" : "move",
      from,
      to,
      cards: played.cards,
      flipped: played.flipped,
      score: this.score,
    };
    this.made.push({ move, step });
    const again = this.undone.pop();
    if (again && lettered(again) !== lettered(move)) this.undone = [];
    this.passed.push(this.position);
    return { ...played, ...step };
  }

  /** The number of moves that aren't undone. */
  get moves() {
    return this.made.length;
  }

  /** The earlier positions, without those undone later. */
  get before() {
    return this.history.map(({ position }) => position);
  }

  /** Take the last move back, and return the step, or null if there is none. @returns {Step | null} */
  undo() {
    const last = super.undo() && this.made.pop();
    if (!last) return null;
    const { move, step } = last;
    this.undone.push(move);
    this.passed.push(this.position);
    return { ...step, input: "undo", from: step.to, to: step.from, score: this.score };
  }

  /** The time of the game for uploads and statistics. */
  get seconds() {
    return Math.max(1, Math.floor(this.milliseconds / 1000));
  }

  /** @returns {Kept} */
  kept() {
    const { id, seed: deal, draw, day, accepted, undoPlaces: undos, milliseconds } = this;
    return { id, deal, draw, day, moves: accepted.map(lettered).join(""), undos, ms: Math.floor(milliseconds) };
  }
}

/** Replay a stored game from its deal. Return null if it isn't a valid game. @param {any} kept @returns {Game | null} */
export function restored(kept) {
  const { id, deal: seed, draw, day, moves, undos, ms } = kept ?? {};
  const sound =
    typeof seed === "string" &&
    seedOf(seed) &&
    (draw === 1 || draw === 3) &&
    typeof id === "string" &&
    UUID.test(id) &&
    typeof moves === "string" &&
    moves.length <= 3 * MOVES_MAX &&
    Array.isArray(undos) &&
    Number.isFinite(ms) &&
    ms >= 0;
  if (!sound || !isDay(day)) return null;
  const game = new Game(seed, draw, day, id);
  const places = undos.values();
  let { value: place } = places.next();
  for (let index = 0; ; index++) {
    for (; place === index; { value: place } = places.next()) if (!game.undo()) return null;
    const letters = moves.slice(3 * index, 3 * index + 3);
    if (!letters) break;
    const move = read(letters);
    if (!move.from || !move.to || !game.play(move)) return null;
  }
  if (place !== undefined) return null;
  game.milliseconds = ms;
  return game;
}

/** Whether a stored value is a day, or null. @param {any} day */
function isDay(day) {
  const goal = (/** @type {any} */ value) => value === null || Number.isFinite(value);
  return (
    day === null ||
    (/^\d{4}-\d\d-\d\d$/.test(day?.date) &&
      typeof day.description === "string" &&
      goal(day.target_score) &&
      goal(day.max_time_secs))
  );
}

// Storage in this browser

const SETTINGS = "solisync.play";
const COLOURS = "solisync.colours"; // shared with the pages of replays

const DEFAULTS = { draw: 1, tap: true, winnable: true, four: false, large: false, left: false, keys: true };

/** @typedef {typeof DEFAULTS & {draw: 1 | 3}} Settings */

/** @param {string} key */
function stored(key) {
  try {
    return JSON.parse(local?.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

/** Store a value. Return false if the browser refuses. @param {string} key @param {any} value */
function store(key, value) {
  try {
    local?.setItem(key, JSON.stringify(value));
    return Boolean(local);
  } catch {
    return false;
  }
}

/** The storage key of a player's game of a day, or of another deal. @param {string} player @param {boolean} daily */
const slot = (player, daily) => (daily ? dayKey : gameKey)(player);

/** The last stored game of the player, or else the signed-out game; null if there is no valid one. @param {boolean} daily whether it is the game of a day */
export function keptGame(daily) {
  const players = new Set([username() ?? "", ""]);
  for (const player of players) {
    for (const key of new Set([slot(player, daily), gameKey(player)])) {
      // version 1.1 has one key for all games
      const kept = restored(stored(key));
      if (!kept || (kept.day !== null) !== daily) continue;
      kept.player = player;
      return kept;
    }
  }
  return null;
}

/** @param {Game} game */
export const keepGame = (game) => store(slot(game.player, game.day !== null), game.kept());

/** Give a signed-out game to the player who is signed in now, if any, and store it under its key alone. @param {Game} game */
export function claim(game) {
  game.player ||= username() ?? "";
  if (!keepGame(game)) return;
  const own = slot(game.player, game.day !== null);
  for (const key of [gameKey(""), dayKey(""), gameKey(game.player)])
    if (key !== own && stored(key)?.id === game.id) local?.removeItem(key);
}

/** @returns {Settings} */
export function settings() {
  const { draw, ...marks } = Object(stored(SETTINGS));
  if (local) marks.four = local.getItem(COLOURS) === "four";
  const known = Object.entries(DEFAULTS).map(([name, value]) => [
    name,
    typeof value === "boolean" ? (marks[name] ?? value) : draw === 3 ? 3 : 1,
  ]);
  return /** @type {Settings} */ (Object.fromEntries(known));
}

/** @param {Settings} chosen */
export function keepSettings(chosen) {
  if (store(SETTINGS, chosen)) local?.setItem(COLOURS, chosen.four ? "four" : "two");
}
