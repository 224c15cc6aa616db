// @ts-check
/** Tables of replays, and the marks of their verdicts. */

import { clock, h, initial, played, score, table, words } from "./page.js";

const MARKS = /** @type {Record<string, string>} */ ({
  verified: "✓ Verified",
  pending: "Checking …",
  refuted: "✗ Score rejected",
});

/** The mark of a verdict. @param {string} verdict */
export const verdictMark = (verdict) => h("span", { class: `mark ${verdict}` }, MARKS[verdict] ?? "Not verified");

/** A table of replays. @param {any[]} replays @param {string | null} [today] today's deal */
export function replayTable(replays, today = null) {
  const row = (/** @type {any} */ replay) =>
    h(
      "tr",
      {},
      h("th", {}, h("a", { href: `/replays/${replay.id}` }, initial(replay.username), replay.username)),
      h("td", { class: "number" }, score(replay.final_score)),
      h("td", { class: "number" }, clock(replay.time_seconds)),
      h("td", {}, verdictMark(replay.verdict)),
      h("td", {}, words(replay.draw_mode)),
      h(
        "td",
        {},
        words(replay.mode),
        today !== null && replay.deal === today && h("b", { class: "tag" }, "Today’s deal"),
      ),
      h("td", {}, played(replay)),
    );
  const heads = ["Player", "Score", "Time", "Check", "Draw", "Mode", "Played"];
  return table("Replays, newest first", heads, replays.map(row), true);
}
