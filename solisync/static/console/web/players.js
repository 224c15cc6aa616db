// @ts-check
/** The page of players: all of them in some order, or those that a search finds. Several can be suspended together. */

import { read } from "./api.js";
import { chip, nameOf, pages, playerLink, section, when } from "./console.js";
import { MEMBERS, TEXT_MAX } from "./console_facts.js";
import { byId, h, score } from "./page.js";
import { selection, suspendButton } from "./selection.js";

/** @typedef {typeof import("./console_facts.js")} Facts */
/** @type {Record<Facts["WHERE"][number], string>} */
const WHERE = {
  name: "Start of username, or ID",
  part: "Part of username",
  display_name: "Part of display name",
  address: "IP address",
};
/** @type {Record<"" | Facts["STATES"][number], string>} */
const STATES = { "": "All", guests: "Guests", suspended: "Suspended", locked: "Locked" };
/** @type {Record<Facts["SORTS"][number], string>} */
const SORTS = {
  newest: "Newest first",
  last_used: "Last used first",
  replays: "Most replays first",
  bytes: "Most space first",
};

const asked = new URLSearchParams(location.search);
const text = h("input", {
  id: "q",
  name: "q",
  type: "search",
  value: asked.get("q") ?? "",
  maxlength: TEXT_MAX,
  autocomplete: "off",
  spellcheck: "false",
});
/** @param {string} id @param {Record<string, string>} choices */
const select = (id, choices) =>
  h(
    "select",
    { id, name: id },
    ...Object.entries(choices).map(([value, label]) =>
      h("option", { value, selected: asked.get(id) === value }, label),
    ),
  );
const where = select("where", WHERE);
const sort = select("sort", SORTS);
const found = h("div");
const form = h(
  "form",
  { role: "search", class: "row" },
  h("label", { for: "q" }, "Player"),
  text,
  h("label", { for: "where" }, "Look in"),
  where,
  h("button", { class: "main" }, "Find"),
);

/** The address of the list in this state and order. @param {string} state @param {string} order */
const listed = (state, order) =>
  `/players?${new URLSearchParams({ ...(state && { state }), ...(order !== "newest" && { sort: order }) })}`;

const current = asked.get("q") ? null : (asked.get("state") ?? "");
const states = h(
  "nav",
  { "aria-label": "State" },
  ...Object.entries(STATES).map(([state, label]) =>
    h("a", { class: "button", href: listed(state, sort.value), "aria-current": state === current && "page" }, label),
  ),
);
sort.addEventListener("change", () => (location.href = listed(current ?? "", sort.value)));
byId("place").replaceChildren(
  form,
  h("div", { class: "row" }, states, h("label", { for: "sort" }, "Order"), sort),
  found,
);
byId("place").removeAttribute("aria-busy");
text.focus();

/** @param {any} answer */
function shown({ players, visitors, next, more }) {
  if (visitors.length) {
    return [
      section(
        "Players from this address",
        ["Player", "Events", "Last event"],
        visitors.map((/** @type {any} */ each) => [
          playerLink(each.id, each.username),
          each.events,
          when(each.last_at),
        ]),
        "There are no recent events from this address.",
      ),
    ];
  }
  const { box, bar } = selection((/** @type {string[]} */ ids) => [ids.length > 0 && suspendButton(ids, search)]);
  const rows = players.map((/** @type {any} */ each) => [
    playerLink(each.id, each.username),
    nameOf(each.display_name),
    when(each.created_at),
    when(each.used_at),
    score(each.replays),
    `${score(Math.ceil(each.bytes / 1024))} KiB`,
    h(
      "span",
      { class: "row" },
      each.guest && chip("guest"),
      each.suspended_since && chip("suspended"),
      each.locked_since && chip("locked"),
    ),
    box(each.id, each.username),
  ]);
  const none = next ? "No matches so far. Choose “More” to search further." : "No players found.";
  const bound =
    more && h("p", {}, `More than ${score(MEMBERS)} players are in this state. This list has the latest of them.`);
  return [
    bound,
    section(
      "Players",
      ["Player", "Display name", "Registered", "Last used", "Replays", "Space", "State", "Select"],
      rows,
      none,
    ),
    bar,
  ];
}

function search() {
  const words = text.value.trim();
  const query = words
    ? new URLSearchParams({ q: words, where: where.value })
    : new URLSearchParams({ sort: sort.value, ...(current && { state: current }) });
  const load = async (/** @type {string} */ page) => {
    const answer = await read(`/players?${query}${page}`);
    const [only, ...others] = answer.players;
    if (words && !page && only && !others.length && [only.username, only.id].includes(words))
      location.href = `/players/${only.id}`;
    return /** @type {[Node[], string | null]} */ ([shown(answer), answer.next]);
  };
  found.replaceChildren(pages("Players", load, "after"));
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const words = text.value.trim();
  history.replaceState(
    {},
    "",
    words ? `/players?${new URLSearchParams({ q: words, where: where.value })}` : "/players",
  );
  search();
});
search();
