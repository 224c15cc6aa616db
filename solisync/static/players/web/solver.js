// @ts-check
/** Wins of positions, and deals that can be won. A worker searches for them, so the search never blocks the page. */

import { newSeed } from "./game.js";
import { deal, STOCK } from "./klondike.js";
import { allowed, SEARCH } from "./workers.js";

/** @typedef {import("./klondike.js").Move} Move */

const DEALS = 20;

/** @type {{worker: Worker, failed: Promise<null>} | undefined} */
let running;

/** Start the worker. If its script can't be loaded, the next search starts another one. */
function start() {
  const worker = new Worker(allowed(SEARCH), { type: "module" });
  const failed = new Promise((resolve) =>
    worker.addEventListener("error", () => {
      running = undefined;
      resolve(null);
    }),
  );
  return { worker, failed };
}

/** @typedef {{moves: Move[] | null, lost: boolean}} Answer the moves that win, or null; whether there are none */

/** Search for the moves that win from a position. The same question continues the search. @param {import("./board.js").Position} position @param {number} draw @param {string[]} [banned] positions to which the first move must not move a card, as text @returns {Promise<Answer>} */
export async function solve(position, draw, banned = []) {
  try {
    running ??= start();
    const { port1, port2 } = new MessageChannel();
    running.worker.postMessage({ position, draw, banned }, [port2]);
    const answer = new Promise((resolve) => (port1.onmessage = ({ data }) => resolve(data)));
    const { moves, lost } = (await Promise.race([answer, running.failed])) ?? { moves: null, lost: false };
    return { moves: moves?.map((/** @type {Move} */ move) => (move.from === "s" ? STOCK : move)) ?? null, lost }; // messages copy STOCK
  } catch {
    return { moves: null, lost: false }; // a browser without such workers
  }
}

/** The seed of a winnable deal, or of any deal after DEALS searches or when stopped. @param {number} draw @param {AbortSignal} stop */
export async function winnableSeed(draw, stop) {
  const stopped = new Promise((resolve) => stop.addEventListener("abort", resolve));
  let seed = newSeed();
  for (let tried = 0; tried < DEALS && !stop.aborted; tried++) {
    const found = solve(deal(BigInt(seed)), draw).then(({ moves }) => moves !== null);
    if (await Promise.race([found, stopped])) break;
    seed = newSeed();
  }
  return seed;
}
