// @ts-check
/**
 * A worker that searches for a win. It sees all cards.
 *
 * The first search is that of klondike/solver.py, with the same order of moves and the same budget, so it finds a win of
 * each day whose deal was chosen for one. If it finds none, a search of all moves may prove that there is none.
 */

import { COLUMNS, FOUNDATIONS, goodTargets, isWon, moves, play, STOCK, targets, text } from "./klondike.js";

/**
 * @typedef {import("./board.js").Position} Position
 * @typedef {import("./klondike.js").Move} Move
 * @typedef {number[] | null} Step from pile, to pile, number of cards; null is a click on the stock
 * @typedef {{columns: number[][], heights: number[], stock: number[], waste: number[]}} Board foundations are heights by suit
 * @typedef {{board: Board, steps: Step[], before: Node | null}} Node
 */

const BUDGET = 4_000; // positions of one request
const MOST = 10 * BUDGET; // of one position, however often it is asked about
const SUIT = 13;
const KING = SUIT - 1;
const DOWN = 64; // added to a face-down card
const COLUMN = 4; // columns follow the foundations
const WASTE = 11;

const suitOf = (/** @type {number} */ card) => Math.floor(card / SUIT);
const isRed = (/** @type {number} */ card) => suitOf(card) === 1 || suitOf(card) === 2;
const CARDS = Array.from({ length: 4 * SUIT }, (_, card) => card);
/** For each card, the cards that it may lie on in a column. */
const LIES_ON = CARDS.map((above) =>
  CARDS.filter((below) => below % SUIT === (above % SUIT) + 1 && isRed(below) !== isRed(above)),
);

/** @param {Position} position @returns {Board} */
function boardOf({ piles, down }) {
  const heights = [0, 0, 0, 0];
  for (const pile of FOUNDATIONS) if (piles[pile].length) heights[suitOf(piles[pile][0])] = piles[pile].length;
  const columns = COLUMNS.map((pile) => piles[pile].map((card, index) => (index < down[pile] ? card + DOWN : card)));
  return { columns, heights, stock: piles.s, waste: piles.w };
}

/** The board after a click on the stock. @param {Board} board @param {number} draw @returns {Board} */
function clicked({ stock, waste, ...rest }, draw) {
  if (!stock.length) return { ...rest, stock: [...waste].reverse(), waste: [] };
  return { ...rest, stock: stock.slice(0, -draw), waste: [...waste, ...stock.slice(-draw)] };
}

/** The board after a legal step. @param {Board} board @param {Step} step @param {number} draw @returns {Board} */
function after(board, step, draw) {
  if (!step) return clicked(board, draw);
  const [from, to, size] = step;
  const columns = [...board.columns];
  const heights = [...board.heights];
  let { waste } = board;
  let cards;
  if (from < COLUMN) cards = [SUIT * from + --heights[from]];
  else if (from === WASTE) {
    cards = waste.slice(-1);
    waste = waste.slice(0, -1);
  } else {
    const column = columns[from - COLUMN];
    cards = column.slice(-size);
    const rest = column.slice(0, -size);
    if (rest.length && rest[rest.length - 1] >= DOWN) rest[rest.length - 1] -= DOWN;
    columns[from - COLUMN] = rest;
  }
  if (to < COLUMN) heights[to] += 1;
  else columns[to - COLUMN] = columns[to - COLUMN].concat(cards);
  return { columns, heights, stock: board.stock, waste };
}

const coded = (/** @type {number[]} */ cards) => String.fromCharCode(...cards.map((card) => card + 1));

