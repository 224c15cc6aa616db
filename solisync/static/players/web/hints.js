// @ts-check
/**
 * Hints, and whether a game is stuck.
 *
 * Hints follow a win that the solver has found. Without one, a hint leads to a better position than any so far in the
 * game: more cards face up or out of the stock, or as many of these and more cards on the foundations. Only undo lowers
 * the first number, so these hints never lead in a circle.
 */

import { named, place } from "./board.js";
import { COLUMNS, FOUNDATIONS, goodTargets, moves, play, STOCK, targets, text } from "./klondike.js";
import { solve } from "./solver.js";

/**
 * @typedef {import("./board.js").Position} Position
 * @typedef {import("./klondike.js").Move} Move
 * @typedef {import("./game.js").Game} Game
 */

const POSITIONS = 500; // for each search; longer searches won 1 more of 600 simulated games
const TWICE = 2; // hints don't lead to a position that the game has reached so often

/** The value of a position; higher is better. @param {Position} position */
function value({ piles, down }) {
  const hidden = COLUMNS.reduce((sum, pile) => sum + down[pile], piles.s.length + piles.w.length);
  return FOUNDATIONS.reduce((sum, pile) => sum + piles[pile].length, -100 * hidden);
}

/** The position after a legal move. @param {Position} position @param {Move} move @param {number} draw */
const after = (position, move, draw) =>
  /** @type {import("./klondike.js").Played} */ (play(position, move, draw)).position;

/** The benefit of a move by itself, to sort helpful moves. @param {Position} position @param {Move} move */
function worth({ piles, down }, { from, to, count }) {
  const rest = piles[from].length - count;
  const turnsUp = from[0] === "t" && rest > 0 && rest === down[from] ? 100 + rest : 0;
  return turnsUp + (to[0] === "f" ? 60 : 0) || 40;
}

/** The cards that clicks on the stock alone bring to the top of the waste. @param {Position} position @param {number} draw */
function broughtUp(position, draw) {
  const cards = new Set();
  const seen = new Set();
  for (let clicked = play(position, STOCK, draw); clicked; clicked = play(clicked.position, STOCK, draw)) {
    const { w, s } = clicked.position.piles;
    if (seen.has(`${s}|${w}`)) break; // the stock has gone round once
    seen.add(`${s}|${w}`);
    if (w.length) cards.add(w[w.length - 1]);
  }
  return [...cards];
}

/** Whether one of these cards can be moved once it is on the waste. @param {Position} position @param {number[]} cards */
const takesOne = ({ piles, down }, cards) =>
  cards.some((card) => targets({ piles: { ...piles, w: [card] }, down }, "w", 0).length);

/** All moves of cards, including those from foundations. @param {Position} position @returns {Move[]} */
const allMoves = (position) => [
  ...moves(position),
  ...FOUNDATIONS.flatMap((from) =>
    goodTargets(position, from, position.piles[from].length - 1).map((to) => ({ from, to, count: 1 })),
  ),
];

/**
 * Search for the fewest moves of cards to a position that is better than `best`, or that can take one of `cards` from
 * the stock. Return the first of these moves, or null if the search finds none.
 * @param {Position} position @param {number} best @param {number[]} cards @param {(position: Position) => Move[]} from the moves to try
 * @param {(state: string) => boolean} [allowed] whether the first move may lead to that position
 */
