// @ts-check
/** Klondike in a terminal, also offline: `node examples/terminal.js http://127.0.0.1:8080 DIRECTORY`. */

import { createInterface } from "node:readline";
import { Solisync } from "solisync";
import { fileStore } from "solisync/file";
import { Klondike, STOCK } from "solisync/klondike";

const [url, directory] = process.argv.slice(2);
const HELP = "Moves: s draws; u undoes; t3 f0 moves a card, t3 t5 4 moves four; q gives up; x exits.";
const card = (/** @type {number} */ number) => "A23456789TJQK"[number % 13] + "♣♦♥♠"[Math.floor(number / 13)];

const solis = new Solisync(url, { store: fileStore(directory) });
solis.on("trouble", (error) => console.log(`(${error.message})`));
solis.on("verdict", ({ status }) => console.log(`(Your win is ${status}.)`));

/** Sign in to this device's guest if the service can be reached; otherwise at the next start. */
const signIn = () =>
  solis
    .restoreOr(() => solis.guest())
    .then(
      () => solis.stream(),
      (error) => console.log(`(${error.message})`),
    );

/** @param {Klondike} game */
function show({ position: { piles, down }, score }) {
  for (const [name, cards] of Object.entries(piles)) {
    const hidden = name === "s" ? cards.length : (down[name] ?? 0);
    console.log(`${name} ${"▒".repeat(hidden)} ${cards.slice(hidden).map(card).join(" ")}`);
  }
  console.log(`${score} points`);
}

async function newGame() {
  const deal = await solis.daily().catch(() => String(crypto.getRandomValues(new Uint32Array(1))[0]));
  const game = Klondike.deal(deal, "DrawOne");
  show(game);
  return { game, began: Date.now() };
}

/** @param {Klondike} game @param {string} line @returns {unknown} whether the rules allow it */
function moved(game, line) {
  const [from, to, count = "1"] = line.trim().split(/ +/);
  if (from === "u") return game.undo();
  return game.play(from === "s" ? STOCK : { from, to: to ?? "", count: Number(count) });
}

await signIn();
console.log(HELP);
let { game, began } = await newGame();
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "x") break;
  if (line !== "q" && !moved(game, line)) console.log(`That isn’t possible. ${HELP}`);
  if (line === "q" || game.won) {
    await solis.finish(game.record({ seconds: Math.ceil((Date.now() - began) / 1000) })); // is on the disk now
    const { games_won: won, games_played: played } = await solis.totals();
    console.log(`Won ${won} of ${played}. A new game:`);
    ({ game, began } = await newGame());
  } else show(game);
}
await solis.sync().catch((error) => console.log(error.code === "signed_out" ? "" : error.message));
solis.close();
