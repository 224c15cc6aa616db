// @ts-check
/**
 * Hints, and whether a game is stuck.
 *
 * A hint leads to a position that is better than any so far in the game: more cards are turned up or out of the stock,
 * or as many and more of them at home. Undo alone lowers the first number, so hints never lead in a circle.
 */

import { COLUMNS, FOUNDATIONS, goodTargets, moves, play, STOCK, targets, text } from "./klondike.js";

/**
 * @typedef {import("./board.js").Position} Position
 * @typedef {import("./klondike.js").Move} Move
 */

const POSITIONS = 500; // of a search; longer ones won 1 more of 600 simulated games
const TWICE = 2; // a position that was seen so often is not worth another visit

/** How good a position is. @param {Position} position */
function value({ piles, down }) {
  const hidden = COLUMNS.reduce((sum, pile) => sum + down[pile], piles.s.length + piles.w.length);
  return FOUNDATIONS.reduce((sum, pile) => sum + piles[pile].length, -100 * hidden);
}

/** How much a move helps by itself, to order those that do. @param {Position} position @param {Move} move */
function worth({ piles, down }, { from, to, count }) {
  const rest = piles[from].length - count;
  const turnsUp = from[0] === "t" && rest > 0 && rest === down[from] ? 100 + rest : 0;
  return turnsUp + (to[0] === "f" ? 60 : 0) || 40;
}

/** The cards that clicks on the stock alone bring up. @param {Position} position @param {number} draw */
function broughtUp(position, draw) {
  const cards = new Set();
  const seen = new Set();
  for (let clicked = play(position, STOCK, draw); clicked; clicked = play(clicked.position, STOCK, draw)) {
    const { w, s } = clicked.position.piles;
    if (seen.has(`${s}|${w}`)) break; // the stock goes round
    seen.add(`${s}|${w}`);
    if (w.length) cards.add(w[w.length - 1]);
  }
  return [...cards];
}

/** Whether one of these cards, once on the waste, can be moved. @param {Position} position @param {number[]} cards */
const takesOne = ({ piles, down }, cards) => cards.some((card) => targets({ piles: { ...piles, w: [card] }, down }, "w", 0).length);

/** All moves of cards, those from foundations too. @param {Position} position @returns {Move[]} */
const allMoves = (position) => [...moves(position), ...FOUNDATIONS.flatMap((from) =>
  goodTargets(position, from, position.piles[from].length - 1).map((to) => ({ from, to, count: 1 })))];

/**
 * The first of the fewest moves of cards after which the position is better than `best`, or takes one of certain cards
 * of the stock; null if none was found.
 * @param {Position} position @param {number} best @param {number[]} cards @param {(position: Position) => Move[]} from the moves to look at
 * @param {(after: string) => boolean} [allowed] whether the first one may lead there
 */
function way(position, best, cards, from, allowed = () => true) {
  const known = new Set([text(position)]);
  /** @type {{at: Position, first: Move | null}[]} */
  const open = [{ at: position, first: null }];
  for (const { at, first } of open) { // which grows
    for (const move of from(at)) {
      const next = play(at, move, 1)?.position;
      const state = next && text(next);
      if (!next || !state || known.has(state) || (!first && !allowed(state))) continue;
      if (value(next) > best || takesOne(next, cards)) return first ?? move;
      if (known.add(state).size > POSITIONS) return null;
      open.push({ at: next, first: first ?? move });
    }
  }
  return null;
}

/** The best position so far. @param {Position} position @param {Position[]} before */
const bestOf = (position, before) => Math.max(...[position, ...before].map(value));

/** The moves that make the position better by themselves, best first. @param {Position} position @param {number} best */
const helping = (position, best) =>
  moves(position).filter((move) => value(/** @type {Position} */ (play(position, move, 1)?.position)) > best)
    .sort((one, other) => worth(position, other) - worth(position, one));

/** Whether no moves are found that lead to a better position. @param {Position} position @param {number} draw @param {Position[]} before the earlier positions of the game, in order */
export function isStuck(position, draw, before) {
  const best = bestOf(position, before);
  const cards = broughtUp(position, draw);
  return !helping(position, best).length && !takesOne(position, cards) && !way(position, best, cards, allMoves);
}

/**
 * The moves worth a hint, best first. None of them takes the last one back, or moves cards so that a position is there
 * for the third time.
 * @param {Position} position @param {number} draw @param {Position[]} before the earlier positions of the game, in order
 * @returns {Move[]}
 */
export function hints(position, draw, before) {
  const best = bestOf(position, before);
  const cards = broughtUp(position, draw);
  const states = before.map(text);
  const allowed = (/** @type {string} */ after) => after !== states[states.length - 1] && states.filter((state) => state === after).length < TWICE;
  const stock = takesOne(position, cards) ? [STOCK] : [];
  const now = helping(position, best);
  if (now.length) return [...now, ...stock];
  const onColumns = way(position, best, [], moves, allowed);
  const found = [...(onColumns ? [onColumns] : []), ...stock];
  const other = found.length ? null : way(position, best, cards, moves, allowed) ?? way(position, best, cards, allMoves, allowed);
  return other ? [other] : found;
}
