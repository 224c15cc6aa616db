// @ts-check
/** A game in play: position, score, time, undo history and record of moves; and its copy in this browser's storage. */

import { gameKey, local, username } from "./http.js";
import { deal, isWon, play, points, SEED_MAX, STOCK, UNDO_PENALTY } from "./klondike.js";

/**
 * @typedef {import("./board.js").Position} Position
 * @typedef {import("./board.js").Step} Step
 * @typedef {import("./klondike.js").Move} Move
 * @typedef {import("./progress.js").Day} Day
 * @typedef {{position: Position, score: number, moves: number, move: Move, step: Step}} Before a state to return to, and the move that left it
 * @typedef {{id: string, deal: string, draw: number, day: Day | null, moves: string, undos: number[], ms: number}} Kept
 *   a game in its stored form; `moves` has three letters for each move
 */

const UNDO_DEPTH = 64;
const MOVES_MAX = 20_000; // the server doesn't check longer games
const PILES = ["f0", "f1", "f2", "f3", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "w"];
const LETTERS = "abcdefghijkl"; // one for each pile
const STOCK_LETTERS = "s-0";
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The text if it is a seed in its only accepted spelling, or null. @param {string | null} text */
export const seedOf = (text) => (/^(0|[1-9]\d{0,19})$/.test(text ?? "") && BigInt(text ?? "") <= SEED_MAX ? text : null);

/** A random seed of 53 bits, which a JavaScript number holds exactly. */
export const newSeed = () => String(crypto.getRandomValues(new BigUint64Array(1))[0] >> 11n);

/** A random UUID. Browsers offer crypto.randomUUID on HTTPS only. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 15) | 64;
  bytes[8] = (bytes[8] & 63) | 128;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** The name of a pile in recordings. @param {string} pile */
const recordedPile = (pile) => (pile === "w" ? "Waste" : { [pile[0] === "f" ? "Foundation" : "Tableau"]: Number(pile[1]) });

/** @param {Move} move */
const recorded = (move) =>
  move === STOCK ? "StockClick" : { Move: { from: recordedPile(move.from), to: recordedPile(move.to), count: move.count } };

/** @param {Move} move */
const lettered = (move) =>
  move === STOCK ? STOCK_LETTERS : LETTERS[PILES.indexOf(move.from)] + LETTERS[PILES.indexOf(move.to)] + move.count.toString(14);

/** @param {string} letters @returns {Move} */
const read = (letters) => letters === STOCK_LETTERS ? STOCK
  : { from: PILES[LETTERS.indexOf(letters[0])], to: PILES[LETTERS.indexOf(letters[1])], count: parseInt(letters[2], 14) };

export class Game {
  /** A new game. @param {string} seed @param {number} draw 1 or 3 @param {Day | null} day the day of a deal of the day @param {string} id */
  constructor(seed, draw, day = null, id = newId()) {
    this.seed = seed;
    this.draw = draw;
    this.day = day;
    this.id = id;
    this.player = ""; // the username of the player, or "" for a signed-out game
    this.position = deal(BigInt(seed));
    this.score = 0;
    this.moves = 0;
    this.turns = 0;
    this.won = false;
    this.milliseconds = 0;
    /** @type {Move[]} all accepted moves, including those undone later */
    this.record = [];
    /** @type {number[]} for each undo, the index of the recorded move before which it happened */
    this.undoPlaces = [];
    /** @type {Before[]} for each move that isn't undone */
    this.history = [];
    this.fixed = 0; // the number of first moves that are out of the reach of undo
    /** All positions of the game in their order, including those undone later. */
    this.passed = [this.position];
    /** @type {Move[]} the moves that redo can make again, the next one last */
    this.undone = [];
  }

  /** Make a move, and return its step, or null if the rules refuse it. @param {Move} move @returns {Step | null} */
  play(move) {
    const played = this.won ? null : play(this.position, move, this.draw);
    if (!played) return null;
    if (played.turned) this.turns += 1;
    const { position, score, moves } = this;
    this.score = Math.max(0, score + points(move, played, this.draw, this.turns));
    const [from, to] = played.turned ? ["w", "s"] : [move.from, move.to];
    /** @type {Step} */
    const step = { input: move === STOCK ? "stock" : "move", from, to, cards: played.cards, flipped: played.flipped, score: this.score };
    this.history.push({ position, score, moves, move, step });
    this.fixed = Math.max(this.fixed, this.history.length - UNDO_DEPTH);
    const again = this.undone.pop();
    if (again && lettered(again) !== lettered(move)) this.undone = [];
    this.position = played.position;
    this.passed.push(played.position);
    this.moves += 1;
    this.won = isWon(played.position);
    this.record.push(move);
    return step;
  }

