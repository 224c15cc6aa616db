// @ts-check
/** The page of the record of acts. */

import { read } from "./api.js";
import { bdi, nameOf, pages, playerLink, replayLink, section, when } from "./console.js";
import { byId, h } from "./page.js";

const asked = new URLSearchParams(location.search);

const list = pages("Acts", async (page) => {
  const { acts, next } = await read(`/acts?${asked}${page}`);
  const rows = acts.map((/** @type {any} */ each) => [each.act, h("a", { href: `/acts?actor=${encodeURIComponent(each.actor)}` }, nameOf(each.actor)), each.user_id ? playerLink(each.user_id, each.username) : "–", each.replay_id && replayLink(each.replay_id), each.reason, bdi([[each.before, each.after].filter(Boolean).join(" → "), each.note].filter(Boolean).join("; ")), when(each.at)]);
  return [[section("Acts", ["Act", "By", "Player", "Replay", "Reason", "Change", "When"], rows, "There are no acts yet.")], next];
});
byId("place").replaceChildren(...(asked.size ? [h("p", {}, h("a", { href: "/acts" }, "All acts"))] : []), list);
byId("place").removeAttribute("aria-busy");
