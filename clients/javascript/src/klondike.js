// @ts-check
/**
 * Klondike: deal, rules and points. solisync/klondike/ has the same rules in Python, as ruleset 2026-05-19 of
 * docs/verification.md. tests/clients/test_engine.py compares both. This module uses neither the DOM nor storage.
 */

/**
 * @typedef {Record<string, number[]>} Piles each bottom to top
 * @typedef {{piles: Piles, down: Record<string, number>}} Position `down`: how many cards of a column lie face down
 * @typedef {{input: "stock" | "move" | "undo", from: string, to: string, cards: number[], flipped: number | null,
 *   score: number}} Step
 * @typedef {{from: string, to: string, count: number}} Move `count` cards from the end of one pile to another, or STOCK
 * @typedef {{position: Position, cards: number[], flipped: number | null, turned: boolean}} Played
 *   an accepted move: the position after it, the moved cards, the card turned up, and whether the waste was turned over
 */

export const FOUNDATIONS = ["f0", "f1", "f2", "f3"];
export const COLUMNS = ["t0", "t1", "t2", "t3", "t4", "t5", "t6"];
export const SEED_MAX = 2n ** 64n - 1n;
export const UNDO_PENALTY = 15;

const KING = 12;
const CARD_HOME = 10;
const WASTE_TO_COLUMN = 5;
const FOUNDATION_TO_COLUMN = -15;
const CARD_TURNED_UP = 5;
/** For each draw mode: how often the waste may be turned over without a fine, and the fine for each further time. */
const FINES = /** @type {Record<number, [number, number]>} */ ({ 1: [1, -100], 3: [3, -20] });

/** A click on the stock, which draws cards or turns the waste over. @type {Move} */
export const STOCK = Object.freeze({ from: "s", to: "w", count: 0 });

// The deal, as in klondike/deal.py: StdRng::seed_from_u64 and shuffle of rand 0.9

const ROUNDS = [
  [0, 4, 8, 12],
  [1, 5, 9, 13],
  [2, 6, 10, 14],
  [3, 7, 11, 15],
  [0, 5, 10, 15],
  [1, 6, 11, 12],
  [2, 7, 8, 13],
  [3, 4, 9, 14],
];
const CONSTANTS = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574];

/** @param {number} word @param {number} bits 0 to 31 */
const rotated = (word, bits) => (word << bits) | (word >>> (-bits & 31));

/** The eight words of the ChaCha key: output of a PCG32 that starts at the seed. @param {bigint} seed */
function key(seed) {
  return Array.from({ length: 8 }, () => {
    seed = BigInt.asUintN(64, seed * 6364136223846793005n + 11634580027462260723n);
    const word = Number(BigInt.asUintN(32, ((seed >> 18n) ^ seed) >> 27n));
    return rotated(word, -Number(seed >> 59n) & 31) >>> 0;
  });
}

/** ChaCha with 12 rounds and a block counter from 0, word by word. @param {number[]} words the key */
function* randomWords(words) {
  for (let block = 0; ; block++) {
    const start = Uint32Array.from([...CONSTANTS, ...words, block, 0, 0, 0]);
    const state = start.slice();
    for (let round = 0; round < 6; round++) {
      for (const [a, b, c, d] of ROUNDS) {
        for (const [to, add, mix, bits] of [
          [a, b, d, 16],
          [c, d, b, 12],
          [a, b, d, 8],
          [c, d, b, 7],
        ]) {
          state[to] += state[add];
          state[mix] = rotated(state[mix] ^ state[to], bits);
        }
      }
    }
    yield* state.map((word, index) => word + start[index]);
  }
}

/** A random number below `bound`, from one word, or from two if the second could change the result. @param {number} bound @param {Iterator<number>} words */
function below(bound, words) {
  const next = () => BigInt(words.next().value) * BigInt(bound);
  const product = next();
  const low = BigInt.asUintN(32, product);
  const carry = low > 2n ** 32n - BigInt(bound) && low + (next() >> 32n) >= 2n ** 32n;
  return Number(product >> 32n) + Number(carry);
}