function way(position, best, cards, from, allowed = () => true) {
  const known = new Set([text(position)]);
  /** @type {{at: Position, first: Move | null}[]} */
  const open = [{ at: position, first: null }];
  for (const { at, first } of open) {
    // the loop appends to it
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

/** The value of the best position so far. @param {Position} position @param {Position[]} before */
const bestOf = (position, before) => Math.max(...[position, ...before].map(value));

/** The moves that improve the position by themselves, best first. @param {Position} position @param {number} best */
const helping = (position, best) =>
  moves(position)
    .filter((move) => value(after(position, move, 1)) > best)
    .sort((one, other) => worth(position, other) - worth(position, one));

/** Whether the search finds no moves that lead to a better position. @param {Position} position @param {number} draw @param {Position[]} before the earlier positions of the game, in order */
export function isStuck(position, draw, before) {
  const best = bestOf(position, before);
  const cards = broughtUp(position, draw);
  return !helping(position, best).length && !takesOne(position, cards) && !way(position, best, cards, allMoves);
}

/**
 * The positions to which a hint moves no card, as text: the one before the last move, and those that the game has passed
 * twice. So hints end when the stock has gone round twice without a better position.
 * @param {Position[]} before @param {Position[]} passed
 */
function banned(before, passed) {
  const states = passed.map(text);
  const count = new Map();
  for (const state of states) count.set(state, (count.get(state) ?? 0) + 1);
  return [...before.slice(-1).map(text), ...[...count.keys()].filter((state) => count.get(state) >= TWICE)];
}

/**
 * The moves that improve the position or prepare that, best first.
 * @param {Position} position @param {number} draw @param {Position[]} before the earlier positions of the game, in order
 * @param {string[]} ban the positions to which no card is moved, as text
 * @returns {Move[]}
 */
function improving(position, draw, before, ban) {
  const best = bestOf(position, before);
  const cards = broughtUp(position, draw);
  const allowed = (/** @type {string} */ state) => !ban.includes(state);
  const turned = play(position, STOCK, draw);
  const stock = turned && takesOne(position, cards) && allowed(text(turned.position)) ? [STOCK] : [];
  const now = helping(position, best).filter((move) => allowed(text(after(position, move, 1))));
  if (now.length) return [...now, ...stock];
  const onColumns = way(position, best, [], moves, allowed);
  const found = [...(onColumns ? [onColumns] : []), ...stock];
  const other = found.length
    ? null
    : (way(position, best, cards, moves, allowed) ?? way(position, best, cards, allMoves, allowed));
  return other ? [other] : found;
}

/** @type {Map<string, Move>} by position, the next move to the win found last */
let winning = new Map();

/** The next move to a win, and whether there is none; neither if the search has found no win so far. @param {Game} game @returns {Promise<{move?: Move, lost: boolean}>} */
async function toWin({ position, draw, before, passed }) {
  const ban = banned(before, passed);
  const known = winning.get(JSON.stringify(position));
  const returns = known && known !== STOCK && ban.includes(text(after(position, known, draw)));
  if (known && !returns) return { move: known, lost: false };
  const { moves: found, lost } = await solve(position, draw, ban);
  if (!found) return { lost };
  winning = new Map();
  let at = position;
  for (const move of found) {
    winning.set(JSON.stringify(at), move);
    at = after(at, move, draw);
  }
  return { move: found[0], lost: false };
}

/** Whether a search of all moves has found no win. @param {Game} game */
export const isLost = async (game) => isStuck(game.position, game.draw, game.before) && (await toWin(game)).lost;

/**
 * The moves to offer as hints, best first. None of them takes the last move back, or moves cards to a position that
 * the game has already passed twice.
 * @param {Game} game @param {number} patience how many milliseconds to wait for the solver
 * @returns {Promise<Move[]>}
 */
export async function hints(game, patience) {
  const { position, draw, before, passed } = game;
  /** @type {Promise<{move?: Move, lost: boolean}>} */
  const late = new Promise((resolve) => setTimeout(() => resolve({ lost: false }), patience));
  const { move: first } = await Promise.race([toWin(game), late]);
  const others = improving(position, draw, before, banned(before, passed));
  return first ? [first, ...others.filter((move) => JSON.stringify(move) !== JSON.stringify(first))] : others;
}

/** The hint with a number, and its words. @param {Game} game @param {number} number @param {number} patience how many milliseconds to wait for the solver */
export async function hint(game, number, patience) {
  const { piles } = game.position;
  const found = await hints(game, patience);
  const move = found[number % found.length];
  if (!move) return { words: "Hint: undo the last move" }; // every way forward begins with an undo
  if (move === STOCK)
    return { move, words: piles.s.length ? "Hint: turn up cards from the stock" : "Hint: turn the waste over" };
  return {
    move,
    words: `Hint: ${named(/** @type {number} */ (piles[move.from].at(-move.count)))} to ${place(move.to)}`,
  };
}
