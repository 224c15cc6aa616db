// @ts-check
/** The overview: what waits, how much there is, and the newest of everything. */

import { read } from "./api.js";
import { bdi, factList, keep, level, nameOf, playerLink, replayLink, section, when } from "./console.js";
import { byId, fill, h, score } from "./page.js";

const EVERY_SECONDS = 10;

/** @param {number} seconds */
const lasting = (seconds) => (seconds < 7200 ? `${Math.round(seconds / 60)} min` : seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`);

async function service() {
  const { version, up_seconds: up, at, rows, queues } = await read("/service");
  return [
    h("h2", {}, "Service"),
    factList([
      ["Replays to check", score(queues.literal)],
      ["Searches for undos", score(queues.search)],
      ["Longest wait", lasting(queues.oldest_seconds)],
      ["Players, about", score(rows.users)],
      ["Sessions, about", score(rows.refresh_tokens)],
      ["Replays, about", score(rows.replays)],
      ["Suspended", h("a", { href: "/players?state=suspended" }, score(rows.suspensions))],
      ["Locked", h("a", { href: "/players?state=locked" }, score(rows.profile_locks))],
      ["Version", version],
      ["Process running for", lasting(up)],
    ]),
    h("p", { class: "quiet" }, `As of ${new Date(at).toLocaleTimeString("en-GB")}.`),
  ];
}

/** What isn't well, or that all is. */
async function findings() {
  const found = (await read("/service/findings")).findings;
  const open = found.filter((/** @type {any} */ each) => each.level !== "ok");
  if (!open.length) return [h("h2", {}, "Findings"), h("p", { class: "quiet" }, `All is well: ${found.length} checks.`)];
  return [section("Findings", ["Level", "What", "Advice"], open.map((/** @type {any} */ each) => [level(each.level), bdi(`${each.subject}: ${each.text}`), bdi(each.advice)]), "")];
}

/** @param {string} kind */
const newest = async (kind) => (await read(`/review?kind=${kind}`));

const PANELS = /** @type {[string, () => Promise<HTMLElement>][]} */ ([
  ["names", async () => section("Newest names", ["Player", "Name", "When"], (await newest("names")).profiles.slice(0, 8).map((/** @type {any} */ each) => [playerLink(each.id, each.username), nameOf(each.display_name), when(each.at)]), "No player has chosen a name lately.")],
  ["players", async () => section("Newest players", ["Player", "From", "When"], (await newest("players")).players.slice(0, 8).map((/** @type {any} */ each) => [playerLink(each.id, each.username), each.client, when(each.at)]), "Nobody has registered lately.")],
  ["replays", async () => section("Newest replays", ["Replay", "Player", "Verdict", "Received"], (await newest("replays")).replays.slice(0, 8).map((/** @type {any} */ each) => [replayLink(each.id), nameOf(each.username), each.verdict, when(each.received_at)]), "There are no replays yet.")],
  ["acts", async () => section("Latest acts", ["Act", "By", "Player", "When"], (await read("/acts")).acts.slice(0, 8).map((/** @type {any} */ each) => [each.act, nameOf(each.actor), each.user_id ? playerLink(each.user_id, each.username) : "–", when(each.at)]), "Nobody has done anything yet.")],
]);

const health = h("section", { class: "panel", id: "findings" });
const first = h("section", { class: "panel", id: "numbers" });
const panels = PANELS.map(([, load]) => {
  const place = h("div");
  fill(place, async () => [await load()]);
  return place;
});
byId("place").replaceChildren(health, first, h("div", { class: "panels" }, ...panels));
byId("place").removeAttribute("aria-busy");
const refresh = () => {
  keep(health, findings);
  keep(first, service);
};
refresh();
setInterval(() => document.visibilityState === "visible" && !document.querySelector("dialog[open]") && refresh(), EVERY_SECONDS * 1000);
