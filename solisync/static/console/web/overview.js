// @ts-check
/** The overview: findings, queues, counts, the last 30 days, and the newest names, players, replays and acts. */

import { read } from "./api.js";
import { bdi, chip, factList, keep, level, nameOf, playerLink, replayLink, section, when } from "./console.js";
import { numbers } from "./numbers.js";
import { byId, fill, h, score } from "./page.js";

const EVERY_SECONDS = 10;

/** @param {number} seconds */
const lasting = (seconds) =>
  seconds < 7200
    ? `${Math.round(seconds / 60)} min`
    : seconds < 172800
      ? `${Math.round(seconds / 3600)} h`
      : `${Math.round(seconds / 86400)} days`;

async function service() {
  const { version, up_seconds: up, at, rows, queues, retention_behind_seconds: behind } = await read("/service");
  return [
    h("h2", {}, "Service"),
    factList([
      ["Checks waiting", score(queues.literal)],
      ["Undo searches waiting", score(queues.search)],
      ["Longest wait", lasting(queues.oldest_seconds)],
      ["Players (approx.)", score(rows.users)],
      ["Guests", score(rows.guests)],
      ["Sessions (approx.)", score(rows.refresh_tokens)],
      ["Replays (approx.)", score(rows.replays)],
      ["Suspended players", h("a", { href: "/players?state=suspended" }, score(rows.suspensions))],
      ["Locked profiles", h("a", { href: "/players?state=locked" }, score(rows.profile_locks))],
      ["Version", version],
      ["Process uptime", lasting(up)],
      ["Retention clock", behind < 300 ? "on time" : `${lasting(behind)} behind`],
    ]),
    h("p", { class: "quiet" }, `As of ${new Date(at).toLocaleTimeString("en-GB")}.`),
  ];
}

/** Findings that need attention, or a sentence that all checks passed. */
async function findings() {
  const found = (await read("/service/findings")).findings;
  const open = found.filter((/** @type {any} */ each) => each.level !== "ok");
  if (!open.length) return [h("h2", {}, "Findings"), h("p", { class: "quiet" }, `All ${found.length} checks passed.`)];
  return [
    section(
      "Findings",
      ["Level", "Finding", "Advice"],
      open.map((/** @type {any} */ each) => [
        level(each.level),
        bdi(`${each.subject}: ${each.text}`),
        bdi(each.advice),
      ]),
      "",
    ),
  ];
}

/** @param {string} kind */
const newest = async (kind) => await read(`/review?kind=${kind}`);

const PANELS = /** @type {[string, () => Promise<HTMLElement>][]} */ ([
  [
    "names",
    async () =>
      section(
        "Newest names",
        ["Player", "Name", "When"],
        (await newest("names")).profiles
          .slice(0, 8)
          .map((/** @type {any} */ each) => [
            playerLink(each.id, each.username),
            nameOf(each.display_name),
            when(each.at),
          ]),
        "No player has chosen a name recently.",
      ),
  ],
  [
    "players",
    async () =>
      section(
        "Newest players",
        ["Player", "Address", "When"],
        (await newest("players")).players
          .slice(0, 8)
          .map((/** @type {any} */ each) => [playerLink(each.id, each.username), each.client, when(each.at)]),
        "No player has registered recently.",
      ),
  ],
  [
    "replays",
    async () =>
      section(
        "Newest replays",
        ["Replay", "Player", "Verdict", "Received"],
        (await newest("replays")).replays
          .slice(0, 8)
          .map((/** @type {any} */ each) => [
            replayLink(each.id),
            nameOf(each.username),
            chip(each.verdict),
            when(each.received_at),
          ]),
        "There are no replays yet.",
      ),
  ],
  [
    "acts",
    async () =>
      section(
        "Latest acts",
        ["Act", "By", "Player", "When"],
        (await read("/acts")).acts
          .slice(0, 8)
          .map((/** @type {any} */ each) => [
            each.act,
            nameOf(each.actor),
            each.user_id ? playerLink(each.user_id, each.username) : "–",
            when(each.at),
          ]),
        "There are no acts yet.",
      ),
  ],
]);

const health = h("section", { class: "panel", id: "findings" });
const first = h("section", { class: "panel", id: "numbers" });
const days = h("section", { class: "panel", id: "days" });
const panels = PANELS.map(([, load]) => {
  const place = h("div");
  fill(place, async () => [await load()]);
  return place;
});
byId("place").replaceChildren(health, days, first, h("div", { class: "panels" }, ...panels));
byId("place").removeAttribute("aria-busy");
const refresh = () => {
  keep(health, findings);
  keep(first, service);
};
refresh();
fill(days, numbers);
setInterval(
  () => document.visibilityState === "visible" && !document.querySelector("dialog[open]") && refresh(),
  EVERY_SECONDS * 1000,
);
