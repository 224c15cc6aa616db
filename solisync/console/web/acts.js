// @ts-check
/** The record of acts. */

import { read } from "./api.js";
import { bdi, playerLink, replayLink, section, show, when } from "./console.js";
import { h } from "./page.js";

const asked = new URLSearchParams(location.search);

show(async () => {
  const { acts, next } = await read(`/acts?${asked}`);
  const rows = acts.map((/** @type {any} */ each) => [each.act, h("a", { href: `/acts?actor=${encodeURIComponent(each.actor)}` }, bdi(each.actor)), each.user_id ? playerLink(each.user_id, each.username) : "–", each.replay_id && replayLink(each.replay_id), each.reason, bdi([[each.before, each.after].filter(Boolean).join(" → "), each.note].filter(Boolean).join("; ")), when(each.at)]);
  const older = new URLSearchParams(asked);
  older.set("before", next);
  return [section("Acts", ["Act", "By", "Player", "Replay", "Reason", "What has changed", "When"], rows, "Nobody has done anything yet."), ...(next ? [h("p", {}, h("a", { class: "button", href: `/acts?${older}` }, "Older"))] : [])];
});
