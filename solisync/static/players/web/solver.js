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

/** Search for the moves that win from a position; null if the search finds none, or can't run. @param {import("./board.js").Position} position @param {number} draw @param {string[]} [banned] positions to which the first move must not move a card, as text @returns {Promise<Move[] | null>} */
export async function solve(position, draw, banned = []) {
  try {
    running ??= start();
    const { port1, port2 } = new MessageChannel();
    running.worker.postMessage({ position, draw, banned }, [port2]);
    const answer = new Promise((resolve) => (port1.onmessage = ({ data }) => resolve(data)));
    const found = await Promise.race([answer, running.failed]);
    return found && found.map((/** @type {Move} */ move) => (move.from === "s" ? STOCK : move)); // messages copy STOCK
  } catch {
    return null; // a browser without such workers
  }
}

/** The seed of a winnable deal, or of any deal after DEALS searches or when stopped. @param {number} draw @param {AbortSignal} stop */
export async function winnableSeed(draw, stop) {
  const stopped = new Promise((resolve) => stop.addEventListener("abort", resolve));
  let seed = newSeed();
  for (let tried = 0; tried < DEALS && !stop.aborted; tried++) {
    if (await Promise.race([solve(deal(BigInt(seed)), draw), stopped])) break;
    seed = newSeed();
  }
  return seed;
}