/** The 52 card ids in the order of dealing. @param {bigint} seed 0 to 2^64-1 */
export function deck(seed) {
  const words = randomWords(key(seed));
  const cards = Array.from({ length: 52 }, (_, card) => card);
  let chunk = 0; // a random number, and the number of indices that it still serves
  let left = 0;
  for (let index = 1; index < 52; index++) {
    const n = index + 1;
    if (!left) {
      let bound = n;
      for (left = 1; bound * (n + left) < 2 ** 32; left++) bound *= n + left;
      chunk = below(bound, words);
    }
    left -= 1;
    const other = left ? chunk % n : chunk;
    chunk = Math.floor(chunk / n);
    [cards[index], cards[other]] = [cards[other], cards[index]];
  }
  return cards;
}

/** The position at the start of a game. @param {bigint} seed @returns {Position} */
export function deal(seed) {
  const cards = deck(seed);
  /** @type {Position} */
  const position = { piles: { s: cards.slice(28), w: [], f0: [], f1: [], f2: [], f3: [] }, down: {} };
  COLUMNS.forEach((pile, column) => {
    const before = (column * (column + 1)) / 2;
    position.piles[pile] = cards.slice(before, before + column + 1);
    position.down[pile] = column;
  });
  return position;
}

// The rules

const rank = (/** @type {number} */ card) => card % 13;
const red = (/** @type {number} */ card) => card >= 13 && card < 39;

/** Whether a card may lie on another card in a column. @param {number} card @param {number} under */
const descends = (card, under) => rank(under) === rank(card) + 1 && red(under) !== red(card);

/** Whether a pile accepts these cards, which are in descending order. @param {string} pile @param {number[]} held @param {number[]} cards */
function takes(pile, held, cards) {
  const [card] = cards;
  if (pile[0] === "f") return cards.length === 1 && (rank(card) ? held[held.length - 1] === card - 1 : !held.length);
  return held.length ? descends(card, held[held.length - 1]) : rank(card) === KING;
}

/** The cards of a pile from an index on, or none if they can't be moved together. @param {Position} position @param {string} pile @param {number} index */
export function run({ piles, down }, pile, index) {
  const cards = index < 0 ? [] : piles[pile].slice(index);
  if (pile === "s" || index < (down[pile] ?? 0) || (pile[0] !== "t" && cards.length > 1)) return [];
  return cards.every((card, at) => !at || descends(card, cards[at - 1])) ? cards : [];
}

/** Make a move. Return null if the rules refuse it. @param {Position} position @param {Move} move @param {number} draw 1 or 3 @returns {Played | null} */
export function play(position, move, draw) {
  const { piles, down } = position;
  if (move === STOCK) {
    const { s, w } = piles;
    const cards = s.length ? s.slice(-draw) : w;
    if (!cards.length) return null;
    const after = s.length ? { s: s.slice(0, -draw), w: [...w, ...cards] } : { s: [...w].reverse(), w: [] };
    return { position: { piles: { ...piles, ...after }, down }, cards, flipped: null, turned: !s.length };
  }
  const { from, to, count } = move;
  if (from === to || to === "s" || to === "w" || (from[0] === "f" && to[0] === "f")) return null;
  if (!piles[from] || !piles[to] || !(count >= 1)) return null;
  const rest = piles[from].length - count;
  const cards = run(position, from, rest);
  if (!cards.length || !takes(to, piles[to], cards)) return null;
  const turns = rest > 0 && rest === down[from];
  const after = {
    piles: { ...piles, [from]: piles[from].slice(0, rest), [to]: [...piles[to], ...cards] },
    down: turns ? { ...down, [from]: rest - 1 } : down,
  };
  return { position: after, cards, flipped: turns ? piles[from][rest - 1] : null, turned: false };
}

