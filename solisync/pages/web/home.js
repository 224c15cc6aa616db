// @ts-check
/** /: today's deal with the time that is left for it, and the newest wins. */

import { read } from "./api.js";
import { byId, counted, fill, h, replayTable } from "./page.js";

/** How long until the next midnight in UTC. */
function left() {
  const minutes = Math.ceil((86_400_000 - (Date.now() % 86_400_000)) / 60_000);
  return `${counted(Math.floor(minutes / 60), "hour")} ${counted(minutes % 60, "minute")} left`;
}

fill(byId("today"), async () => {
  const { date, description } = await read("/api/daily-challenge");
  const time = h("p", { class: "quiet" }, left());
  setInterval(() => (time.textContent = left()), 30_000);
  return [h("p", { class: "goal" }, description), time, h("p", {}, h("a", { href: `/daily/${date}` }, "The deal and who won it"))];
});
fill(byId("wins"), async () => {
  const [wins, { seed }] = await Promise.all([read("/api/replays/recent?limit=5&verdict=verified"), read("/api/daily-challenge")]);
  return [wins.length ? replayTable(wins, String(seed)) : h("p", { class: "quiet" }, "No wins have been verified yet.")];
});
