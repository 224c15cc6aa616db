// @ts-check
/** /replays/<id>: the result, the game to watch, other wins of the deal, and the owner's actions. */

import { ask, me, read, readOwn } from "./api.js";
import { local, own as kept, Refusal, username } from "./http.js";
import { byId, fill, h, played, refuse, signInPath, tell } from "./page.js";
import { Player } from "./playback.js";

const { replay, verdict } = JSON.parse(byId("data").textContent);
const COLOURS = "solisync.colours";
const CHECKED = "solisync.checked";
const path = `/api/replays/${replay.id}`;

/** Reload the page if there is a verdict now: the server's HTML has its text. */
async function look() {
  const { status } = await read(`${path}/verdict`).catch(() => verdict);
  if (status === "pending") return;
  kept?.setItem(CHECKED, replay.id);
  location.reload();
}

/** Whether live events report the verdict. */
let told = () => false;

/** Ask for the verdict less and less often, until the page reloads. @param {number} seconds */
function waitForVerdict(seconds) {
  setTimeout(async () => {
    if (!told()) await look();
    waitForVerdict(Math.min(seconds * 1.6, 60));
  }, seconds * 1000);
}

/** Follow live events for the verdict if the signed-in player has uploaded the game. */
async function hearVerdict() {
  if (!username() || (await me()).username !== replay.username) return;
  const { follow, streaming } = await import("./live.js");
  told = streaming;
  follow(look, ({ event, data }) => event === "verdict" && data.replay_id === replay.id);
}

/** Load the timeline and start playback. */
async function open() {
  const place = byId("player");
  place.setAttribute("aria-busy", "true");
  try {
    const timeline = await read(`${path}/timeline`);
    const move = new URL(location.href).searchParams.get("move");
    player = new Player(timeline, Number(move ?? 0), remember);
    place.classList.add("ready");
    if (move) byId("board").focus({ preventScroll: true });
  } catch (error) {
    const long = error instanceof Refusal && error.code === "not_playable";
    if (long) byId("why").textContent = "This game is verified, but it has too many moves to play back here.";
    else refuse(byId("why"), error, open);
  } finally {
    place.removeAttribute("aria-busy");
  }
}

/** @type {Player | undefined} */
let player;
let later = 0;

/** The address of this page at a move. @param {number} move */
const address = (move) => location.pathname + (move ? `?move=${move}` : "");

/** Store the move in the address, with a delay because browsers limit how often. @param {number} move */
function remember(move) {
  clearTimeout(later);
  later = setTimeout(() => history.replaceState(null, "", address(move)), 200);
}

async function copyLink() {
  const link = new URL(address(player?.move ?? 0), location.href).href;
  try {
    await navigator.clipboard.writeText(link);
    tell(player?.move ? `Link to move ${player.move} copied.` : "Link copied.");
  } catch {
    // plain HTTP has no clipboard
    const field = h("input", { value: link, readonly: true, "aria-label": "Link" });
    byId("copied").replaceChildren(field);
    field.select();
  }
}

/** Show other wins of this deal to signed-in players. */
async function others() {
  const place = byId("others");
  if (replay.deal === null) return;
  place.hidden = false;
  byId("others-sign-in").href = signInPath();
  if (!username()) return;
  await fill(place.querySelector("div"), async () => {
    const { entryTable } = await import("./entries.js");
    const { entries } = await readOwn(`/api/boards/deals/${replay.deal}/${replay.draw_mode}`);
    if (!entries.length) return [h("p", { class: "quiet" }, "No player on the leaderboard has won this deal yet.")];
    return [entryTable(entries, "Best score first", { shown: replay.id })];
  });
}

/** Show the owner's actions. */
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
      tell(listed.checked ? "This game is public now." : "This game is no longer public.");
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

byId("played").replaceChildren(played(replay));
own().catch(() => {}); // an error leaves the page of a visitor
byId("copy").onclick = copyLink;
byId("help-open").onclick = () => byId("help").showModal();
const colours = byId("colours");
colours.checked = local?.getItem(COLOURS) === "four";
colours.onchange = () => {
  document.body.classList.toggle("four", colours.checked);
  local?.setItem(COLOURS, colours.checked ? "four" : "two");
};
colours.onchange();
addEventListener("session", () => own().catch(() => {}));
if (verdict.status === "pending") {
  waitForVerdict(2);
  hearVerdict().catch(() => {});
} else if (kept?.getItem(CHECKED) === replay.id) {
  kept?.removeItem(CHECKED);
  tell(byId("verdict").textContent);
}

/** The day whose deal this is, while its solution is hidden from the player; the owner sees it. */
async function hiddenDay() {
  if (replay.deal === null || replay.username === username()) return null;
  const { dayOf } = await import("./days.js");
  const day = await dayOf(replay.deal);
  if (!day) return null;
  const { hiddenDeals } = await import("./solutions.js");
  return (await hiddenDeals({ [day.date]: replay.deal })).get(replay.deal) ?? null;
}

/** Show the game, unless it would give away a deal that the player can still win. */
async function openUnlessHidden() {
  const day = await hiddenDay().catch(() => null);
  if (!day) return open();
  const { countsUntil } = await import("./solutions.js");
  byId("why").replaceChildren(
    `This is a win of the day’s deal. You can watch it when you have won the deal, or after ${countsUntil(day)}. `,
    h("a", { class: "button main", href: `/play?daily=${day}` }, "Play the deal"),
  );
  byId("player").classList.add("closed");
}

await Promise.all([verdict.status === "verified" && openUnlessHidden(), others()]);
