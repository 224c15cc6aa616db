// @ts-check
/** The page of the record of acts, with filters, and a button that reverses each act whose effect stands. */

import { inRoot, read } from "./api.js";
import { actButton, at, bdi, nameOf, pages, playerLink, REASONS, replayLink, section } from "./console.js";
import { ACTS, TEXT_MAX } from "./console_facts.js";
import { byId, h } from "./page.js";

const asked = new URLSearchParams([...new URLSearchParams(location.search)].filter(([, value]) => value));

/** @param {string} name @param {string} label @param {HTMLElement} field */
const labelled = (name, label, field) => h("span", { class: "row" }, h("label", { for: `acts-${name}` }, label), field);
/** @param {string} name @param {[string, string][]} choices */
const choice = (name, choices) =>
  h(
    "select",
    { id: `acts-${name}`, name },
    ...choices.map(([value, text]) => h("option", { value, selected: asked.get(name) === value }, text)),
  );
/** @param {string} name @param {string} type */
const field = (name, type) =>
  h("input", {
    id: `acts-${name}`,
    name,
    type,
    value: asked.get(name) ?? "",
    maxlength: type === "text" && TEXT_MAX,
    autocomplete: "off",
    spellcheck: "false",
  });

const reasons = /** @type {[string, string][]} */ (Object.entries(REASONS));
const filters = h(
  "form",
  { class: "row filters", action: "/acts", "aria-label": "Filters" },
  labelled(
    "act",
    "Act",
    choice("act", [
      ["", "Any"],
      .../** @type {[string, string][]} */ (ACTS.map((each) => [each, each.replaceAll("_", " ")])),
    ]),
  ),
  labelled("reason", "Reason", choice("reason", [["", "Any"], ...reasons.slice(1)])),
  labelled("admin", "Admin", field("admin", "text")),
  labelled("player", "Player", field("player", "text")),
  labelled("from", "From", field("from", "date")),
  labelled("to", "Before", field("to", "date")),
  h("button", { class: "main" }, "Filter"),
  asked.size > 0 && h("a", { href: "/acts" }, "All acts"),
);

/** @param {any} each */
const undo = ({ undo, reason }) =>
  undo &&
  actButton(
    { ...undo, text: "The record keeps both acts.", verb: "Undo", path: inRoot(undo.path), reason: reason ?? "" },
    load,
  );

function load() {
  const list = pages("Acts", async (page) => {
    const { acts, next } = await read(`/acts?${asked}${page}`);
    const rows = acts.map((/** @type {any} */ each) => [
      h("span", {}, each.act.replaceAll("_", " "), each.replay_id && " ", each.replay_id && replayLink(each.replay_id)),
      at(each.at),
      h("a", { href: `/acts?actor=${encodeURIComponent(each.actor)}` }, nameOf(each.actor)),
      each.user_id ? playerLink(each.user_id, each.username) : "–",
      bdi([each.reason, [each.before, each.after].filter(Boolean).join(" → "), each.note].filter(Boolean).join("; ")),
      undo(each),
    ]);
    return [
      [
        section(
          "Acts",
          ["Act", "When", "By", "Player", "Reason and change", "Undo"],
          rows,
          asked.size ? "No acts match." : "There are no acts yet.",
        ),
      ],
      next,
    ];
  });
  byId("place").replaceChildren(filters, list);
  byId("place").removeAttribute("aria-busy");
}
load();
