// @ts-check
/**
 * The board of a game in play. Taps, keys and clicks of assistive tools all call `choose`, and drags call `drop`. Both
 * pass a move to the page.
 */

import { Board, named, place } from "./board.js";
import { COLUMNS, FOUNDATIONS, goodTargets, run, STOCK, targets } from "./klondike.js";
import { counted, h } from "./page.js";

/**
 * @typedef {import("./board.js").Position} Position
 * @typedef {import("./klondike.js").Move} Move
 * @typedef {import("./drag.js").Spot} Spot
 * @typedef {{move: (move: Move) => void, refuse: (text: string) => void, tell: (text: string) => void}} Page
 */

const REFUSED_MS = 600;
const SHAKE = [0, -5, 5, -3, 0].map((x) => ({ translate: `${x}px` }));

/** The name of an empty pile's button, which screen readers read without its list. @param {string} pile @param {Position} position */
function emptyName(pile, { piles }) {
  if (pile !== "s") return `${place(pile)}, empty`;
  return piles.w.length
    ? `stock, empty: turn the waste over, ${counted(piles.w.length, "card")}`
    : "stock and waste, empty";
}

export class Table {
  /** @param {HTMLElement} element @param {Page} page */
  constructor(element, page) {
    this.element = element;
    this.page = page;
    this.board = new Board(element, 1);
    this.taps = true;
    this.mirrored = false;
    /** @type {Spot} the place of the board's only tab stop */
    this.stop = { pile: "s", index: 0 };
    /** @type {Spot | null} */
    this.selected = null;
    this.idle = false; // whether the last click moved nothing
    this.buttons = this.board.cards.map((shown, card) => {
      shown.hit = shown.item.appendChild(h("button", { type: "button", class: "hit", "data-card": card }));
      return shown.hit;
    });
    this.slots = Object.fromEntries(
      Object.entries(this.board.lists).map(([pile, list]) => {
        const slot = h("button", { type: "button", class: `${list.className} slot`, "data-pile": pile });
        slot.style.setProperty("--x", list.style.getPropertyValue("--x"));
        list.after(slot);
        return [pile, slot];
      }),
    );
    /** @type {import("./drag.js").Drag | undefined} */
    this.drag = undefined;
    element.addEventListener("click", (event) => this.#click(event));
    element.addEventListener("contextmenu", (event) => this.#sendHome(event));
    element.addEventListener("keydown", (event) => this.#key(event));
    element.addEventListener("focusin", ({ target }) => this.#stopAt(this.spotOf(target)));
  }

  /** Load dragging, after the cards are shown. */
  async draggable() {
    const { Drag } = await import("./drag.js");
    this.drag = new Drag(this.element, this);
  }

  /** Put the stock on the right, for the left hand, or on the left. @param {boolean} mirrored */
  mirror(mirrored) {
    this.mirrored = mirrored;
    ["s", "w", "", ...FOUNDATIONS].forEach((pile, column) => {
      for (const element of pile ? [this.board.lists[pile], this.slots[pile]] : []) {
        element.style.setProperty("--x", String(mirrored ? (pile[0] === "f" ? column - 3 : 6 - column) : column));
      }
    });
  }

  /** @returns {Position} */
  get position() {
    return /** @type {Position} */ (this.board.shown);
  }

  /** Show a position. @param {Position} position @param {number} draw @param {number} flight in milliseconds @param {string} [pile] the pile that gets the focus if the board has it */
  show(position, draw, flight, pile) {
    const focused = this.element.contains(document.activeElement);
    this.drag?.cancel();
    this.select(null);
    this.board.fan = draw;
    this.board.show(position, flight);
    for (const name of Object.keys(this.slots)) this.#name(name);
    if (pile) this.stop = { pile, index: Infinity };
    this.#stopAt(this.stop);
    if (focused) this.button(this.stop).focus({ preventScroll: true });
  }

  /** Set the names of a pile's buttons. @param {string} pile */
  #name(pile) {
    const { piles, down } = this.position;
    const cards = piles[pile];
    const slot = this.slots[pile];
    slot.hidden = cards.length > 0;
    slot.classList.toggle("over", pile === "s" && !piles.w.length);
    slot.setAttribute("aria-label", emptyName(pile, this.position));
    cards.forEach((card, index) => {
      const last = index === cards.length - 1;
      const usable = pile[0] === "t" ? index >= down[pile] : last;
      const more = cards.length - 1 - index;
      const held =
        pile === "s"
          ? `stock, ${cards.length} face down`
          : `${named(card)}${more ? ` and ${more} more` : ""}, ${place(pile)}`;
      this.buttons[card].hidden = !usable;
      this.buttons[card].setAttribute("aria-label", held);
      this.board.cards[card].name.hidden = usable;
    });
  }

  /** The spot of an element of the board. @param {EventTarget | null} target @returns {Spot | null} */
  spotOf(target) {
    const button = target instanceof Element ? target.closest("button") : null;
    if (button?.dataset.pile) return { pile: button.dataset.pile, index: 0 };
    if (!button?.dataset.card) return null;
    const card = Number(button.dataset.card);
    const found = Object.entries(this.position.piles).find(([, cards]) => cards.includes(card));
    return found ? { pile: found[0], index: found[1].indexOf(card) } : null;
  }

  /** The button of a spot. It is at the card's place even while the card flies. @param {Spot} spot */
  button({ pile, index }) {
    const cards = this.position.piles[pile];
    return cards.length ? this.buttons[cards[Math.min(index, cards.length - 1)]] : this.slots[pile];
  }

  /** Make a spot the tab stop of the board. @param {Spot | null} spot */
  #stopAt(spot) {
    if (!spot) return;
    const cards = this.position.piles[spot.pile];
    const first = spot.pile[0] === "t" ? this.position.down[spot.pile] : cards.length - 1;
    this.stop = { pile: spot.pile, index: Math.max(0, Math.min(Math.max(spot.index, first), cards.length - 1)) };
    for (const button of [...this.buttons, ...Object.values(this.slots)]) button.tabIndex = -1;
    this.button(this.stop).tabIndex = 0;
  }

  /** @param {Spot} spot */
  cardsAt({ pile, index }) {
    return run(this.position, pile, index);
  }

  /** Select cards and mark their targets; null clears the selection. @param {Spot | null} spot */
  select(spot) {
    this.selected = spot;
    for (const item of this.element.querySelectorAll(".chosen, .target, .hint"))
      item.classList.remove("chosen", "target", "hint");
    for (const button of this.element.querySelectorAll("[aria-pressed]")) button.removeAttribute("aria-pressed");
    if (!spot) return;
    this.#mark("chosen", this.cardsAt(spot));
    this.button(spot).setAttribute("aria-pressed", "true");
    for (const pile of targets(this.position, spot.pile, spot.index)) this.#markPlace("target", pile);
  }

  /** @param {string} mark @param {number[]} cards */
  #mark(mark, cards) {
    for (const card of cards) this.board.cards[card].item.classList.add(mark);
  }

  /** @param {string} mark @param {string} pile */
  #markPlace(mark, pile) {
    const cards = this.position.piles[pile];
    if (cards.length) this.#mark(mark, cards.slice(-1));
    else this.slots[pile].classList.add(mark);
  }