/** A depth-first search that visits each position once. It moves parts of runs only to free a card for a foundation. */
class Search {
  /** @param {Position} position @param {number} draw @param {string[]} banned positions to which the first move must not move a card, as text */
  constructor(position, draw, banned) {
    this.position = position;
    this.draw = draw;
    this.banned = banned;
    const board = boardOf(position);
    this.visited = new Set([this.#key(board)]);
    /** @type {Node[]} */
    this.waiting = [{ board, steps: [], before: null }];
    /** @type {Map<string, [number, number][]>} */
    this.reachable = new Map();
  }

  /** A board without the order of its columns, and without the foundations, which hold all other cards. @param {Board} board */
  #key({ columns, stock, waste }) {
    const sorted = columns.map(coded).sort().join("\0");
    if (this.draw === 1) return `${sorted}\0${coded(waste)}${coded([...stock].reverse())}`; // clicks reach all of them
    return `${sorted}\0${coded(stock)}\0${coded(waste)}`;
  }

  /** Visit positions up to a number of them. Return the moves that win, or null. @param {number} budget */
  win(budget) {
    while (this.waiting.length && this.visited.size < budget) {
      const node = /** @type {Node} */ (this.waiting.pop());
      /** @type {Node[]} */
      const found = [];
      for (const steps of this.#continuations(node.board)) {
        let { board } = node;
        for (const step of steps) board = after(board, step, this.draw);
        const key = this.#key(board);
        if (this.visited.has(key) || (!node.before && !node.steps.length && this.#isBanned(steps))) continue;
        this.visited.add(key);
        const next = { board, steps, before: node };
        if (board.heights.every((height) => height === SUIT)) return this.#movesTo(next);
        found.push(next);
      }
      this.waiting.push(...found.reverse());
    }
    return null;
  }

  /** @param {Step[]} steps */
  #isBanned([step]) {
    if (!step || !this.banned.length) return false;
    const played = play(this.position, named(step, this.position), this.draw);
    return Boolean(played && this.banned.includes(text(played.position)));
  }

  /** @param {Node} last */
  #movesTo(last) {
    const steps = [];
    for (let node = /** @type {Node | null} */ (last); node; node = node.before) steps.unshift(...node.steps);
    let { position } = this;
    return steps.map((step) => {
      const move = named(step, position);
      position = /** @type {import("./klondike.js").Played} */ (play(position, move, this.draw)).position;
      return move;
    });
  }

  /** The next steps to try, best first. A safe step is the only one. @param {Board} board @returns {Step[][]} */
  #continuations(board) {
    const { columns, heights } = board;
    /** @type {number[]} */
    const tops = []; // by card, the column that it ends
    columns.forEach((cards, column) => {
      if (cards.length) tops[cards[cards.length - 1]] = column + COLUMN;
    });
    const empty = columns.findIndex((cards) => !cards.length);
    const columnsFor = (/** @type {number} */ card) => {
      if (card % SUIT === KING) return empty < 0 ? [] : [empty + COLUMN];
      return LIES_ON[card].filter((below) => tops[below] !== undefined).map((below) => tops[below]);
    };
    const fits = (/** @type {number} */ card) => heights[suitOf(card)] === card % SUIT;
    /** @type {Step[][]} */
    const best = [];
    /** @type {Step[][]} */
    const rest = [];
    for (const [column, cards] of columns.entries()) {
      const card = cards[cards.length - 1];
      if (card === undefined || !fits(card)) continue;
      const home = [[column + COLUMN, suitOf(card), 1]];
      if (isSafe(card, heights)) return [home];
      best.push(home);
    }
    for (const [column, cards] of columns.entries()) {
      const hidden = cards.findIndex((card) => card < DOWN);
      const up = hidden < 0 ? [] : cards.slice(hidden);
      const from = column + COLUMN;
      for (let size = 1; size <= up.length; size++) {
        const card = up[up.length - size];
        const freed = up[up.length - size - 1];
        const steps = () => columnsFor(card).map((to) => [from, to, size]);
        if (freed !== undefined) {
          if (fits(freed)) best.push(...steps().map((step) => [step, [from, suitOf(freed), 1]]));
        } else if (hidden) best.push(...steps().map((step) => [step]));
        else if (card % SUIT !== KING) rest.push(...steps().map((step) => [step]));
      }
    }
    for (const [card, clicks] of this.#reach(board)) {
      const to = [...(fits(card) ? [suitOf(card)] : []), ...columnsFor(card)];
      best.push(...to.map((pile) => [...Array(clicks).fill(null), [WASTE, pile, 1]]));
    }
    heights.forEach((height, suit) => {
      if (height > 1 && height < SUIT) rest.push(...columnsFor(SUIT * suit + height - 1).map((to) => [[suit, to, 1]]));
    });
    return [...best, ...rest];
  }

