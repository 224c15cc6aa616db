// @ts-check
/** The page of a player: facts, acts to perform, sessions, replays and history. */

import { read, ROOT } from "./api.js";
import {
  actButton,
  at,
  bdi,
  chip,
  confirm,
  factList,
  listing,
  nameOf,
  ownId,
  pages,
  publicPage,
  replayLink,
  section,
  show,
  when,
} from "./console.js";
import { byId, counted, h, score } from "./page.js";

const P = `/players/${ownId()}`;

/** Show a new reset link for the admin to copy. @param {{path: string, url: string | null, expires_at: string}} link */
function showLink({ path, url, expires_at: until }) {
  const field = h("input", { class: "link", id: "link", readonly: true, value: url ?? path });
  const copy = h(
    "button",
    {
      type: "button",
      class: "main",
      click: () => navigator.clipboard?.writeText(field.value).catch(() => field.select()),
    },
    "Copy",
  );
  const close = h("button", { type: "button", class: "plain", click: () => dialog.close() }, "Close");
  const dialog = h(
    "dialog",
    { "aria-labelledby": "link-title", close: () => dialog.remove() },
    h("h2", { id: "link-title" }, "Password reset link"),
    h(
      "p",
      {},
      url ? "Send" : "Add your site’s address in front, and send",
      " the link only to the player. It works once, until ",
      at(until),
      ".",
    ),
    h("label", { for: "link" }, url ? "Link" : "Path"),
    field,
    h("p", { class: "row" }, copy, close),
  );
  document.body.append(dialog);
  dialog.showModal();
  field.select();
}

/** @param {any} player @param {() => unknown} again */
function acts(player, again) {
  const name = player.username;
  const suspended = player.suspended_since !== null;
  const on = player.display_name !== null;
  const lasts = player.keyless ? " A guest without a key can’t sign in again." : "";
  const suspension = suspended
    ? {
        title: `End the suspension of ${name}`,
        text: "Content that was visible before the suspension is visible again.",
        verb: "End suspension",
        method: "PUT",
        path: `${P}/suspension`,
        body: { suspended: false },
      }
    : {
        title: `Suspend ${name}`,
        text: `Ends ${counted(player.sessions, "session")}, and hides the leaderboard entry and replays from other players.${lasts}`,
        verb: "Suspend",
        method: "PUT",
        path: `${P}/suspension`,
        body: { suspended: true },
        danger: true,
        fields: [
          { label: "Until", name: "until", kind: "time", hint: "optional; empty means until lifted" },
          { label: "Message", name: "message", hint: "optional; shown to the player" },
        ],
      };
  const lock = player.locked_since
    ? {
        title: `Unlock ${name}`,
        text: "The player can again change what others see.",
        verb: "Unlock",
        method: "PUT",
        path: `${P}/lock`,
        body: { locked: false },
      }
    : {
        title: `Lock ${name}`,
        text: "The player can’t change what others see: display name, avatar and listed replays.",
        verb: "Lock",
        method: "PUT",
        path: `${P}/lock`,
        body: { locked: true },
      };
  const profile = [
    on && {
      title: `Rename the entry of ${name}`,
      text: "Changes the display name on the leaderboard and all boards.",
      verb: "Rename entry",
      method: "PUT",
      path: `${P}/entry`,
      reason: "name",
      fields: [{ label: "Display name", name: "display_name", value: "A player" }],
    },
    on && {
      title: player.on_leaderboard ? `Hide the entry of ${name}` : `Show the entry of ${name}`,
      text: "Applies to the leaderboard and all boards.",
      verb: player.on_leaderboard ? "Hide entry" : "Show entry",
      method: "PUT",
      path: `${P}/entry`,
      body: { visible: !player.on_leaderboard },
    },
    player.avatar && {
      title: `Remove the avatar of ${name}`,
      text: "The player can upload another one, unless the profile is locked.",
      verb: "Remove avatar",
      method: "POST",
      path: `${P}/avatar/remove`,
      reason: "avatar",
    },
    {
      title: `Change the username of ${name}`,
      text: "The old username becomes available to others.",
      verb: "Change username",
      method: "PUT",
      path: `${P}/username`,
      reason: "name",
      fields: [{ label: "Username", name: "username", value: name }],
    },
    lock,
    {
      title: `Restore the progress of ${name}`,
      text: "Merges the progress of an export, as if a device pushed it. Nothing is lowered.",
      verb: "Restore progress",
      method: "POST",
      path: `${P}/progress/restore`,
      fields: [{ label: "Export of the player", name: "progress", value: player.id, kind: "progress" }],
    },
  ];
  const ending = {
    title: `End the sessions of ${name}`,
    text: `Ends ${counted(player.sessions, "session")}.${lasts}`,
    verb: "End sessions",
    method: "POST",
    path: `${P}/sessions/end`,
    fields: [{ label: "Also refuse access tokens, within a second", name: "access", kind: "check", value: "true" }],
  };
  const link = /** @type {any} */ ({
    title: `Restore access for ${name}`,
    text: "Creates a link with which the player can set a new password within an hour.",
    verb: "Create link",
    method: "POST",
    path: `${P}/password-link`,
    reason: "takeover",
    fields: [{ label: "End all other access immediately", name: "lock_out", kind: "check", value: "true" }],
  });
  const remove = /** @type {any} */ ({
    title: `Delete ${name}`,
    text: "Permanently deletes the account and all its data. Type the username to confirm.",
    verb: "Delete",
    method: "POST",
    path: `${P}/delete`,
    danger: true,
    fields: [{ label: "Username", name: "username" }],
  });
  const button = (/** @type {any} */ plan) => plan && actButton(plan, again);
  return h(
    "div",
    { class: "groups" },
    group(
      "Profile",
      ...profile.map(button),
      h("a", { class: "button", href: `${ROOT}${P}/export`, download: "" }, "Export"),
    ),
    group(
      "Access",
      button(suspension),
      button(ending),
      h(
        "button",
        { type: "button", click: () => confirm(link, (answer) => (showLink(answer), again())) },
        "Restore access …",
      ),
    ),
    group(
      "Danger",
      h(
        "button",
        { type: "button", class: "danger", click: () => confirm(remove, () => (location.href = "/players")) },
        "Delete …",
      ),
    ),
  );
}

