// @ts-check
/** Dealing: at the start of a game, the cards of the columns fly from the stock to their places. */

const EACH_MS = 240;
const APART_MS = 12; // 28 cards: less than 0.6 seconds for all

/** Let the cards fly, until a key or a tap. @param {import("./board.js").Board} board */
export function deals({ lists }) {
  const columns = Object.keys(lists).filter((pile) => pile[0] === "t");
  const from = lists.s.getBoundingClientRect();
  const flights = Array.from({ length: 7 }, (_, row) => columns.slice(row).map((pile) => lists[pile].children[row]))
    .flat()
    .flatMap((card, number) => {
      if (!card) return []; // the game has gone on
      const to = card.getBoundingClientRect();
      const [x, y] = [from.left - to.left, from.top - to.top];
      /** @type {KeyframeAnimationOptions} */
      const timing = { duration: EACH_MS, delay: APART_MS * number, easing: "ease-out", fill: "backwards" };
      const fly = (/** @type {Element} */ element, /** @type {number} */ sign) =>
        element.animate([{ translate: `${sign * x}px ${sign * y}px` }, { translate: "0px 0px" }], timing);
      return [fly(card, 1), ...[...card.querySelectorAll(".hit")].map((hit) => fly(hit, -1))]; // buttons are at their places
    });
  const stop = new AbortController();
  const end = () => {
    stop.abort();
    for (const flight of flights) flight.cancel();
  };
  for (const name of ["keydown", "pointerdown"]) addEventListener(name, end, { capture: true, signal: stop.signal });
  Promise.all(flights.map(({ finished }) => finished)).then(end, () => {});
}