  /** The cards that clicks on the stock bring to the top of the waste, each with the number of clicks. @param {Board} board */
  #reach(board) {
    const key = `${coded(board.stock)}\0${coded(board.waste)}`;
    let found = this.reachable.get(key);
    if (found) return found;
    found = /** @type {[number, number][]} */ ([]);
    const seen = new Set();
    for (let at = board, clicks = 0; at.stock.length || at.waste.length; at = clicked(at, this.draw), clicks++) {
      const talon = `${coded(at.stock)}\0${coded(at.waste)}`;
      if (seen.has(talon)) break;
      seen.add(talon);
      if (at.waste.length) found.push([at.waste[at.waste.length - 1], clicks]);
    }
    this.reachable.set(key, found);
    return found;
  }
}

/** Whether the cards that could lie on this one in a column are on their foundations. @param {number} card @param {number[]} heights */
const isSafe = (card, heights) =>
  heights.every((height, suit) => suit === suitOf(card) || suit === 3 - suitOf(card) || height >= card % SUIT);

/** A step as a move of a position, where each suit has the foundation on which its ace lies. @param {Step} step @param {Position} position @returns {Move} */
function named(step, position) {
  if (!step) return STOCK;
  const [from, to, count] = step;
  const { piles } = position;
  const pileOf = (/** @type {number} */ suit) =>
    /** @type {string} */ (FOUNDATIONS.find((pile) => piles[pile].length && suitOf(piles[pile][0]) === suit));
  const source = from < COLUMN ? pileOf(from) : from === WASTE ? "w" : COLUMNS[from - COLUMN];
  if (to >= COLUMN) return { from: source, to: COLUMNS[to - COLUMN], count };
  const [home] = targets(position, source, piles[source].length - 1).filter((pile) => pile[0] === "f");
  return { from: source, to: home, count };
}

/** Whether all moves from a position, at most BUDGET positions, lead to no win. @param {Position} first @param {number} draw */
function isLost(first, draw) {
  const seen = new Set([text(first)]);
  const open = [first];
  for (const at of open) {
    // the loop appends to it
    const back = FOUNDATIONS.flatMap((from) =>
      goodTargets(at, from, at.piles[from].length - 1).map((to) => ({ from, to, count: 1 })),
    );
    for (const move of [STOCK, ...moves(at), ...back]) {
      const next = play(at, move, draw)?.position;
      const state = next && text(next);
      if (!next || !state || seen.has(state)) continue;
      if (isWon(next) || seen.add(state).size > BUDGET) return false;
      open.push(next);
    }
  }
  return true;
}

let asked = "";
/** @type {Search} */
let search;

/** Continue the search from a position, or begin one. @param {Position} position @param {number} draw @param {string[]} banned @returns {import("./solver.js").Answer} */
function answer(position, draw, banned) {
  const question = JSON.stringify([position, draw, banned]);
  if (question !== asked) search = new Search(position, draw, banned);
  asked = question;
  const moves = search.win(Math.min(search.visited.size + BUDGET, MOST));
  return { moves, lost: !moves && !search.waiting.length && isLost(position, draw) };
}

addEventListener("message", ({ data: { position, draw, banned }, ports: [port] }) =>
  port.postMessage(answer(position, draw, banned)),
);
