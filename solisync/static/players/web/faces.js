// @ts-check
/** The faces of cards as SVG. */

export const SUITS = ["clubs", "diamonds", "hearts", "spades"];
export const RANKS = ["ace", "2", "3", "4", "5", "6", "7", "8", "9", "10", "jack", "queen", "king"];
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

/** The face of a card, 100 by 140, in a large and a small drawing. The style shows one of the two. @param {number} card */
export function face(card) {
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
  const middle = rank > 9 ? court("translate(-17 37) scale(1.34)") : signs([50, 93, 3.1]);
  const small = [index([20, 19, 1.15]), signs([78, 19, 1.35]), middle];
  return draw(
    "svg",
    { viewBox: "0 0 100 140", "aria-hidden": "true" },
    draw("g", { class: "large" }, ...large),
    draw("g", { class: "small" }, ...small),
  );
}

/** Draw the faces of the cards that the page names, in the drawings of deals. */
export function drawDeals() {
  for (const place of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".deal b")))
    place.replaceChildren(face(Number(place.dataset.card)));
}
