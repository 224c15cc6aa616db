// @ts-check
/** A game of Klondike: its position, points and record, and the result to hand to `Solisync.finish`. */

import { deal, isWon, play, points, STOCK, UNDO_PENALTY } from "./klondike.js";

export { moves, STOCK, targets } from "./klondike.js";

/**
 * @typedef {import("./klondike.js").Move} Move
 * @typedef {{date: string, description: string, target_score: number | null, max_time_secs: number | null}} Day
 */

/** The name of a pile in recordings. @param {string} pile */
const recordedPile = (pile) =>
  pile === "w" ? "Waste" : { [pile[0] === "f" ? "Foundation" : "Tableau"]: Number(pile[1]) };

/** @param {Move} move */
const recorded = (move) =>
  move === STOCK
    ? "StockClick"
    : { Move: { from: recordedPile(move.from), to: recordedPile(move.to), count: move.count } };

/** A random UUID. Browsers offer crypto.randomUUID on HTTPS only. */
function newId() {
  const digit = (/** @type {number} */ most) => crypto.getRandomValues(new Uint8Array(1))[0] & most;
  return "########-####-4###-+###-############".replace(/[#+]/g, (sign) =>
    (sign === "#" ? digit(15) : 8 + digit(3)).toString(16),
  );
}

const UNDO_DEPTH = 64; // the server refutes a game with a deeper undo

export class Klondike {
  score = 0;
  won = false;
  /** How often the waste has been turned over. An undo doesn't change it. */
  turns = 0;
  /** @type {Move[]} all accepted moves, including those undone later */
  accepted = [];
  /** @type {number[]} for each undo, the index of the accepted move before which it happened */
  undoPlaces = [];
  /** @type {{position: import("./klondike.js").Position, score: number}[]} the state before each move that isn't undone */
  history = [];
  /** The number of first moves that are out of the reach of undo. */
  fixed = 0;

  /** @param {string | bigint} seed 0 to 2^64-1 @param {1 | 3} draw @param {Day | null} [day] the day of a deal of the day @param {string} [id] a UUID */
  constructor(seed, draw, day = null, id = newId()) {
    this.seed = String(seed);
    this.draw = draw;
    this.day = day;
    this.id = id;
    this.position = deal(BigInt(seed));
  }

  /** Deal the cards of a day, or of a seed. @param {(Day & {seed: string}) | string | bigint} what @param {"DrawOne" | "DrawThree"} mode */
  static deal(what, mode) {
    const draw = mode === "DrawThree" ? 3 : 1;
    return typeof what === "object" ? new Klondike(what.seed, draw, what) : new Klondike(what, draw);
  }

  /** Make a move. Return what it did, or null if the rules refuse it. @param {Move} move @returns {import("./klondike.js").Played | null} */
  play(move) {
    const played = this.won ? null : play(this.position, move, this.draw);
    if (!played) return null;
    if (played.turned) this.turns += 1;
    this.history.push({ position: this.position, score: this.score });
    this.fixed = Math.max(this.fixed, this.history.length - UNDO_DEPTH);
    this.score = Math.max(0, this.score + points(move, played, this.draw, this.turns));
    this.position = played.position;
    this.won = isWon(played.position);
    this.accepted.push(move);
    return played;
  }

  get canUndo() {
    return !this.won && this.history.length > this.fixed;
  }

  /** Take the last move back, if it is one of the last 64 moves. @returns {object | null} null if no move can be undone */
  undo() {
    const before = this.canUndo && this.history.pop();
    if (!before) return null;
    this.position = before.position;
    this.score = Math.max(0, before.score - UNDO_PENALTY);
    this.undoPlaces.push(this.accepted.length);
    return before;
  }

  /** The finished game, won or given up. @param {{seconds: number, date?: Date}} time how long it took, and when it ended */
  record({ seconds, date = new Date() }) {
    const { id, draw, day, won, undoPlaces } = this;
    const score = won ? this.score : 0;
    const replay = won
      ? {
          schema_version: 2,
          seed: this.seed,
          draw_mode: draw === 3 ? "DrawThree" : "DrawOne",
          mode: "Classic",
          time_seconds: seconds,
          final_score: score,
          recorded_at: date.toISOString().slice(0, 10),
          moves: this.accepted.map(recorded),
          undo_places: undoPlaces,
        }
      : null;
    return { id, won, score, seconds, draw, undone: undoPlaces.length > 0, day, replay };
  }
}
