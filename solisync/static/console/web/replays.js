// @ts-check
/** The page of the newest replays. */

import { read } from "./api.js";
import { bdi, chip, listing, nameOf, pages, replayLink, section, when } from "./console.js";
import { VERDICTS } from "./console_facts.js";
import { byId, h, words } from "./page.js";

const asked = new URLSearchParams(location.search);
const filters = h(
  "nav",
  { "aria-label": "Filters" },
  h("a", { class: "button", href: "/replays", "aria-current": !asked.size && "page" }, "All"),
  ...VERDICTS.map((each) =>
    h(
      "a",
      { class: "button", href: `/replays?verdict=${each}`, "aria-current": asked.get("verdict") === each && "page" },
      each,
    ),
  ),
  h("a", { class: "button", href: "/replays?held=true", "aria-current": asked.has("held") && "page" }, "held"),
);

const list = pages("Replays", async (page) => {
  const { replays, next } = await read(`/replays?${asked}${page}`);
  const rows = replays.map((/** @type {any} */ each) => [
    replayLink(each.id),
    nameOf(each.username),
    words(each.mode),
    each.final_score,
    chip(each.verdict),
    bdi(each.finding),
    listing(each),
    when(each.received_at),
  ]);
  const none = next ? "No matches among these 4,000 replays. Choose “Older” to search further." : "No replays match.";
  return [
    [
      section(
        "Replays",
        ["Replay", "Player", "Mode", "Score", "Verdict", "Finding", "Visibility", "Received"],
        rows,
        none,
      ),
    ],
    next,
  ];
});
byId("place").replaceChildren(filters, list);
byId("place").removeAttribute("aria-busy");
