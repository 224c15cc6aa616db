// @ts-check
/** /: today's deal with the time that is left for it, and the newest wins. */

import { read } from "./api.js";
import { byId, fill, h, replayTable, timeLeft } from "./page.js";

const day = JSON.parse(byId("data").textContent);

timeLeft(byId("left"), day.date);
fill(byId("wins"), async () => {
  const wins = await read("/api/replays/recent?limit=5&verdict=verified");
  return [wins.length ? replayTable(wins, day.deal) : h("p", { class: "quiet" }, "No wins have been verified yet.")];
});