  /** Mark a move as a hint. @param {Move} move */
  hint(move) {
    this.select(null);
    if (move === STOCK) return this.#markPlace("hint", "s");
    this.#mark("hint", this.position.piles[move.from].slice(-move.count));
    this.#markPlace("hint", move.to);
  }

  /** Handle a tap on a spot. @param {Spot} spot */
  choose(spot) {
    if (spot.pile === "s") return this.page.move(STOCK);
    const { selected } = this;
    if (selected?.pile === spot.pile && selected.index === spot.index) {
      this.select(null);
      return this.page.tell("Selection cleared");
    }
    if (selected && targets(this.position, selected.pile, selected.index).includes(spot.pile))
      return this.#move(selected, spot.pile);
    const cards = this.cardsAt(spot);
    if (!cards.length) return this.#refuse(selected ?? spot, spot.pile);
    if (!this.taps || spot.pile[0] === "f") return this.#choosePlace(spot);
    const [best] = goodTargets(this.position, spot.pile, spot.index);
    if (best) this.#move(spot, best);
    else this.#refuse(spot);
  }

  /** Select cards, and announce their targets. @param {Spot} spot */
  #choosePlace(spot) {
    const places = targets(this.position, spot.pile, spot.index);
    if (!places.length) return this.#refuse(spot);
    this.select(spot);
    this.page.tell(`${named(this.cardsAt(spot)[0])} selected. It can go to ${places.map(place).join(", ")}`);
  }

  /** @param {Spot} spot @param {string} to */
  #move({ pile, index }, to) {
    this.page.move({ from: pile, to, count: this.position.piles[pile].length - index });
  }

  /** @param {Spot} spot @param {string} [to] */
  #refuse(spot, to) {
    const cards = this.cardsAt(spot);
    if (!cards.length) return this.page.refuse("No card here, and none selected");
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    for (const card of cards) {
      const { item } = this.board.cards[card];
      if (!calm) item.animate(SHAKE, 160);
      item.classList.toggle("refused", calm);
      if (calm) setTimeout(() => item.classList.remove("refused"), REFUSED_MS);
    }
    this.select(null);
    this.page.refuse(`${named(cards[0])} does not fit ${to ? `on ${place(to)}` : "anywhere"}`);
  }

  /** Drop dragged cards on the legal pile that they overlap most. @param {Spot} spot @param {string[]} piles the overlapped piles, largest overlap first */
  drop(spot, piles) {
    const legal = targets(this.position, spot.pile, spot.index);
    const to = piles.find((pile) => legal.includes(pile));
    if (to) this.#move(spot, to);
    else if (piles.length) this.#refuse(spot, piles[0]);
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const spot = this.spotOf(event.target);
    if (spot && !this.drag?.swallows(event)) this.click(spot, event.detail > 1);
  }

  /** Handle a click on a spot. A double click counts only if its first click moved nothing. @param {Spot} spot @param {boolean} again whether it is the second click of a double click */
  click(spot, again) {
    const { position } = this;
    if (again && this.idle && !this.taps && spot.pile !== "s") this.home(spot);
    else this.choose(spot);
    this.idle = this.position === position;
  }

  /** Send the last card of a pile to a foundation. @param {Spot} spot */
  home({ pile }) {
    const index = this.position.piles[pile].length - 1;
    const to = targets(this.position, pile, index).find((name) => name[0] === "f");
    if (to) return this.#move({ pile, index }, to);
    this.#refuse({ pile, index }, index < 0 || pile === "s" ? undefined : "f0");
  }

  /** @param {MouseEvent} event */
  #sendHome(event) {
    const spot = this.spotOf(event.target);
    event.preventDefault();
    if (spot && /** @type {PointerEvent} */ (event).pointerType !== "touch") this.home(spot);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { pile, index } = this.stop;
    const top = this.mirrored ? [...FOUNDATIONS, "w", "s"] : ["s", "w", ...FOUNDATIONS];
    const row = COLUMNS.includes(pile) ? COLUMNS : top;
    const beside = (/** @type {number} */ by) => row[(row.indexOf(pile) + by + row.length) % row.length];
    const other = row === COLUMNS ? top : COLUMNS;
    const across = other[Math.min(row.indexOf(pile), other.length - 1)];
    const { length } = this.position.piles[pile];
    /** @type {Record<string, () => void>} */
    const actions = {
      ArrowLeft: () => this.#go(beside(-1)),
      ArrowRight: () => this.#go(beside(1)),
      ArrowUp: () =>
        row === COLUMNS && index > this.position.down[pile] ? this.#go(pile, index - 1) : this.#go(across),
      ArrowDown: () => (row === COLUMNS && index < length - 1 ? this.#go(pile, index + 1) : this.#go(across)),
      Escape: () => (this.drag?.cancel(), this.select(null)),
    };
    if (event.key === "Enter" && event.shiftKey) actions.Enter = () => this.home(this.stop);
    const letter = event.key.toLowerCase();
    if (letter === "x") actions[event.key] = () => this.#choosePlace(this.stop);
    const named = { w: "w", s: "s", f: "f0" }[letter] ?? (/^[1-7]$/.test(letter) ? COLUMNS[Number(letter) - 1] : null);
    if (named) actions[event.key] = () => this.#jump(named);
    if (!actions[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }

  /** Go to a pile, or with a selection move it there. @param {string} pile */
  #jump(pile) {
    const { selected } = this;
    if (!selected || pile === "s") return this.#go(pile);
    const legal = targets(this.position, selected.pile, selected.index);
    const to = legal.find((name) => (pile[0] === "f" ? name[0] === "f" : name === pile));
    if (to) this.#move(selected, to);
    else this.#refuse(selected, pile);
  }

  /** @param {string} pile @param {number} [index] */
  #go(pile, index = Infinity) {
    this.#stopAt({ pile, index });
    this.button(this.stop).focus();
  }
}
