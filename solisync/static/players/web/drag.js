// @ts-check
/**
 * Dragging cards with a mouse, a pen or a finger. The script measures places once, when the pointer goes down. Each
 * frame then only moves the dragged cards.
 */

import { h } from "./page.js";

const MOUSE_PX = 3;
const TOUCH_PX = 8;
const CLICK_PX = 12; // a drag that never gets further is a click of a hand that moved

/**
 * @typedef {{left: number, top: number, right: number, bottom: number}} Box
 * @typedef {{pile: string, index: number}} Spot a card, or an empty place with the index 0
 * @typedef {object} Surface the table on which cards are dragged
 * @property {import("./board.js").Board} board
 * @property {import("./board.js").Position} position
 * @property {Record<string, HTMLElement>} slots the empty places
 * @property {(target: EventTarget | null) => Spot | null} spotOf
 * @property {(spot: Spot) => HTMLElement} button the button at the place of the card, even while it flies
 * @property {(spot: Spot) => number[]} cardsAt the cards that can be moved together
 * @property {Spot | null} selected
 * @property {(spot: Spot | null) => void} select
 * @property {(spot: Spot, again: boolean) => void} click
 * @property {(spot: Spot, piles: string[]) => void} drop
 */

/** The area that two boxes share. @param {Box} one @param {Box} other */
const overlap = (one, other) =>
  Math.max(0, Math.min(one.right, other.right) - Math.max(one.left, other.left)) *
  Math.max(0, Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top));

/** @param {Box} box @param {number} x @param {number} y */
const shifted = (box, x, y) => ({ left: box.left + x, top: box.top + y, right: box.right + x, bottom: box.bottom + y });

export class Drag {
  /** @param {HTMLElement} element @param {Surface} table */
  constructor(element, table) {
    this.element = element;
    this.table = table;
    /** @type {any} the drag in progress, or one that may begin */
    this.held = null;
    this.ended = false;
    element.addEventListener("pointerdown", (event) => this.#down(event));
    element.addEventListener("pointermove", (event) => this.#move(event));
    element.addEventListener("pointerup", (event) => this.#up(event));
    element.addEventListener("pointercancel", (event) => this.#lost(event));
    // A touched card captures the pointer. When a drag begins, the board takes the capture; that event must not cancel it.
    element.addEventListener("lostpointercapture", (event) => event.target === element && this.#lost(event));
    // Otherwise browsers would treat a fast drag as a flick of the page, and swallow the next tap.
    const keep = (/** @type {TouchEvent} */ event) => this.held?.items && event.cancelable && event.preventDefault();
    for (const list of Object.values(table.board.lists)) list.addEventListener("touchmove", keep, { passive: false });
    document.addEventListener("visibilitychange", () => this.cancel());
    addEventListener("resize", () => this.cancel());
    addEventListener("scroll", () => this.held?.items && this.#move(this.held.last));
    addEventListener("keydown", ({ key }) => key === "Escape" && this.cancel());
  }

  /** Whether a click is the end of a drag. @param {MouseEvent} event */
  swallows({ detail }) {
    return detail > 0 && this.ended;
  }

  /** @param {PointerEvent} event */
  #down(event) {
    if (this.held && !event.isPrimary) return; // a drag uses one finger
    this.cancel(); // an earlier drag may have ended outside the window, without an event
    this.ended = false;
    const spot = this.table.spotOf(event.target);
    const cards = spot ? this.table.cardsAt(spot) : [];
    if (event.button || !spot || !cards.length) return;
    const box = (/** @type {Spot} */ there) => this.table.button(there).getBoundingClientRect();
    const places = Object.keys(this.table.slots)
      .filter((pile) => pile !== spot.pile && pile !== "s" && pile !== "w")
      .map((pile) => ({ pile, box: box({ pile, index: Infinity }) }));
    this.held = {
      id: event.pointerId,
      spot,
      places,
      cards,
      x: event.clientX + scrollX,
      y: event.clientY + scrollY,
      toX: 0,
      toY: 0,
      box: box(spot),
      items: null,
      frame: 0,
      furthest: 0,
      selected: this.table.selected,
      least: event.pointerType === "mouse" ? MOUSE_PX : TOUCH_PX,
    };
  }

  /** @param {PointerEvent} event */
  #move(event) {
    const { held } = this;
    if (held?.id !== event.pointerId) return;
    held.last = event;
    held.toX = event.clientX + scrollX - held.x;
    held.toY = event.clientY + scrollY - held.y;
    held.furthest = Math.max(held.furthest, Math.hypot(held.toX, held.toY));
    if (!held.items) {
      if (held.furthest < held.least) return;
      this.element.setPointerCapture(held.id);
      this.table.select(held.spot);
      held.items = held.cards.map((/** @type {number} */ card) => this.table.board.cards[card].item);
      held.copy = this.#copy(held.spot.pile, held.items);
      for (const item of held.items) item.classList.add("held");
    }
    held.frame ||= requestAnimationFrame(() => {
      held.frame = 0;
      held.copy.style.transform = `translate(${held.toX}px, ${held.toY}px)`;
    });
  }

  /** A copy of the cards in one element above all others. Moving it costs a tenth of moving each card. @param {string} pile @param {HTMLElement[]} items */
  #copy(pile, items) {
    const list = this.table.board.lists[pile].cloneNode();
    /** @type {Element} */ (list).append(...items.map((item) => item.cloneNode(true)));
    const copy = h("div", { class: "carried", inert: true });
    copy.append(list);
    this.element.append(copy);
    return copy;
  }

  /** @param {PointerEvent} event */
  #up(event) {
    const { held } = this;
    if (held?.id !== event.pointerId) return;
    const { items, box, toX, toY, places, spot, furthest, selected } = held;
    if (!items) return void (this.held = null);
    const now = shifted(box, toX, toY);
    /** @type {{pile: string, area: number}[]} */
    const met = places.map((/** @type {any} */ { pile, box: there }) => ({ pile, area: overlap(now, there) }));
    this.cancel();
    this.ended = true;
    if (furthest < CLICK_PX) {
      this.table.select(selected); // the drag has replaced it
      return this.table.click(spot, false);
    }
    this.table.drop(
      spot,
      met
        .filter(({ area }) => area > 0)
        .sort((one, other) => other.area - one.area)
        .map(({ pile }) => pile),
    );
  }

  /** @param {PointerEvent} event */
  #lost(event) {
    if (this.held?.id === event.pointerId) this.cancel();
  }

  /** Put the cards back, and forget the drag. */
  cancel() {
    const { held } = this;
    this.held = null;
    if (!held?.items) return;
    cancelAnimationFrame(held.frame);
    held.copy.remove();
    for (const item of held.items) item.classList.remove("held");
    this.table.select(null);
    if (this.element.hasPointerCapture(held.id)) this.element.releasePointerCapture(held.id);
  }
}
