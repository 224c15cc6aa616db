// @ts-check
/** The player's own games on /account, to publish, hide and delete. */

import { ask, readOwn } from "./api.js";
import { attempt } from "./forms.js";
import { follow } from "./live.js";
import { byId, clock, h, played, score, table, tell, words } from "./page.js";
import { verdictMark } from "./replay_table.js";

/** @typedef {{id: string, deal: string | null, draw_mode: string, mode: string, time_seconds: number, final_score: number,
 *   recorded_at: string, received_at: string, listed: boolean, size: number, verdict: string}} Game */

/** @type {string | null} */
let next = null;

/** Delete a game after a confirmation. @param {string} question @param {string} path @param {() => void} done */
function askAndDelete(question, path, done) {
  const refused = h("div", { id: "game-refused" });
  const go = () =>
    attempt(refused, async () => {
      await ask("DELETE", path);
      dialog.close();
      done();
    });
  const dialog = h(
    "dialog",
    { "aria-label": question, close: () => dialog.remove() },
    h("h2", {}, question),
    h("p", {}, "Its link will stop working, and it will disappear from the leaderboard. This can’t be undone."),
    refused,
    h(
      "form",
      { method: "dialog", class: "row" },
      h("button", {}, "Keep it"),
      h("button", { type: "button", class: "danger", id: "game-delete", click: go }, "Delete"),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
}

/** @param {Game} game */
function gameRow(game) {
  const refused = h("div");
  const path = `/api/replays/${game.id}`;
  const name = `${score(game.final_score)} points`;
  const listed = h("input", {
    type: "checkbox",
    "aria-label": `Public: ${name}`,
    change: () => {
      const wanted = listed.checked;
      attempt(refused, async () => {
        listed.checked = wanted;
        await ask("PUT", `${path}/listed`, { json: { listed: wanted } }).catch((error) => {
          listed.checked = !wanted;
          throw error;
        });
        tell(wanted ? "This game is public now." : "This game is no longer public.");
      });
    },
  });
  listed.checked = game.listed;
  const remove = h(
    "button",
    {
      type: "button",
      class: "danger plain",
      "aria-label": `Delete ${name}`,
      click: () => {
        askAndDelete(`Delete the game with ${name}?`, path, () => {
          row.remove();
          byId("games-heading").focus();
          tell("The game was deleted.");
        });
      },
    },
    "Delete",
  );
  const row = h(
    "tr",
    {},
    h("th", {}, h("a", { href: `/replays/${game.id}` }, name)),
    h("td", { class: "number" }, clock(game.time_seconds)),
    h("td", {}, `${words(game.draw_mode)}, ${words(game.mode)}`),
    h("td", {}, verdictMark(game.verdict)),
    h("td", {}, played(game)),
    h("td", {}, h("label", { class: "check" }, listed, "Public"), refused),
    h("td", {}, remove),
  );
  return row;
}

/** Show the newest games, or add older ones below. @param {boolean} further */
export async function loadGames(further) {
  const place = byId("games");
  const before = further ? [...place.querySelectorAll("tbody tr")] : [];
  const query = further && next ? `&before=${encodeURIComponent(next)}` : "";
  await attempt(further ? byId("more-refused") : place, async () => {
    const page = await readOwn(`/api/me/replays?limit=20${query}`);
    next = page.next;
    const rows = [...before, ...page.replays.map(gameRow)];
    const heads = ["Score", "Time", "Game", "Check", "Played", "Public", "Delete"];
    place.replaceChildren(
      rows.length
        ? table("Newest first", heads, rows)
        : h(
            "p",
            { class: "quiet" },
            "No games yet. ",
            h("a", { href: "/play" }, "Play here"),
            ", or in a game where you are signed in, and every win is uploaded.",
          ),
    );
    byId("more-place").hidden = !next;
  });
}

/** Show new verdicts in the rows of their games. */
async function refresh() {
  const page = await readOwn("/api/me/replays?limit=20");
  for (const game of /** @type {Game[]} */ (page.replays)) {
    const row = byId("games").querySelector(`a[href="/replays/${game.id}"]`)?.closest("tr");
    if (!row) return loadGames(false); // a new game
    row.querySelector(".mark").replaceWith(verdictMark(game.verdict));
  }
}

byId("more").onclick = () => loadGames(true);
follow(refresh, ({ event }) => event === "verdict");
