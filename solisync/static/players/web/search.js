// @ts-check
/** A worker that searches for a win. It sees all cards, and a search without a win proves nothing. */

import { COLUMNS, FOUNDATIONS, isWon, moves, play, STOCK, text } from "./klondike.js";

/**
 * @typedef {import("./board.js").Position} Position
 * @typedef {import("./klondike.js").Move} Move
 * @typedef {{position: Position, way: Way | null}} Node
 * @typedef {{move: Move, before: Node}} Way the last move to a position, and the node before it
 */

const POSITIONS = 6000; // in at most a second; twice as many win 4 more of 100 deals

/** @param {string[]} names @param {(pile: string) => number} of */
const sum = (names, of) => names.reduce((total, pile) => total + of(pile), 0);

/** How near to a win a position looks: cards on foundations, face up, and out of the stock. @param {Position} position */
const nearness = ({ piles, down }) =>
  sum(FOUNDATIONS, (pile) => piles[pile].length) +
  2 * (21 - sum(COLUMNS, (pile) => down[pile])) +
  24 -
  piles.s.length -
  piles.w.length;

/** The moves to a node. @param {Node} node */
function movesTo({ way }) {
  const found = [];
  for (let at = way; at; at = at.before.way) found.unshift(at.move);
  return found;
}

/** Search for the moves to a win, nearest positions first; null if the search finds none. @param {Position} first @param {number} draw @param {string[]} banned positions to which the first move must not move a card, as text */
function win(first, draw, banned) {
  const seen = new Set([text(first)]);
  /** @type {Node[][]} by nearness */
  const open = [];
  const put = (/** @type {Node} */ node) => (open[nearness(node.position)] ??= []).push(node);
  put({ position: first, way: null });
  while (open.length && seen.size < POSITIONS) {
    const before = open[open.length - 1]?.pop();
    if (!before) {
      open.pop();
      continue;
    }
    for (const move of [STOCK, ...moves(before.position)]) {
      const played = play(before.position, move, draw);
      const state = played && text(played.position);
      if (!played || !state || seen.has(state) || (!before.way && move !== STOCK && banned.includes(state))) continue;
      const node = { position: played.position, way: { move, before } };
      if (isWon(node.position)) return movesTo(node);
      seen.add(state);
      put(node);
    }
  }
  return null;
}

addEventListener("message", ({ data: { position, draw, banned }, ports: [port] }) =>
  port.postMessage(win(position, draw, banned)),
);
