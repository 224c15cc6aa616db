// @ts-check
/** The board: the positions of a timeline, cards as SVG, and the 13 named lists that hold the cards. */

import { counted } from "./page.js";

/**
 * @typedef {{tableau: number[][], stock: number[]}} Deal
 * @typedef {{draw_mode: string, undos: number, deal: Deal, steps: Step[]}} Timeline
 * @typedef {import("./klondike.js").Piles} Piles
 * @typedef {import("./klondike.js").Position} Position
 * @typedef {import("./klondike.js").Step} Step
 */

const SUITS = ["clubs", "diamonds", "hearts", "spades"];
const RANKS = ["ace", "2", "3", "4", "5", "6", "7", "8", "9", "10", "jack", "queen", "king"];
/** The sign of each suit, 20 high, centred on its point. All commands are relative, so that sign() can scale the numbers. */
const SHAPES = [
  "m0-9.5c1.7 0 3.2 1 3.9 2.5c.7 1.5 .5 3.3-.6 4.6c2.2-.8 4.6 .3 5.5 2.4c.9 2.1 0 4.6-2 5.7c-2.1 1-4.6 .3-5.8-1.7q.4 3.8 2.6 5.5h-7.2q2.2-1.7 2.6-5.5c-1.2 2-3.7 2.7-5.8 1.7c-2-1.1-2.9-3.6-2-5.7c.9-2.1 3.3-3.2 5.5-2.4c-1.1-1.3-1.3-3.1-.6-4.6c.7-1.5 2.2-2.5 3.9-2.5z",
  "m0-10q3 6 7.5 10q-4.5 4-7.5 10q-3-6-7.5-10q4.5-4 7.5-10z",
  "m0 9.5c-4-4.5-9.5-8-9.5-13c-.2-2.4 1.5-4.6 3.9-5.1c2.4-.5 4.8 .8 5.6 3.1c.8-2.3 3.2-3.6 5.6-3.1c2.4 .5 4.1 2.7 3.9 5.1c0 5-5.5 8.5-9.5 13z",
  "m0-9.5c4 5 9 7.5 9 12.5c-.2 1.8-1.5 3.2-3.3 3.7c-1.7 .4-3.5-.3-4.6-1.7q.4 3 2.5 4.5h-7.2q2.1-1.5 2.5-4.5c-1.1 1.4-2.9 2.1-4.6 1.7c-1.8-.5-3.1-1.9-3.3-3.7c0-5 5-7.5 9-12.5z",
];
/** The sign of each rank as lines, 24 high, centred on its point. All commands are absolute, and none is an arc. */
const LETTERS = [
  "M-8 12L0-12L8 12M-5 4H5",
  "M-7-6C-7-14 7-14 7-6C7 1-7 4-7 12H8",
  "M-7-12H7L-1-3C10-3 10 12-1 12C-5 12-7 11-8 8",
  "M4 12V-12L-8 5H8",
  "M7-12H-6L-7-1C-3-5 8-4 8 4C8 13-5 14-8 8",
  "M5-12C-3-10-8-3-8 4C-8 14.7 8 14.7 8 4C8-6-8-6-8 4",
  "M-8-12H8C2-4-1 4-2 12",
  "M0-2C-9-2-9-12 0-12C9-12 9-2 0-2C-10.5-2-10.5 12 0 12C10.5 12 10.5-2 0-2",
  "M-5 12C3 10 8 3 8-4C8-14.7-8-14.7-8-4C-8 6 8 6 8-4",
  "M-13-8L-9-12V12M4.5-12C-4-12-4 12 4.5 12C13 12 13-12 4.5-12Z",
  "M6-12V5C6 14-7 14-7 5",
  "M0-12C-11.5-12-11.5 12 0 12C11.5 12 11.5-12 0-12ZM2 5L9 13",
  "M-7-12V12M8-12L-6 2M-2-2L8 12",
];
/** The pips of each rank, as [x, y] of their centres. They are below what a card over them leaves free. Pips in the lower half are drawn upside down. */
const CORNERS = [
  [28, 48],
  [72, 48],
  [28, 92],
  [72, 92],
];
const SIDES = [
  [28, 70],
  [72, 70],
];
const EIGHT = [...CORNERS, [28, 62.7], [72, 62.7], [28, 77.3], [72, 77.3]];
const PIPS = [
  [],
  [
    [50, 48],
    [50, 92],
  ],
  [
    [50, 48],
    [50, 70],
    [50, 92],
  ],
  CORNERS,
  [...CORNERS, [50, 70]],
  [...CORNERS, ...SIDES],
  [...CORNERS, ...SIDES, [50, 59]],
  [...CORNERS, ...SIDES, [50, 59], [50, 81]],
  [...EIGHT, [50, 70]],
  [...EIGHT, [50, 55], [50, 85]],
];

