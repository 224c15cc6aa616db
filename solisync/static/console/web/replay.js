// @ts-check
/** The page of a replay: its verdict, acts to perform, and other players' replays of the same game. */

import { read, ROOT } from "./api.js";
import {
  actButton,
  bdi,
  chip,
  confirm,
  factList,
  listing,
  nameOf,
  ownId,
  playerLink,
  publicPage,
  replayLink,
  section,
  show,
  when,
} from "./console.js";
import { h, words } from "./page.js";

const R = `/replays/${ownId()}`;

const again = show(async () => {
  const replay = await read(R);
  const facts = factList([
    ["Player", playerLink(replay.user_id, replay.username)],
    ["Verdict", h("span", {}, chip(replay.status), replay.reason && ` ${replay.reason}`)],
    ["Claimed score", replay.final_score],
    ["Proven score", replay.score],
    ["Undos", replay.undos],
    ["Moves", replay.moves],
    ["Mode", `${words(replay.mode)}, ${words(replay.draw_mode)}`],
    ["Time (seconds)", replay.time_seconds],
    ["Visibility", listing(replay)],
    ["Received", when(replay.received_at)],
    ["Checked", when(replay.checked_at)],
    ["Queue", replay.queue],
    ["Public page", publicPage(replay.page)],
    ["Deal", replay.seed && h("code", {}, replay.seed)],
  ]);
  const plan = (/** @type {any} */ more) => ({ method: "POST", body: {}, ...more });
  const remove = plan({
    title: "Delete this replay",
    text: "Permanently deletes the replay. The player’s best score stays on the leaderboard.",
    verb: "Delete",
    path: `${R}/delete`,
    danger: true,
  });
  const hold = plan({
    title: replay.listed ? "Take this replay off public lists" : "Keep this replay off public lists",
    text: "The player can’t list it again. Its own link still works.",
    verb: replay.listed ? "Unlist" : "Hold",
    method: "PUT",
    path: `${R}/listed`,
    body: { listed: false },
  });
  const release = plan({
    title: "Release this replay",
    text: "It is listed again, unless the player has hidden it or is suspended.",
    verb: "List again",
    method: "PUT",
    path: `${R}/listed`,
    body: { listed: true },
  });
  return [
    ...(replay.finding ? [h("p", { id: "finding", class: "refused" }, bdi(replay.finding))] : []),
    facts,
    h(
      "div",
      { class: "acts" },
      actButton(replay.held ? release : hold, again),
      actButton(
        plan({
          title: "Check this replay again",
          text: "This check runs before all others. The current verdict stays until it ends.",
          verb: "Check again",
          path: `${R}/check`,
          body: { again: true },
          reason: "cheating",
        }),
        again,
      ),
      (replay.status === "verified" || replay.proved) &&
        h("a", { class: "button", href: `/replays/${replay.id}/watch` }, "Watch"),
      h("a", { class: "button", href: `${ROOT}${R}/body`, download: `${replay.id}.json` }, "Download"),
      h(
        "button",
        {
          type: "button",
          class: "danger",
          click: () => confirm(remove, () => (location.href = `/players/${replay.user_id}`)),
        },
        "Delete …",
      ),
    ),
    section(
      "Same game by other players",
      ["Replay", "Player", "Received"],
      replay.same_game.map((/** @type {any} */ each) => [
        replayLink(each.replay_id),
        nameOf(each.username),
        when(each.received_at),
      ]),
      "No other player has a verified replay with the same moves.",
    ),
  ];
});
