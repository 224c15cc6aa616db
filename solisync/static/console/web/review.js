// @ts-check
/** The review page: new names, avatars and players, and leaderboard entries that no replay proves. */

import { act, read, ROOT } from "./api.js";
import { actButton, bdi, chip, nameOf, pages, playerLink, replayLink, section, when } from "./console.js";
import { byId, counted, h, score, tell } from "./page.js";
import { selection, suspendButton } from "./selection.js";

/** @type {Record<Exclude<typeof import("./console_facts.js").KINDS[number], "replays">, string> & {entries: string}} */
const KINDS = { names: "Names", avatars: "Avatars", players: "New players", entries: "Unproven scores" };

const asked = new URLSearchParams(location.search);
const kind = /** @type {keyof typeof KINDS} */ (
  Object.hasOwn(KINDS, asked.get("kind") ?? "") ? asked.get("kind") : "names"
);
const all = asked.get("seen") === "all";

const tabs = h(
  "nav",
  { "aria-label": "What to review" },
  ...Object.entries(KINDS).map(([value, text]) =>
    h("a", { href: `/review?kind=${value}`, class: "button", "aria-current": value === kind && "page" }, text),
  ),
);
const other = h(
  "p",
  {},
  all
    ? h("a", { href: `/review?kind=${kind}` }, "Show only what is new")
    : h("a", { href: `/review?kind=${kind}&seen=all` }, "Show what was seen, too"),
);

/** @param {any} each */
const rename = (each) =>
  actButton(
    {
      title: `Rename the entry of ${each.username}`,
      text: "Changes the display name on the leaderboard and all boards.",
      verb: "Rename",
      method: "PUT",
      path: `/players/${each.id}/entry`,
      reason: "name",
      fields: [{ label: "Display name", name: "display_name", value: "A player" }],
    },
    again,
  );

/** @param {any} each */
const remove = (each) =>
  actButton(
    {
      title: `Remove the avatar of ${each.username}`,
      text: "The player can upload another one, unless the profile is locked.",
      verb: "Remove",
      method: "POST",
      path: `/players/${each.id}/avatar/remove`,
      reason: "avatar",
    },
    again,
  );

/** Mark rows as seen, or as new again. @param {any[]} rows @param {boolean} seen */
async function mark(rows, seen) {
  await act("PUT", "/review/seen", { kind, items: rows.map((each) => each.event ?? each.id), seen });
  tell(`${counted(rows.length, "item")} marked as ${seen ? "seen" : "new"}.`);
  again();
  byId("main").focus({ preventScroll: true });
}

/** @param {any[]} rows */
function buttons(rows) {
  const ids = [...new Set(rows.map((each) => each.user_id ?? each.id))];
  return rows.length
    ? [
        h(
          "button",
          { type: "button", class: "main", click: () => mark(rows, true) },
          `Mark ${score(rows.length)} as seen`,
        ),
        all && h("button", { type: "button", click: () => mark(rows, false) }, `Mark ${score(rows.length)} as new`),
        suspendButton(ids, again),
      ]
    : [];
}

/** @param {any} answer */
function shown({ profiles, players, entries }) {
  const { box, bar } = selection(buttons);
  const seen = (/** @type {any} */ each) => (all ? [each.seen_by ? nameOf(each.seen_by) : "–"] : []);
  const more = all ? ["Seen by"] : [];
  const none = all ? "" : " Nothing is new.";
  switch (kind) {
    case "avatars":
      return [
        profiles.length
          ? h(
              "ul",
              { class: "grid" },
              ...profiles.map((/** @type {any} */ each) =>
                h(
                  "li",
                  {},
                  h("img", {
                    loading: "lazy",
                    width: "112",
                    height: "112",
                    src: `${ROOT}/players/${each.id}/avatar`,
                    alt: `Avatar of ${each.username}`,
                  }),
                  playerLink(each.id, each.username),
                  ...(each.seen_by ? [h("span", { class: "quiet" }, "seen by ", bdi(each.seen_by))] : []),
                  h("span", { class: "row" }, box(each, each.username), remove(each)),
                ),
              ),
            )
          : h("p", { class: "quiet" }, `No player has uploaded an avatar recently.${none}`),
        bar,
      ];
    case "players":
      return [
        section(
          "New players",
          ["Player", "Address", "Display name", "Registered", ...more, "Select"],
          players.map((/** @type {any} */ each) => [
            playerLink(each.id, each.username),
            each.client && h("a", { href: `/players?where=address&q=${encodeURIComponent(each.client)}` }, each.client),
            nameOf(each.display_name),
            when(each.at),
            ...seen(each),
            box(each, each.username),
          ]),
          `No player has registered recently.${none}`,
        ),
        bar,
      ];
    case "entries":
      return [
        section(
          "Best scores that no replay proves",
          ["Player", "Display name", "Score", "Since", "Replay with this score", "Finding", ...more, "Select"],
          entries.map((/** @type {any} */ each) => [
            playerLink(each.user_id, each.username),
            nameOf(each.display_name),
            score(each.best_score),
            when(each.recorded_at),
            each.replay_id ? h("span", { class: "row" }, replayLink(each.replay_id), chip(each.verdict)) : "none",
            bdi(each.finding),
            ...seen(each),
            box(each, each.username),
          ]),
          `Replays prove all of the first hundred scores.${none}`,
        ),
        bar,
      ];
    default:
      return [
        section(
          "Names",
          ["Player", "Display name", "When", "Rename", ...more, "Select"],
          profiles.map((/** @type {any} */ each) => [
            playerLink(each.id, each.username),
            nameOf(each.display_name),
            when(each.at),
            rename(each),
            ...seen(each),
            box(each, each.username),
          ]),
          `No player has chosen a name recently.${none}`,
        ),
        bar,
      ];
  }
}

function again() {
  const list = pages(KINDS[kind], async (page) => {
    const answer = await read(`/review?kind=${kind}${all ? "&seen=all" : ""}${page}`);
    return [shown(answer), answer.next];
  });
  byId("place").replaceChildren(tabs, other, list);
  byId("place").removeAttribute("aria-busy");
}
again();