/** @param {number} card */
export const suitOf = (card) => Math.floor(card / 13);

/** A card in words. @param {number} card */
export const named = (card) => `${RANKS[card % 13]} of ${SUITS[suitOf(card)]}`;

/** A pile in words. @param {string} pile */
export function place(pile) {
  const number = Number(pile[1]) + 1;
  return { s: "stock", w: "waste", f: `foundation ${number}`, t: `column ${number}` }[pile[0]] ?? pile;
}

/** A step in words; `before` is the score before it. @param {Step} step @param {number} before */
export function inWords(step, before) {
  const { input, from, to, cards, flipped, score } = step;
  const names = cards.map(named);
  const last = names[names.length - 1];
  const way = `from ${place(from)} to ${place(to)}`;
  let told;
  if (input === "stock" && to === "s") told = `the waste turned over, ${counted(cards.length, "card")}`;
  else if (input === "stock") told = `${names.join(", ")} turned up from the stock`;
  else if (cards.length === 1) told = `${last} ${way}`;
  else if (to[0] === "w" || from[0] === "w") told = `${counted(cards.length, "card")} ${way}`;
  else told = `${counted(cards.length, "card")}, ${names[0]} down to ${last}, ${way}`;
  if (input === "undo") told = `undo: ${told}`;
  if (flipped !== null) told += `, ${named(flipped)} turned ${input === "undo" ? "down again" : "up"}`;
  const points = score - before;
  if (points) told += `, ${points < 0 ? "minus " : ""}${counted(Math.abs(points), "point")}`;
  return told[0].toUpperCase() + told.slice(1);
}

/** All positions of a timeline, the deal first. Consecutive positions share the piles that a step doesn't change. @param {Timeline} timeline */
export function positions({ deal, steps }) {
  /** @type {Position} */
  let now = { piles: { s: deal.stock, w: [], f0: [], f1: [], f2: [], f3: [] }, down: {} };
  deal.tableau.forEach((cards, column) => {
    now.piles[`t${column}`] = cards;
    now.down[`t${column}`] = cards.length - 1;
  });
  const all = [now];
  for (const { input, from, to, cards, flipped } of steps) {
    const piles = { ...now.piles };
    const down = { ...now.down };
    piles[from] = piles[from].slice(0, -cards.length);
    piles[to] = [...piles[to], ...(input === "stock" && to === "s" ? [...cards].reverse() : cards)];
    if (flipped !== null) down[input === "undo" ? to : from] += input === "undo" ? 1 : -1;
    all.push((now = { piles, down }));
  }
  return all;
}

