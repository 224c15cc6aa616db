// @ts-check
/** A search for a winnable deal. It sees all cards. A search without a win proves nothing. */

import { newSeed } from "./game.js";
import { COLUMNS, deal, FOUNDATIONS, isWon, moves, play, STOCK, text } from "./klondike.js";

/** @typedef {import("./board.js").Position} Position */

const DEALS = 20;
const POSITIONS = 3000; // for each deal; nearly all wins are found among the first 2,000
const SLICE_MS = 8;

/** @param {string[]} names @param {(pile: string) => number} of */
const sum = (names, of) => names.reduce((total, pile) => total + of(pile), 0);

/** How near to a win a position looks: cards on foundations, face up, and out of the stock. @param {Position} position */
const nearness = ({ piles, down }) =>
  sum(FOUNDATIONS, (pile) => piles[pile].length) + 2 * (21 - sum(COLUMNS, (pile) => down[pile])) + 24 - piles.s.length - piles.w.length;

/** Search for a win, nearest positions first, and return whether there is one. Yield after each slice of time. @param {Position} first @param {number} draw */
export function* isWinnable(first, draw) {
  const seen = new Set([text(first)]);
  /** @type {Position[][]} by nearness */
  const open = [];
  const put = (/** @type {Position} */ position) => (open[nearness(position)] ??= []).push(position);
  put(first);
  for (let began = performance.now(); open.length && seen.size < POSITIONS; ) {
    const position = open[open.length - 1]?.pop();
    if (!position) {
      open.pop();
      continue;
    }
    for (const move of [STOCK, ...moves(position)]) {
      const played = play(position, move, draw);
      const state = played && text(played.position);
      if (!played || !state || seen.has(state)) continue;
      if (isWon(played.position)) return true;
      seen.add(state);
      put(played.position);
    }
    if (performance.now() - began > SLICE_MS) {
      yield false;
      began = performance.now();
    }
  }
  return false;
}

/** The seed of a winnable deal, or of any deal after DEALS searches or when stopped. @param {number} draw @param {AbortSignal} stop */
export async function winnableSeed(draw, stop) {
  let seed = newSeed();
  for (let tried = 0; tried < DEALS && !stop.aborted; tried++) {
    for (const search = isWinnable(deal(BigInt(seed)), draw); !stop.aborted; ) {
      const { done, value } = search.next();
      if (done && value) return seed;
      if (done) break;
      await new Promise((resolve) => setTimeout(resolve));
    }
    seed = newSeed();
  }
  return seed;
}
