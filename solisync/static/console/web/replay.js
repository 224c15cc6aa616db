// @ts-check
/** A replay: its verdict, who else has played the same game, and what can be done. */

import { read, ROOT } from "./api.js";
import { actButton, confirm, factList, listing, nameOf, ownId, playerLink, replayLink, section, show, when } from "./console.js";
import { h, words } from "./page.js";

const R = `/replays/${ownId()}`;

const again = show(async () => {
  const replay = await read(R);
  const facts = factList([
    ["Player", playerLink(replay.user_id, replay.username)],
    ["Verdict", replay.reason ? `${replay.status} (${replay.reason})` : replay.status],
    ["Score claimed", replay.final_score],
    ["Score proved", replay.score],
    ["Undos", replay.undos],
    ["Moves", replay.moves],
    ["Mode", `${words(replay.mode)}, ${words(replay.draw_mode)}`],
    ["Seconds", replay.time_seconds],
    ["Lists", listing(replay)],
    ["Received", when(replay.received_at)],
    ["Checked", when(replay.checked_at)],
    ["Waits for", replay.queue],
    ["Deal", replay.seed && h("code", {}, replay.seed)],
  ]);
  const plan = (/** @type {any} */ more) => ({ method: "POST", body: {}, ...more });
  const remove = plan({ title: "Delete this replay", text: "It is gone for good; a best on the leaderboard stays.", verb: "Delete", path: `${R}/delete`, danger: true });
  const hold = plan({ title: replay.listed ? "Take this replay off the lists" : "Keep this replay off the lists", text: "The player can’t list it again. It stays under its own link.", verb: replay.listed ? "Unlist" : "Hold", method: "PUT", path: `${R}/listed`, body: { listed: false }, undo: { listed: true } });
  const release = plan({ title: "Hold this replay no longer", text: "It is listed again, unless the player has hidden it or is suspended.", verb: "List again", method: "PUT", path: `${R}/listed`, body: { listed: true }, undo: { listed: false } });
  return [
    facts,
    h(
      "div",
      { class: "acts" },
      actButton(replay.held ? release : hold, again),
      actButton(plan({ title: "Check this replay again", text: "Before all others; the old verdict stays until then.", verb: "Check again", path: `${R}/check`, body: { again: true }, reason: "cheating" }), again),
      replay.status === "verified" && h("a", { class: "button", href: `/replays/${replay.id}/watch` }, "Watch"),
      h("a", { class: "button", href: `${ROOT}${R}/body`, download: `${replay.id}.json` }, "Download"),
      h("button", { type: "button", class: "danger", click: () => confirm(remove, () => (location.href = `/players/${replay.user_id}`)) }, "Delete …"),
    ),
    section("The same game of others", ["Replay", "Player", "Received"], replay.same_game.map((/** @type {any} */ each) => [replayLink(each.replay_id), nameOf(each.username), when(each.received_at)]), "No other player has a verified replay with the same moves."),
  ];
});