/** Buttons for acts of one kind, with a heading. @param {string} title @param {(HTMLElement | null | false | "")[]} buttons */
const group = (title, ...buttons) =>
  h("div", { role: "group", "aria-label": title }, h("h2", {}, title), h("div", { class: "acts" }, ...buttons));

/** The player's replays, page by page. */
const replayPages = () =>
  pages("Replays", async (page) => {
    const { replays, next } = await read(`${P}/replays?${page}`);
    return [
      [
        section(
          "Replays",
          ["Replay", "Received", "Score", "Verdict", "Finding", "Visibility"],
          replays.map((/** @type {any} */ each) => [
            replayLink(each.id),
            when(each.received_at),
            each.final_score,
            chip(each.verdict),
            bdi(each.finding),
            listing(each),
          ]),
          "The player has no replays.",
        ),
      ],
      next,
    ];
  });

/** The games that the player's devices have sent by their ids, page by page. */
const gamePages = () =>
  pages("Games", async (page) => {
    const { games, next } = await read(`${P}/games?${page}`);
    return [
      [
        section(
          "Games",
          ["Ended", "Counted", "Mode", "Result", "Score", "Seconds", "XP"],
          games.map((/** @type {any} */ each) => [
            when(each.ended_at),
            when(each.counted_at),
            `${each.mode}, ${each.draw_mode}`,
            each.won ? "won" : "lost",
            score(each.score),
            each.seconds,
            each.xp,
          ]),
          "The player's devices have sent no game by its id: they push totals.",
        ),
      ],
      next,
    ];
  });

/** The player's events and acts, page by page. */
const historyPages = () =>
  pages("History", async (page) => {
    const { history, next } = await read(`${P}/history?${page}`);
    return [
      [
        section(
          "History",
          ["Event", "When", "Address or actor", "Reason and changes"],
          history.map((/** @type {any} */ each) => [
            each.times > 1 ? `${each.what} (${each.times} times)` : each.what,
            when(each.at),
            each.by ? nameOf(each.by) : each.client,
            bdi(
              [each.reason, [each.before, each.after].filter(Boolean).join(" → "), each.note]
                .filter(Boolean)
                .join("; "),
            ),
          ]),
          "No history is stored for this player.",
        ),
      ],
      next,
    ];
  });

const again = show(async () => {
  const lists = [replayPages(), gamePages(), historyPages()];
  const [player, { sessions }] = await Promise.all(["", "/sessions"].map((part) => read(P + part)));
  byId("title").replaceChildren(bdi(player.username));
  document.title = `${player.username} – solisync console`;
  const facts = factList([
    ["Registered", when(player.created_at)],
    ["Last push", when(player.pushed_at)],
    ["Games won", player.games_won === null ? "–" : `${score(player.games_won)} of ${score(player.games_played)}`],
    ["Level", player.level],
    ["Display name", bdi(player.display_name)],
    ["On the leaderboard", player.on_leaderboard ? "yes" : "no"],
    [
      "Best score",
      player.best_score === null
        ? "–"
        : h(
            "span",
            { class: "row" },
            score(player.best_score),
            player.best_replay_id && player.best_verdict !== "verified"
              ? h("a", { href: `/replays/${player.best_replay_id}` }, chip(player.best_verdict))
              : chip(player.best_verdict ?? "no replay"),
          ),
    ],
    ["Replays", `${score(player.replays)}, ${score(Math.ceil(player.replay_bytes / 1024))} KiB`],
    ["Public page", publicPage(player.page)],
    ["ID", h("code", {}, player.id)],
  ]);
  const states = [
    player.guest && h("p", { class: "quiet" }, "A guest: an account without a password."),
    player.suspended_since &&
      h(
        "p",
        { class: "refused" },
        "Suspended ",
        when(player.suspended_since),
        player.suspended_until ? h("span", {}, ", until ", when(player.suspended_until)) : ", until lifted",
        player.suspension_message && h("span", {}, ": ", bdi(player.suspension_message)),
      ),
    player.locked_since && h("p", { class: "refused" }, "Locked ", when(player.locked_since)),
  ].filter(Boolean);
  const picture =
    player.avatar &&
    h("img", { loading: "lazy", width: "64", height: "64", src: `${ROOT}${P}/avatar`, alt: "Avatar", class: "avatar" });
  return [
    ...(picture ? [picture] : []),
    ...states,
    facts,
    acts(player, again),
    section(
      "Sessions",
      ["Browser or game", "Started", "Last used"],
      sessions.map((/** @type {any} */ each) => [bdi(each.user_agent), when(each.begun_at), when(each.used_at)]),
      "The player isn’t signed in anywhere.",
    ),
    h("p", { class: "quiet" }, "Sessions are stored without an address. The history has the address of each sign-in."),
    ...lists,
  ];
});
