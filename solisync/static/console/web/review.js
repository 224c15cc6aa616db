// @ts-check
/** The review page: new names, avatars and players, and leaderboard entries that no replay proves. */

import { read, ROOT } from "./api.js";
import { actButton, chip, nameOf, pages, playerLink, replayLink, section, when } from "./console.js";
import { byId, h, score } from "./page.js";

const KINDS = { names: "Names", avatars: "Avatars", players: "New players", entries: "Unproven scores" };

const asked = new URLSearchParams(location.search).get("kind") ?? "";
const kind = /** @type {keyof typeof KINDS} */ (Object.hasOwn(KINDS, asked) ? asked : "names");

const tabs = h("nav", { "aria-label": "What to review" }, ...Object.entries(KINDS).map(([value, text]) => h("a", { href: `/review?kind=${value}`, class: "button", "aria-current": value === kind && "page" }, text)));

/** @param {any} each */
const rename = (each) => actButton({ title: `Rename the entry of ${each.username}`, text: "Changes the display name on the leaderboard and all boards.", verb: "Rename", method: "PUT", path: `/players/${each.id}/entry`, reason: "name", undo: { display_name: each.display_name }, fields: [{ label: "Display name", name: "display_name", value: "A player" }] }, again);

/** @param {any} each */
const remove = (each) => actButton({ title: `Remove the avatar of ${each.username}`, text: "The player can upload another one, unless the profile is locked.", verb: "Remove", method: "POST", path: `/players/${each.id}/avatar/remove`, reason: "avatar" }, again);

/** @param {any} answer */
function shown({ profiles, players, entries }) {
  switch (kind) {
    case "avatars":
      return [profiles.length ? h("ul", { class: "grid" }, ...profiles.map((/** @type {any} */ each) => h("li", {}, h("img", { src: `${ROOT}/players/${each.id}/avatar`, alt: `Avatar of ${each.username}`, loading: "lazy" }), playerLink(each.id, each.username), remove(each)))) : h("p", { class: "quiet" }, "No player has uploaded an avatar recently.")];
    case "players":
      return [section("New players", ["Player", "Address", "Display name", "Registered"], players.map((/** @type {any} */ each) => [playerLink(each.id, each.username), each.client && h("a", { href: `/players?where=address&q=${encodeURIComponent(each.client)}` }, each.client), nameOf(each.display_name), when(each.at)]), "No player has registered recently.")];
    case "entries":
      return [section("Best scores that no replay proves", ["Player", "Display name", "Score", "Since", "Replay with this score"], entries.map((/** @type {any} */ each) => [h("a", { href: `/players?q=${each.username}` }, nameOf(each.username)), nameOf(each.display_name), score(each.best_score), when(each.recorded_at), each.replay_id ? h("span", { class: "row" }, replayLink(each.replay_id), chip(each.verdict)) : "none"]), "Replays prove all of the first hundred scores.")];
    default:
      return [section("Names", ["Player", "Display name", "When", "Rename"], profiles.map((/** @type {any} */ each) => [playerLink(each.id, each.username), nameOf(each.display_name), when(each.at), rename(each)]), "No player has chosen a name recently.")];
  }
}

function again() {
  const list = pages(KINDS[kind], async (page) => {
    const answer = await read(`/review?kind=${kind}${page}`);
    return [shown(answer), answer.next];
  });
  byId("place").replaceChildren(tabs, list);
  byId("place").removeAttribute("aria-busy");
}
again();