/** @param {string} tag @param {Record<string, string | number>} attributes @param {(Node | string)[]} children */
function draw(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** The sign of a suit as a path. A `transform` would be slower: browsers process all of them whenever something moves. @param {number} suit @param {number} x @param {number} y @param {number} scale less than 0: upside down */
const sign = (suit, x, y, scale) =>
  `M${x} ${y}${SHAPES[suit].replace(/-?[\d.]+/g, (number) => ` ${(Number(number) * scale).toFixed(2)}`)}`;

/** The sign of a rank as a path of lines. @param {number} rank @param {number} x @param {number} y @param {number} scale less than 0: upside down */
const letter = (rank, x, y, scale) =>
  LETTERS[rank].replace(/([A-Z])([^A-Z]*)/g, (_, command, rest) => {
    const numbers = rest.match(/-?[\d.]+/g) ?? [];
    const down = (/** @type {number} */ index) => (command === "V" ? true : command !== "H" && index % 2 === 1);
    return (
      command +
      numbers.map((/** @type {string} */ text, /** @type {number} */ index) =>
        ((down(index) ? y : x) + Number(text) * scale).toFixed(2),
      )
    );
  });

/** The face of a card, 100 by 140, in a large and a small drawing. The style shows one of the two. */
export function face(/** @type {number} */ card) {
  const suit = suitOf(card);
  const rank = card % 13;
  const index = (/** @type {number[][]} */ ...all) =>
    draw("path", { class: "index", d: all.map(([x, y, scale]) => letter(rank, x, y, scale)).join("") });
  const court = (transform = "") => draw("use", { href: `#${RANKS[rank]}`, transform });
  const signs = (/** @type {number[][]} */ ...all) =>
    draw("path", { d: all.map(([x, y, scale]) => sign(suit, x, y, scale)).join("") });
  const corners = [
    [13, 33.5, 0.5],
    [87, 106.5, -0.5],
  ];
  const size = rank > 7 ? 0.64 : 0.85;
  const pips = rank ? (PIPS[rank] ?? []).map(([x, y]) => [x, y, y > 70 ? -size : size]) : [[50, 70, 2.3]];
  const large = [index([13.5, 16, 0.8], [86.5, 124, -0.8]), signs(...corners, ...pips)];
  if (rank > 9) {
    const half = "translate(-6 -8.3) scale(1.12)";
    large.push(court(half), court(`rotate(180 50 70) ${half}`));
  }
  const small =
    rank > 9
      ? [index([20, 18, 1.25]), signs([78, 19, 1.4]), court("translate(-17 37) scale(1.34)")]
      : [index([20, 18, 1.25]), signs([78, 19, 1.4], [50, 93, 3.1])];
  return draw(
    "svg",
    { viewBox: "0 0 100 140", "aria-hidden": "true" },
    draw("g", { class: "large" }, ...large),
    draw("g", { class: "small" }, ...small),
  );
}

/** The content of a pile in words. @param {string} pile @param {Position} position */
function told(pile, { piles, down }) {
  const cards = piles[pile];
  const name = place(pile)[0].toUpperCase() + place(pile).slice(1);
  const top = cards.length ? named(cards[cards.length - 1]) : "";
  if (!top) return `${name}: empty`;
  if (pile === "s") return `${name}: ${cards.length} face down`;
  if (pile === "w") return `${name}: ${top}, ${cards.length} in all`;
  if (pile[0] === "f") return `${name}: ${SUITS[suitOf(cards[0])]} up to the ${RANKS[cards.length - 1]}`;
  const hidden = down[pile] ? [`${down[pile]} face down`] : [];
  return `${name}: ${[...hidden, ...cards.slice(down[pile]).map(named)].join(", ")}`;
}

/** A board that shows positions in an element of the page. */
export class Board {
  /** @param {HTMLElement} element @param {number} fan number of visible cards on the waste */
  constructor(element, fan) {
    this.element = element;
    this.fan = fan;
    /** @type {Position | null} */
    this.shown = null;
    /** @type {Record<string, HTMLOListElement>} */
    this.lists = {};
    ["s", "w", "f0", "f1", "f2", "f3", "t0", "t1", "t2", "t3", "t4", "t5", "t6"].forEach((pile) => {
      const list = document.createElement("ol");
      const column = { s: 0, w: 1, f: Number(pile[1]) + 3, t: Number(pile[1]) }[pile[0]] ?? 0;
      list.className = `pile ${place(pile).split(" ")[0]}`;
      list.style.setProperty("--x", String(column));
      this.lists[pile] = list;
    });
    /** @type {{item: HTMLElement, name: HTMLElement, hit?: HTMLElement}[]} `hit`: the button of a card, which receives clicks and touches */
    this.cards = Array.from({ length: 52 }, (_, card) => {
      const item = document.createElement("li");
      const name = document.createElement("span");
      item.className = `card ${SUITS[suitOf(card)]}`;
      name.className = "unseen";
      item.append(name);
      return { item, name };
    });
    /** @type {Map<number, Animation[]>} by card, the animations that run or have ended */
    this.flights = new Map();
    element.replaceChildren(...Object.values(this.lists));
  }

  /**
   * Show a position. Cards whose place has changed fly there in `flight` milliseconds; their buttons are there
   * immediately.
   * @param {Position} position @param {number} flight 0 for no animation
   */
  show(position, flight) {
    const changed = Object.keys(this.lists).filter(
      (pile) => position.piles[pile] !== this.shown?.piles[pile] || position.down[pile] !== this.shown?.down[pile],
    );
    const moved = changed.flatMap((pile) => position.piles[pile]);
    const before = flight ? moved.map((card) => this.cards[card].item.getBoundingClientRect()) : [];
    for (const card of moved) this.flights.get(card)?.forEach((animation) => animation.cancel());
    for (const { item } of this.cards) item.classList.remove("turned");
    for (const pile of changed) this.#lay(pile, position, flight);
    this.shown = position;
    const after = before.map((_, index) => this.cards[moved[index]].item.getBoundingClientRect());
    before.forEach((from, index) => {
      const to = after[index];
      const [x, y] = [from.left - to.left, from.top - to.top];
      if (from.width && to.width && (x || y)) this.#fly(moved[index], x, y, flight); // otherwise the card was, or is, under others
    });
  }

  /** Animate a card from an offset in pixels to its place. @param {number} card @param {number} x @param {number} y @param {number} duration */
  #fly(card, x, y, duration) {
    const { item, hit } = this.cards[card];
    const timing = { duration, easing: "cubic-bezier(.3, .7, .3, 1)" };
    const flights = [
      item.animate(
        [
          { translate: `${x}px ${y}px`, zIndex: 9 },
          { translate: "0px 0px", zIndex: 9 },
        ],
        timing,
      ),
    ];
    if (hit) flights.push(hit.animate([{ translate: `${-x}px ${-y}px` }, { translate: "0px 0px" }], timing));
    this.flights.set(card, flights);
  }

  /** @param {string} pile @param {Position} position @param {number} flight */
  #lay(pile, position, flight) {
    const cards = position.piles[pile];
    const list = this.lists[pile];
    const hidden = pile === "s" ? cards.length : (position.down[pile] ?? 0);
    const open = Math.max(cards.length - hidden - 1, 0);
    list.setAttribute("aria-label", told(pile, position));
    list.style.setProperty("--weight", String(Math.max(hidden * 0.45 + open, 1)));
    cards.forEach((card, index) => {
      const { item, name } = this.cards[card];
      const up = index >= hidden;
      const step =
        pile === "w"
          ? Math.max(index - Math.max(cards.length - this.fan, 0), 0)
          : pile[0] === "t"
            ? Math.min(index, hidden) * 0.45 + Math.max(index - hidden, 0)
            : 0;
      if (up && flight && item.classList.contains("down")) item.classList.add("turned");
      item.classList.toggle("down", !up);
      if (up && item.firstElementChild === name) item.prepend(face(card)); // faces are drawn when they are first visible
      name.textContent = up ? named(card) : "face down";
      item.style.setProperty("--step", String(step));
      if (list.children[index] !== item) list.insertBefore(item, list.children[index] ?? null);
    });
  }
}
