// @ts-check
/** The page of the record of acts, with filters, and a button for the inverse of each act whose effect stands. */

import { read } from "./api.js";
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

/** The plan for the inverse of an act. @param {any} each */
function inverse(each) {
  const name = each.username;
  const player = `/players/${each.user_id}`;
  const replay = `/replays/${each.replay_id}`;
  const [, until, message] = /^until (lifted|\S+)(?:: ([^]*))?$/.exec(each.before ?? "") ?? [];
  const ends = until && until !== "lifted" ? { until } : {};
  return /** @type {Record<string, any>} */ ({
    unsuspend: {
      title: `End the suspension of ${name}`,
      text: "Content that was visible before the suspension is visible again.",
      verb: "End suspension",
      path: `${player}/suspension`,
      body: { suspended: false },
    },
    suspend: {
      title: `Suspend ${name} again`,
      text: `Until ${until ?? "lifted"}${message ? `, with the message “${message}”` : ""}.`,
      verb: "Suspend",
      path: `${player}/suspension`,
      body: { suspended: true, ...ends, ...(message && { message }) },
      danger: true,
    },
    lock: {
      title: `Lock ${name} again`,
      text: "The player can’t change what others see: display name, avatar and listed replays.",
      verb: "Lock",
      path: `${player}/lock`,
      body: { locked: true },
    },
    unlock: {
      title: `Unlock ${name}`,
      text: "The player can again change what others see.",
      verb: "Unlock",
      path: `${player}/lock`,
      body: { locked: false },
    },
    show: {
      title: `Show the entry of ${name}`,
      text: "Applies to the leaderboard and all boards.",
      verb: "Show entry",
      path: `${player}/entry`,
      body: { visible: true },
    },
    hide: {
      title: `Hide the entry of ${name}`,
      text: "Applies to the leaderboard and all boards.",
      verb: "Hide entry",
      path: `${player}/entry`,
      body: { visible: false },
    },
    name: {
      title: `Rename the entry of ${name}`,
      text: `It is “${each.before}” again.`,
      verb: "Rename back",
      path: `${player}/entry`,
      body: { display_name: each.before },
    },
    rename: {
      title: `Change the username of ${name}`,
      text: `It is “${each.before}” again, unless another player has that name.`,
      verb: "Rename back",
      path: `${player}/username`,
      body: { username: each.before },
    },
    list_again: {
      title: "Release this replay",
      text: "It is listed again, unless the player has hidden it or is suspended.",
      verb: "List again",
      path: `${replay}/listed`,
      body: { listed: true },
    },
    unlist: {
      title: "Take this replay off public lists",
      text: "The player can’t list it again. Its own link still works.",
      verb: "Unlist",
      path: `${replay}/listed`,
      body: { listed: false },
    },
  })[each.inverse];
}

/** @param {any} each */
const undo = (each) =>
  each.inverse && actButton({ ...inverse(each), method: "PUT", reason: each.reason ?? "" }, load, "Undo …");

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
