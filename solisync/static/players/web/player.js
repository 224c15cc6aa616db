// @ts-check
/** /players/<name>: a player's public games. The newest are in the HTML; the script loads older ones below them. */

import { read } from "./api.js";
import { attempt } from "./forms.js";
import { byId, clock, face, h, played, score, words } from "./page.js";
import { verdictMark } from "./replay_table.js";

const { username: name, avatar_url: path, next: first } = JSON.parse(byId("data").textContent);
const rows = /** @type {HTMLElement} */ (document.querySelector("#list tbody"));
/** @type {string | null} */
let next = first;

/** @param {any} replay */
const row = (replay) =>
  h(
    "tr",
    {},
    h("th", {}, h("a", { href: `/replays/${replay.id}` }, `${score(replay.final_score)} points`)),
    h("td", { class: "number" }, clock(replay.time_seconds)),
    h("td", {}, verdictMark(replay.verdict)),
    h("td", {}, words(replay.draw_mode)),
    h("td", {}, words(replay.mode)),
    h("td", {}, played(replay)),
  );

byId("more").onclick = () =>
  attempt(byId("more-refused"), async () => {
    const page = await read(`/api/players/${name}/replays?before=${next}`);
    next = page.next;
    rows.append(...page.replays.map(row));
    byId("more-place").hidden = !next;
  });
for (const time of /** @type {NodeListOf<HTMLTimeElement>} */ (rows.querySelectorAll("time")))
  time.replaceWith(played({ recorded_at: time.dateTime, received_at: time.dataset.received ?? "" }));
byId("face").append(face(name, Promise.resolve(path)));
