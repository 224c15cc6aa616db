// @ts-check
/** Play the deal of the day, and send the result: `node examples/play.js http://127.0.0.1:8080 DIRECTORY`. */

import { Solisync } from "solisync";
import { fileStore } from "solisync/file";
import { Klondike, moves, STOCK } from "solisync/klondike";

const [url, directory] = process.argv.slice(2);
const MOVES = 300;

/** Play the first possible move, or click the stock; give up after some moves. @param {Klondike} game */
function play(game) {
  for (let count = 0; count < MOVES && !game.won; count++) {
    const home = moves(game.position).find(({ to }) => to[0] === "f");
    if (!game.play(home ?? STOCK) && !moves(game.position).some((move) => game.play(move))) return;
  }
}

const solis = new Solisync(url, { store: fileStore(directory), background: false });
solis.on("signedOut", (why) => console.log("signed out:", why));
await solis.restoreOr(() => solis.guest());
const game = Klondike.deal(await solis.daily(), "DrawOne");
play(game);
await solis.finish(game.record({ seconds: 60 })); // is on the disk when this returns
await solis.sync();
const { games_played: played, games_won: won } = await solis.totals();
console.log(`won ${won} of ${played}`);
solis.close();
