// @ts-check
/** /replays/<id>: who won how, the game to watch, and what its owner can do with it. */

import { ask, me, read, readOwn } from "./api.js";
import { Refusal, username } from "./http.js";
import { byId, clock, counted, fill, h, played, refuse, say, score, signInPath, tell, words } from "./page.js";
import { Player } from "./playback.js";

const { replay, verdict } = JSON.parse(byId("data").textContent);
const path = `/api/replays/${replay.id}`;

/** Why there is nothing to play, by the verdict's status and reason. */
const STATUS = /** @type {Record<string, string>} */ ({
  pending: "This game is still being checked; it can be watched as soon as that is done.",
  refuted: "This game can’t be confirmed, so there is nothing to watch:",
  undecided: "This game could not be confirmed or refuted, so there is nothing to watch:",
  unreadable: "This replay can’t be played back:",
});
const REASON = /** @type {Record<string, string>} */ ({
  no_seed: "it does not say which deal was played.",
  no_moves: "it has no moves, as uploaded by a client that does not record them.",
  shape: "its moves are not written in a way that is known here.",
  illegal_move: "a move in it breaks the rules, with any number of moves taken back.",
  not_won: "its moves do not lead to a win.",
  score: "its moves lead to a win, but with another score.",
  no_explanation: "no number of moves taken back turns its moves into a win with this score.",
  budget: "moves must have been taken back in it, and finding out which would take too long.",
  crashed: "the check failed on it.",
  seed_rounded: "the number of its deal looks rounded, so its moves may belong to another deal.",
});

/** The verdict as a sentence. @param {any} told */
function judged(told) {
  if (told.status !== "verified") return [STATUS[told.status], REASON[told.reason] ?? ""].join(" ").trim();
  const points = `${score(told.score)} points`;
  if (!told.undos) return `Verified: played on this deal, these moves win with exactly ${points}.`;
  return `Verified with ${counted(told.undos, "move")} taken back: recordings leave that out, and with so many taken back`
    + ` where marked, these moves win with exactly ${points}.`;
}

/** @param {any} told */
function showVerdict(told) {
  const claim = told.status === "refuted" ? "claims" : "won with";
  byId("title").textContent = `${replay.username} ${claim} ${counted(replay.final_score, "point")}`;
  byId("verdict").textContent = judged(told);
  byId("verdict").dataset.status = told.status;
  byId("moves").textContent = told.moves === null ? "" : counted(told.moves, "move") + (told.undos ? `, ${told.undos} taken back` : "");
}

/** Ask again for the verdict of a game that is being checked, ever less often. @param {number} seconds */
function waitForVerdict(seconds) {
  setTimeout(async () => {
    const told = await read(`${path}/verdict`).catch(() => verdict);
    if (told.status === "pending") return waitForVerdict(Math.min(seconds * 1.6, 60));
    showVerdict(told);
    say(judged(told));
    await open(told);
  }, seconds * 1000);
}

/** Load and open the player, if there is a game to watch. @param {any} told the verdict */
async function open(told) {
  if (told.status !== "verified") return;
  try {
    const timeline = await read(`${path}/timeline`);
    byId("player").hidden = byId("moves-list").hidden = false;
    const { searchParams } = new URL(location.href);
    player = new Player(timeline, Number(searchParams.get("move") ?? 0), remember);
    byId("felt").hidden = true;
    byId("why").replaceChildren();
  } catch (error) {
    const long = error instanceof Refusal && error.code === "not_playable";
    if (long) byId("why").textContent = "This game is verified, but has too many moves to be shown here.";
    else refuse(byId("why"), error, () => open(told));
  }
}

/** @type {Player | undefined} */
let player;
let later = 0;

/** The address of the page at a move. @param {number} move */
const address = (move) => location.pathname + (move ? `?move=${move}` : "");

/** Keep the move in the address. Browsers allow that only so often. @param {number} move */
function remember(move) {
  clearTimeout(later);
  later = setTimeout(() => history.replaceState(null, "", address(move)), 200);
}

async function copyLink() {
  const link = new URL(address(player?.move ?? 0), location.href).href;
  try {
    await navigator.clipboard.writeText(link);
    tell(player?.move ? `Link to move ${player.move} copied` : "Link copied");
    byId("copied").textContent = "Copied";
  } catch {
    // over plain HTTP there is no clipboard
    const field = h("input", { value: link, readonly: true, "aria-label": "Link" });
    byId("copied").replaceChildren(field);
    field.select();
  }
}

function summarize() {
  const facts = /** @type {Record<string, string>} */ ({
    score: score(replay.final_score), time: clock(replay.time_seconds), draw: words(replay.draw_mode),
    mode: words(replay.mode), deal: replay.deal ?? "unknown",
  });
  for (const [id, text] of Object.entries(facts)) byId(id).textContent = text;
  byId("played").replaceChildren(played(replay.recorded_at));
  showVerdict(verdict);
  const download = byId("download");
  download.href = path;
  download.download = `solisync-${replay.id}.json`;
}

/** Other wins of this deal, which players see who are signed in. */
async function others() {
  const place = byId("others");
  if (replay.deal === null) return;
  place.hidden = false;
  byId("others-sign-in").href = signInPath();
  if (!username()) return;
  await fill(place.querySelector("div"), async () => {
    const { entryTable } = await import("./entries.js");
    const { entries } = await readOwn(`/api/boards/deals/${replay.deal}/${replay.draw_mode}`);
    if (!entries.length) return [h("p", { class: "quiet" }, "Nobody on the boards has won this deal yet.")];
    return [entryTable(entries, "Best score first", replay.id)];
  });
}

/** What its owner can do. */
async function own() {
  const place = byId("own");
  place.hidden = !username() || (await me()).username !== replay.username;
  if (place.hidden) return;
  const listed = byId("listed");
  const refused = byId("own-refused");
  listed.checked = replay.listed;
  listed.onchange = async () => {
    try {
      refused.replaceChildren();
      await ask("PUT", `${path}/listed`, { json: { listed: listed.checked } });
      tell(listed.checked ? "Listed" : "Not listed any more");
    } catch (error) {
      const wanted = listed.checked;
      listed.checked = !wanted;
      refuse(refused, error, () => ((listed.checked = wanted), listed.onchange()));
    }
  };
  byId("delete").onclick = () => byId("delete-dialog").showModal();
  byId("really").onclick = async function remove() {
    try {
      await ask("DELETE", path);
      location.assign("/account");
    } catch (error) {
      refuse(byId("delete-refused"), error, remove);
    }
  };
}

summarize();
own().catch(() => {}); // who can't be told apart from others gets what others get
byId("copy").onclick = copyLink;
byId("help-open").onclick = () => byId("help").showModal();
byId("colours").onchange = () => document.body.classList.toggle("four", byId("colours").checked);
addEventListener("session", () => own().catch(() => {}));
if (verdict.status === "pending") waitForVerdict(2);
await Promise.all([open(verdict), others()]);
