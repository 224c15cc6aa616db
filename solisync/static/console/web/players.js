// @ts-check
/** The page to find players, and to suspend several. */

import { read } from "./api.js";
import { actButton, chip, nameOf, pages, playerLink, section, when } from "./console.js";
import { byId, counted, h } from "./page.js";

const WHERE = { name: "Start of username, or ID", part: "Part of username", display_name: "Part of display name", address: "IP address" };

const asked = new URLSearchParams(location.search);
const text = h("input", { id: "q", name: "q", type: "search", value: asked.get("q") ?? "", maxlength: 100, autocomplete: "off", spellcheck: "false" });
const where = h("select", { id: "where", name: "where" }, ...Object.entries(WHERE).map(([value, label]) => h("option", { value, selected: asked.get("where") === value }, label)));
const found = h("div");
const form = h("form", { role: "search", class: "row" }, h("label", { for: "q" }, "Player"), text, h("label", { for: "where" }, "Look in"), where, h("button", { class: "main" }, "Find"));
const states = h("p", { class: "row" }, h("a", { href: "/players?state=suspended" }, "Suspended players"), h("a", { href: "/players?state=locked" }, "Locked profiles"));
byId("place").replaceChildren(form, states, found);
byId("place").removeAttribute("aria-busy");
text.focus();

/** @param {any} answer */
function shown({ players, visitors, next }) {
  if (visitors.length) {
    return [section("Players from this address", ["Player", "Events", "Last event"], visitors.map((/** @type {any} */ each) => [playerLink(each.id, each.username), each.events, when(each.last_at)]), "There are no recent events from this address.")];
  }
  /** @type {Set<string>} */
  const chosen = new Set();
  const bar = h("p", { class: "acts stuck", hidden: true });
  const choose = (/** @type {string} */ id, /** @type {boolean} */ on) => {
    chosen[on ? "add" : "delete"](id);
    const plan = { title: `Suspend ${counted(chosen.size, "player")}`, text: "They can’t sign in, and other players no longer see their entries and replays.", verb: "Suspend", method: "POST", path: "/suspensions", body: { ids: [...chosen] }, danger: true };
    bar.replaceChildren(actButton(plan, search, `Suspend ${counted(chosen.size, "player")} …`));
    bar.hidden = chosen.size === 0;
  };
  const rows = players.map((/** @type {any} */ each) => [
    playerLink(each.id, each.username),
    nameOf(each.display_name),
    when(each.created_at),
    each.suspended_since ? chip("suspended") : each.locked_since ? chip("locked") : "",
    h("input", { type: "checkbox", "aria-label": `Select ${each.username}`, change: (/** @type {any} */ event) => choose(each.id, event.target.checked) }),
  ]);
  const list = section("Players", ["Player", "Display name", "Registered", "State", "Select"], rows, next ? "No matches so far. Choose “More” to search further." : "No players found.");
  return [list, bar];
}

function search() {
  const state = asked.get("state");
  const words = text.value.trim();
  if (!state && !words) return found.replaceChildren(h("p", { class: "quiet" }, "Type the start of a username, or an ID."));
  const query = state ? new URLSearchParams({ state }) : new URLSearchParams({ q: words, where: where.value });
  const load = async (/** @type {string} */ page) => {
    const answer = await read(`/players?${query}${page}`);
    const [only, ...others] = answer.players;
    if (!state && !page && only && !others.length && [only.username, only.id].includes(words)) location.href = `/players/${only.id}`;
    return /** @type {[Node[], string | null]} */ ([shown(answer), answer.next]);
  };
  found.replaceChildren(pages("Players", load, "after"));
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  asked.delete("state");
  history.replaceState({}, "", `/players?${new URLSearchParams({ q: text.value.trim(), where: where.value })}`);
  search();
});
search();
