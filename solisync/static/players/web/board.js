// @ts-check
/** The board: the positions of a timeline, and the 13 named lists that hold the cards. */

import { face, RANKS, suitOf, SUITS } from "./faces.js";
import { counted } from "./page.js";

/**
 * @typedef {{tableau: number[][], stock: number[]}} Deal
 * @typedef {{draw_mode: string, undos: number, deal: Deal, steps: Step[]}} Timeline
 * @typedef {import("./klondike.js").Piles} Piles
 * @typedef {import("./klondike.js").Position} Position
 * @typedef {import("./klondike.js").Step} Step
 */

const DOWN = 0.3; // of the step of a card that lies face up

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
    list.style.setProperty("--weight", String(Math.max(hidden * DOWN + open, 1)));
    cards.forEach((card, index) => {
      const { item, name } = this.cards[card];
      const up = index >= hidden;
      const step =
        pile === "w"
          ? Math.max(index - Math.max(cards.length - this.fan, 0), 0)
          : pile[0] === "t"
            ? Math.min(index, hidden) * DOWN + Math.max(index - hidden, 0)
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
