// @ts-check
/** A game of Klondike: its position, points and record, and the result to hand to `Solisync.finish`. */

import { deal, isWon, play, points, STOCK, UNDO_PENALTY } from "./klondike.js";

export { moves, STOCK, targets } from "./klondike.js";

/**
 * @typedef {import("./klondike.js").Move} Move
 * @typedef {import("./progress.js").Day} Day
 */

/** The name of a pile in recordings. @param {string} pile */
const recordedPile = (pile) => (pile === "w" ? "Waste" : { [pile[0] === "f" ? "Foundation" : "Tableau"]: Number(pile[1]) });

/** @param {Move} move */
const recorded = (move) =>
  move === STOCK ? "StockClick" : { Move: { from: recordedPile(move.from), to: recordedPile(move.to), count: move.count } };

export class Klondike {
  /** The id of the game. */
  id = crypto.randomUUID();
  score = 0;
  won = false;
  #turns = 0;
  /** @type {Move[]} all accepted moves, including those undone later */
  #record = [];
  /** @type {number[]} for each undo, the index of the recorded move before which it happened */
  #undoPlaces = [];
  /** @type {{position: import("./klondike.js").Position, score: number}[]} */
  #history = [];

  /** @param {string | bigint} seed 0 to 2^64-1 @param {1 | 3} draw @param {Day | null} [day] the day of a deal of the day */
  constructor(seed, draw, day = null) {
    this.seed = BigInt(seed);
    this.draw = draw;
    this.day = day;
    this.position = deal(this.seed);
  }

  /** Deal the cards of a day, or of a seed. @param {(Day & {seed: string}) | string | bigint} what @param {"DrawOne" | "DrawThree"} mode */
  static deal(what, mode) {
    const draw = mode === "DrawThree" ? 3 : 1;
    return typeof what === "object" ? new Klondike(what.seed, draw, what) : new Klondike(what, draw);
  }

  /** Make a move, unless the rules refuse it. @param {Move} move @returns {boolean} whether it was made */
  play(move) {
    const played = this.won ? null : play(this.position, move, this.draw);
    if (!played) return false;
    if (played.turned) this.#turns += 1;
    this.#history.push({ position: this.position, score: this.score });
    this.score = Math.max(0, this.score + points(move, played, this.draw, this.#turns));
    this.position = played.position;
    this.won = isWon(played.position);
    this.#record.push(move);
    return true;
  }

  /** Take the last move back. @returns {boolean} whether there was one */
  undo() {
    const before = this.won ? undefined : this.#history.pop();
    if (!before) return false;
    this.position = before.position;
    this.score = Math.max(0, before.score - UNDO_PENALTY);
    this.#undoPlaces.push(this.#record.length);
    return true;
  }

  /** The finished game, won or given up. @param {{seconds: number, date?: Date}} time how long it took, and when it ended @returns {import("./solisync.js").GameRecord} */
  record({ seconds, date = new Date() }) {
    const { id, draw, day, score, won } = this;
    const replay = {
      schema_version: 2, seed: this.seed, draw_mode: draw === 3 ? "DrawThree" : "DrawOne", mode: "Classic", time_seconds: seconds,
      final_score: score, recorded_at: date.toISOString().slice(0, 10), moves: this.#record.map(recorded), undo_places: this.#undoPlaces,
    };
    return { id, won, score, seconds, draw, undone: this.#undoPlaces.length > 0, day, replay: won ? replay : null };
  }
}
