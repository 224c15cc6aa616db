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
      const start = { translate: `${from.left - to.left}px ${from.top - to.top}px` };
      const timing = { duration: EACH_MS, delay: APART_MS * number, easing: "ease-out" };
      return [card.animate([start, { translate: "0px 0px" }], { ...timing, fill: /** @type {const} */ ("backwards") })];
    });
  const stop = new AbortController();
  const end = () => {
    stop.abort();
    for (const flight of flights) flight.cancel();
  };
  for (const name of ["keydown", "pointerdown"]) addEventListener(name, end, { capture: true, signal: stop.signal });
  Promise.all(flights.map(({ finished }) => finished)).then(end, () => {});
}
