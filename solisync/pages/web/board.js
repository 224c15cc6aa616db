// @ts-check
/** The board: every position of a timeline, cards drawn as SVG, and 13 named lists that hold them. */

import { counted } from "./page.js";

/**
 * @typedef {{input: "stock" | "move" | "undo", from: string, to: string, cards: number[], flipped: number | null,
 *   score: number}} Step
 * @typedef {{tableau: number[][], stock: number[]}} Deal
 * @typedef {{draw_mode: string, undos: number, deal: Deal, steps: Step[]}} Timeline
 * @typedef {Record<string, number[]>} Piles each bottom to top
 * @typedef {{piles: Piles, down: Record<string, number>}} Position `down`: how many cards of a column lie face down
 */

const SUITS = ["clubs", "diamonds", "hearts", "spades"];
const RANKS = ["ace", "2", "3", "4", "5", "6", "7", "8", "9", "10", "jack", "queen", "king"];
const SHAPES = [
  "M0-9.5A4.3 4.3 0 0 1 3.3-2.4 4.4 4.4 0 1 1 1 4Q1.4 7.8 3.6 9.5H-3.6Q-1.4 7.8-1 4A4.4 4.4 0 1 1-3.3-2.4 4.3 4.3 0 0 1 0-9.5Z",
  "M0-10Q3-4 7.5 0 3 4 0 10-3 4-7.5 0-3-4 0-10Z",
  "M0 9.5C-4 5-9.5 1.5-9.5-3.5A4.9 4.9 0 0 1 0-5.5 4.9 4.9 0 0 1 9.5-3.5C9.5 1.5 4 5 0 9.5Z",
  "M0-9.5C4-4.5 9-2 9 3A4.4 4.4 0 0 1 1.1 5Q1.5 8 3.6 9.5H-3.6Q-1.5 8-1.1 5A4.4 4.4 0 0 1-9 3C-9-2-4-4.5 0-9.5Z",
];
/** Where the pips of a rank lie: rows of x, from above; the lower half stands on its head. */
const CORNERS = [[34, 28], [66, 28], [34, 112], [66, 112]];
const SIDES = [[34, 70], [66, 70]];
const EIGHT = [...CORNERS, [34, 56], [66, 56], [34, 84], [66, 84]];
const PIPS = [
  [], [[50, 28], [50, 112]], [[50, 28], [50, 70], [50, 112]], CORNERS, [...CORNERS, [50, 70]], [...CORNERS, ...SIDES],
  [...CORNERS, ...SIDES, [50, 49]], [...CORNERS, ...SIDES, [50, 49], [50, 91]], [...EIGHT, [50, 70]],
  [...EIGHT, [50, 42], [50, 98]],
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

/** What a step does, in words; `before` is the score until then. @param {Step} step @param {number} before */
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

/** Every position of a timeline, the deal first; piles that a step leaves alone are shared. @param {Timeline} timeline */
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

/** The face of a card, 100 by 140: drawn for large cards, and again for small ones, of which the style shows one. */
export function face(/** @type {number} */ card) {
  const rank = card % 13;
  const letter = rank > 0 && rank < 10 ? RANKS[rank] : RANKS[rank][0].toUpperCase();
  const pip = (/** @type {number} */ x, /** @type {number} */ y, scale = 0.9, turned = y > 70) =>
    draw("path", { d: SHAPES[suitOf(card)], transform: `translate(${x} ${y}) scale(${turned ? -scale : scale})` });
  const text = (/** @type {number} */ x, /** @type {number} */ y) => draw("text", { x, y }, letter);
  const half = (/** @type {string} */ transform, /** @type {Element[]} */ ...more) =>
    draw("g", { transform }, text(13, 25), pip(13, 37, 0.6), ...more);
  const court = (transform = "") => draw("use", { href: `#${RANKS[rank]}`, transform });
  const turned = "rotate(180 50 70)";
  const large = rank > 9
    ? [draw("rect", { x: 23, y: 13, width: 54, height: 114, rx: 3 }),
       ...["", turned].map((transform) => half(transform, court(), pip(31, 24, 0.62)))]
    : [half(""), half(turned), ...(rank ? PIPS[rank].map(([x, y]) => pip(x, y)) : [pip(50, 69, 2.3)])];
  const small = [text(7, 37), pip(78, 24, 1.5), rank > 9 ? court("translate(-17 37) scale(1.34)") : pip(50, 93, 3.1, false)];
  return draw("svg", { viewBox: "0 0 100 140", "aria-hidden": "true" },
    draw("g", { class: "large" }, ...large), draw("g", { class: "small" }, ...small));
}

/** What a pile holds, in words. @param {string} pile @param {Position} position */
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

/** Shows positions in an element of the page. */
export class Board {
  /** @param {HTMLElement} element @param {number} fan how many cards of the waste can be seen */
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
    this.cards = Array.from({ length: 52 }, (_, card) => {
      const item = document.createElement("li");
      const name = document.createElement("span");
      item.className = `card ${SUITS[suitOf(card)]}`;
      name.className = "unseen";
      item.append(name);
      return { item, name };
    });
    element.replaceChildren(...Object.values(this.lists));
  }

  /**
   * Show a position; cards that have changed their pile fly there in so many milliseconds.
   * @param {Position} position @param {number} flight 0: they are there at once
   */
  show(position, flight) {
    this.element.classList.toggle("flying", flight > 0);
    const changed = Object.keys(this.lists).filter((pile) => position.piles[pile] !== this.shown?.piles[pile]
      || position.down[pile] !== this.shown?.down[pile]);
    /** @type {Map<HTMLElement, DOMRect>} */
    const flying = new Map();
    if (flight) {
      for (const pile of changed) {
        for (const card of position.piles[pile]) {
          const { item } = this.cards[card];
          if (item.parentElement !== this.lists[pile]) flying.set(item, item.getBoundingClientRect());
        }
      }
    }
    for (const pile of changed) this.#lay(pile, position);
    this.shown = position;
    for (const [item, from] of flying) {
      const to = item.getBoundingClientRect();
      if (!from.width || !to.width) continue; // it was, or is, under others
      const way = `${from.left - to.left}px ${from.top - to.top}px`;
      item.animate([{ translate: way, zIndex: 9 }, { translate: "0px 0px", zIndex: 9 }],
        { duration: flight, easing: "cubic-bezier(.3, .7, .3, 1)" });
    }
  }

  /** @param {string} pile @param {Position} position */
  #lay(pile, position) {
    const cards = position.piles[pile];
    const list = this.lists[pile];
    const hidden = pile === "s" ? cards.length : (position.down[pile] ?? 0);
    const open = Math.max(cards.length - hidden - 1, 0);
    list.setAttribute("aria-label", told(pile, position));
    list.style.setProperty("--weight", String(Math.max(hidden * 0.45 + open, 1)));
    cards.forEach((card, index) => {
      const { item, name } = this.cards[card];
      const up = index >= hidden;
      const step = pile === "w" ? Math.max(index - Math.max(cards.length - this.fan, 0), 0)
        : pile[0] === "t" ? Math.min(index, hidden) * 0.45 + Math.max(index - hidden, 0) : 0;
      item.classList.toggle("down", !up);
      if (up && item.firstElementChild === name) item.prepend(face(card)); // not before somebody sees it
      name.textContent = up ? named(card) : "face down";
      item.style.setProperty("--step", String(step));
      if (list.children[index] !== item) list.insertBefore(item, list.children[index] ?? null);
    });
  }
}