/** The points of an accepted move. The caller keeps the score at 0 or above. @param {Move} move @param {Played} played @param {number} draw @param {number} turns how often the waste has been turned over, including this time */
export function points(move, { flipped, turned }, draw, turns) {
  if (turned) return turns > FINES[draw][0] ? FINES[draw][1] : 0;
  if (move === STOCK) return 0;
  const turnedUp = flipped === null ? 0 : CARD_TURNED_UP;
  if (move.to[0] === "f") return turnedUp + CARD_HOME;
  if (move.from === "w") return turnedUp + WASTE_TO_COLUMN;
  return turnedUp + (move.from[0] === "f" ? FOUNDATION_TO_COLUMN : 0);
}

/** @param {Position} position */
export const isWon = ({ piles }) => FOUNDATIONS.every((pile) => piles[pile].length === 13);

/** A position as text. It ignores the order of columns and foundations, which makes no difference to the game. @param {Position} position */
export const text = ({ piles, down }) =>
  [
    COLUMNS.map((pile) => `${down[pile]}:${piles[pile]}`).sort(),
    FOUNDATIONS.map((pile) => piles[pile].at(-1) ?? -1).sort(),
    piles.s,
    piles.w.length,
  ].join("|");

// The possible moves

/** The piles that accept the cards of a pile from an index on: foundations, then columns with cards, then empty columns. @param {Position} position @param {string} pile @param {number} index */
export function targets(position, pile, index) {
  const cards = run(position, pile, index);
  if (!cards.length) return [];
  const { piles } = position;
  const fits = (/** @type {string} */ to) => to !== pile && takes(to, piles[to], cards);
  const columns = COLUMNS.filter(fits);
  return [
    ...(pile[0] === "f" ? [] : FOUNDATIONS.filter(fits)),
    ...columns.filter((to) => piles[to].length),
    ...columns.filter((to) => !piles[to].length),
  ];
}

/** The targets that make a difference: one of several empty piles, and no empty column for a king alone in its column. @param {Position} position @param {string} pile @param {number} index */
export function goodTargets(position, pile, index) {
  const empty = (/** @type {string} */ to) => !position.piles[to].length;
  const alone = pile[0] === "t" && index === 0;
  const found = targets(position, pile, index);
  const first = (/** @type {string} */ to) => to === found.find((other) => other[0] === to[0] && empty(other));
  return found.filter((to) => !empty(to) || (first(to) && !(alone && to[0] === "t")));
}

/** All moves of cards from columns and waste to targets that make a difference. @param {Position} position @returns {Move[]} */
export function moves(position) {
  return ["w", ...COLUMNS].flatMap((from) => {
    const { length } = position.piles[from];
    const first = from === "w" ? length - 1 : (position.down[from] ?? 0);
    return Array.from({ length: Math.max(length - first, 0) }, (_, index) => first + index).flatMap((index) =>
      goodTargets(position, from, index).map((to) => ({ from, to, count: length - index })),
    );
  });
}

/**
 * The moves that win a game without face-down cards in columns: to foundations, from the waste to columns, or else a
 * click on the stock. Return null if cards lie face down, if these moves don't win, or if the game is won.
 * @param {Position} position @param {number} draw @returns {Move[] | null}
 */
export function finish(position, draw) {
  if (COLUMNS.some((pile) => position.down[pile]) || isWon(position)) return null;
  /** @type {Move[]} */
  const found = [];
  let clicks = 0; // since the last move of a card
  for (let at = position; !isWon(at);) {
    const { s, w } = at.piles;
    const all = moves(at);
    const move = all.find(({ to }) => to[0] === "f") ?? all.find(({ from }) => from === "w") ?? STOCK;
    clicks = move === STOCK ? clicks + 1 : 0;
    const played = play(at, move, draw);
    if (!played || clicks > s.length + w.length + 1) return null; // the stock has gone round once
    found.push(move);
    at = played.position;
  }
  return found;
}
