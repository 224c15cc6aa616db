// @ts-check
/** The newest replays. */

import { read } from "./api.js";
import { bdi, replayLink, section, show, when } from "./console.js";
import { h, words } from "./page.js";

const VERDICTS = ["pending", "verified", "refuted", "undecided", "unreadable"];

const asked = new URLSearchParams(location.search);
const filters = h("nav", { "aria-label": "Which replays" }, h("a", { class: "button", href: "/replays", "aria-current": !asked.size && "page" }, "All"), ...VERDICTS.map((each) => h("a", { class: "button", href: `/replays?verdict=${each}`, "aria-current": asked.get("verdict") === each && "page" }, each)), h("a", { class: "button", href: "/replays?held=true", "aria-current": asked.has("held") && "page" }, "held"));

show(async () => {
  const { replays } = await read(`/replays?${asked}`);
  const rows = replays.map((/** @type {any} */ each) => [replayLink(each.id), bdi(each.username), words(each.mode), each.final_score, each.verdict, each.held ? "held" : each.listed ? "listed" : "hidden", when(each.received_at)]);
  return [filters, section("Replays", ["Replay", "Player", "Mode", "Score", "Verdict", "Lists", "Received"], rows, "There are no such replays among the newest 10,000.")];
});