  /** The earlier positions, without those undone later. */
  get before() {
    return this.history.map(({ position }) => position);
  }

  get canUndo() {
    return !this.won && this.history.length > this.fixed;
  }

  /** Take the last move back, and return the step, or null if there is none. @returns {Step | null} */
  undo() {
    const before = this.canUndo && this.history.pop();
    if (!before) return null;
    const { move, step } = before;
    this.undone.push(move);
    this.position = before.position;
    this.passed.push(this.position);
    this.score = Math.max(0, before.score - UNDO_PENALTY);
    this.moves = before.moves;
    this.undoPlaces.push(this.record.length);
    return { ...step, input: "undo", from: step.to, to: step.from, score: this.score };
  }

  /** The time of the game for uploads and statistics. */
  get seconds() {
    return Math.max(1, Math.floor(this.milliseconds / 1000));
  }

  /** The replay to upload after the win, as JSON. @param {string} date */
  upload(date) {
    const fields = {
      schema_version: 2, draw_mode: this.draw === 3 ? "DrawThree" : "DrawOne", mode: "Classic", time_seconds: this.seconds,
      final_score: this.score, recorded_at: date, game_id: this.id, moves: this.record.map(recorded), undo_places: this.undoPlaces,
    };
    return `{"seed":${this.seed},${JSON.stringify(fields).slice(1)}`; // stringify can't write the seed, a number of up to 64 bits
  }

  /** @returns {Kept} */
  kept() {
    const { id, seed, draw, day, undoPlaces, milliseconds } = this;
    return { id, deal: seed, draw, day, moves: this.record.map(lettered).join(""), undos: undoPlaces, ms: Math.floor(milliseconds) };
  }
}

/** Replay a stored game from its deal. Return null if it isn't a valid game. @param {any} kept @returns {Game | null} */
export function restored(kept) {
  const { id, deal: seed, draw, day, moves, undos, ms } = kept ?? {};
  const sound = typeof seed === "string" && seedOf(seed) && (draw === 1 || draw === 3) && typeof id === "string" && UUID.test(id)
    && typeof moves === "string" && moves.length <= 3 * MOVES_MAX && Array.isArray(undos) && Number.isFinite(ms) && ms >= 0;
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
  return day === null || (/^\d{4}-\d\d-\d\d$/.test(day?.date) && typeof day.description === "string"
    && goal(day.target_score) && goal(day.max_time_secs));
}

// Storage in this browser

const SETTINGS = "solisync.play";
const COLOURS = "solisync.colours"; // shared with the pages of replays

const DEFAULTS = { draw: 1, tap: true, winnable: false, four: false, large: false, left: false, keys: true };

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

/** The last stored game of the player, or else the signed-out game; null if there is no valid one. */
export function keptGame() {
  const player = username() ?? "";
  const own = player && restored(stored(gameKey(player)));
  if (!own) return restored(stored(gameKey("")));
  own.player = player;
  return own;
}

/** @param {Game} game */
export const keepGame = (game) => store(gameKey(game.player), game.kept());

/** Give a signed-out game to the player who is signed in now, if any. @param {Game} game */
export function claim(game) {
  if (game.player) return;
  game.player = username() ?? "";
  if (game.player && stored(gameKey(""))?.id === game.id) local?.removeItem(gameKey(""));
}

/** @returns {Settings} */
export function settings() {
  const { draw, ...marks } = Object(stored(SETTINGS));
  if (local) marks.four = local.getItem(COLOURS) === "four";
  const known = Object.entries(DEFAULTS).map(([name, value]) => [name, typeof value === "boolean" ? marks[name] ?? value : draw === 3 ? 3 : 1]);
  return /** @type {Settings} */ (Object.fromEntries(known));
}

/** @param {Settings} chosen */
export function keepSettings(chosen) {
  if (store(SETTINGS, chosen)) local?.setItem(COLOURS, chosen.four ? "four" : "two");
}
