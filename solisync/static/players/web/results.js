// @ts-check
/** Finished games on /play: journal, upload, verdict and rank, and games that were played signed out. */

import { read, readOwn } from "./api.js";
import { Refusal, username } from "./http.js";
import { enter, GUEST, handOver, journalOf, journals, localTime } from "./journal.js";
import { byId, clock, counted, countDown, h, say, sentence, tell } from "./page.js";

/** @typedef {import("./game.js").Game} Game */

const outbox = () => import("./outbox.js");
const BOARD_HOURS = 36;
const NAMELESS = " to appear on the boards.";

/** @type {Game} */
let game;
/** @type {Record<string, () => void>} */
let next = {};
/** @type {any} the verdict on the upload of this game, or with `error` the reason why it is unknown */
let verdict = null;
let rank = "";
/** Ask for the verdict now. */
let ask = () => {};
/** @type {Set<string>} the events that this page follows */
const followed = new Set();

/** Enter a finished game, and send it. @param {Game} game @param {boolean} won */
export async function entered(game, won) {
  const { id, score, seconds, draw, day, undoPlaces } = game;
  const now = new Date();
  const body = won ? game.upload(now.toISOString().slice(0, 10)) : null;
  await enter({ id, at: localTime(now), won, score: won ? score : 0, seconds, draw, undone: undoPlaces.length > 0, day }, body, game.player);
  await sent();
}

/** Send the journal if a player is signed in. */
async function sent() {
  if (!username()) return render();
  const { settle } = await outbox();
  await settle();
  render();
}

/** Show and enter a game that was just won. @param {Game} game */
export async function won(game) {
  showWin(game);
  byId("won-heading").focus();
  await entered(game, true);
}

/** Handle a new or resumed game. Return false if it has already been left, just before the page was. @param {Game} begun */
export async function opened(begun) {
  if (!begun.won && (await journals()).known.includes(begun.id)) return false;
  game = begun;
  verdict = null;
  rank = "";
  showDay();
  followDay();
  if (!game.won) return true;
  showWin(game);
  await entered(game, true); // in case the page was left before the win was entered
  return true;
}

/** @param {Game} shown */
function showWin(shown) {
  game = shown;
  byId("won").hidden = false;
  const undone = game.undoPlaces.length;
  const taken = undone ? `, ${counted(undone, "undo")}` : "";
  byId("won-heading").textContent = `Won with ${counted(game.score, "point")} in ${clock(game.seconds)}${taken}`;
  render();
}

const signIn = (/** @type {string} */ text) => h("a", { href: "/account?next=/play", class: "button main" }, text);

/** The state of a win that is not uploaded. @param {any} all @param {import("./outbox.js").Trouble | null} trouble */
function whereKept(all, trouble) {
  const name = username();
  const owner = Object.keys(all.of).find((each) => all.of[each].wins.some((/** @type {any} */ { id }) => id === game.id));
  if (owner === undefined) return all.known.includes(game.id) ? ["This game is no longer saved."] : ["Saving …"];
  const { length } = all.of[owner].games;
  const others = length > 1 ? `, with ${counted(length - 1, "other game")}` : "";
  if (owner !== name) return [`It is saved in this browser${owner && ` for ${owner}`}${others}.`, !name && signIn("Sign in to keep it")];
  if (!trouble) return ["Uploading …"];
  if (trouble.until === Infinity) return ["It is saved in this browser, but not uploaded yet."];
  return [`It is saved in this browser, and will be uploaded when ${trouble.error.status ? "the service answers" : "the connection is back"}.`];
}

function verdictInWords() {
  const { status = "pending", error } = verdict ?? {};
  if (status === "pending") return `Checking …${error ? " The result isn’t available yet. This page retries." : ""}`;
  if (error) return sentence(error);
  return status === "verified" ? "✓ Verified: these moves win this deal with exactly this score." : "The check could not confirm this game.";
}

/** The state of the upload of this game. @param {any} all @param {import("./outbox.js").Trouble | null} trouble */
function uploadOf(all, trouble) {
  const replay = all.uploaded[game.id];
  if (!replay) return whereKept(all, trouble).map((told) => told && h("p", {}, told));
  if (!verdict) void judge(game, replay, 2);
  const choose = rank === NAMELESS && h("a", { href: "/leaderboard" }, "Choose a name on the leaderboard");
  return [h("p", {}, verdictInWords()), rank && h("p", {}, choose, rank)];
}

/** The player's progress from the server's last answer. @param {any} all */
function progressOf(all) {
  const journal = username() && all.of[username() ?? ""];
  if (!journal?.base || journal.games.length) return "";
  const { stats, progress } = journal.base;
  const row = stats.win_streak_current > 1 ? `, ${stats.win_streak_current} wins in a row` : "";
  return h("p", {}, `${counted(stats.games_won, "win")} of ${counted(stats.games_played, "game")}, level ${progress.level}${row}.`);
}

/** Put content into a place unless its text is the same, so that a button isn't replaced while it is pressed. @param {string} id @param {(Node | string | false)[]} content */
function put(id, content) {
  const frame = h("div", {}, ...content);
  const place = byId(id);
  const same = place.textContent === frame.textContent && place.dataset.game === game?.id;
  place.dataset.game = game?.id ?? "";
  if (!same) place.replaceChildren(...frame.childNodes);
  return !same;
}

let rendered = Promise.resolve();
/** Show the current state. Calls run one after the other, so the last one shows the newest state. */
const render = () => (rendered = rendered.then(show, show));

async function show() {
  const all = await journals();
  const { trouble } = username() ? await outbox().catch(() => ({ trouble: null })) : { trouble: null };
  if (game?.won) {
    put("result", [...uploadOf(all, trouble), progressOf(all)]);
    const replay = all.uploaded[game.id];
    put("won-next", [
      ...(replay ? [
        h("button", { type: "button", click: () => share(`/replays/${replay}`) }, "Share"),
        h("a", { href: `/replays/${replay}`, class: "button" }, "Watch"),
      ] : []),
      h("button", { type: "button", class: "main", click: () => next.deal() }, "New deal"),
      h("button", { type: "button", click: () => next.again() }, "Same deal"),
    ]);
  }
  renderOutbox(all, trouble);
}

/** Share a link with the device's own dialog, or else copy it. @param {string} path */
async function share(path) {
  const url = new URL(path, location.href).href;
  try {
    if (navigator.share) return await navigator.share({ title: byId("won-heading").textContent, url });
    await navigator.clipboard.writeText(url);
    tell("Link copied.");
  } catch (error) {
    if (error.name === "AbortError") return; // the player has cancelled
    const field = h("input", { value: url, readonly: true, "aria-label": "Link" }); // plain HTTP has no clipboard
    byId("won-next").append(field);
    field.select();
  }
}

/** Show unsent games, and the offer to add signed-out games. @param {any} all @param {import("./outbox.js").Trouble | null} trouble */
function renderOutbox(all, trouble) {
  const name = username();
  const guest = journalOf(all, GUEST);
  put("offer", name && guest.games.length ? [offer(name, guest)] : []);
  const { wins, games } = journalOf(all, name ?? GUEST);
  const kept = trouble && wins.length + games.length;
  const told = put("waiting", kept ? [waiting(trouble.error, wins, games.length)] : []);
  if (told && !kept) byId("retry").replaceChildren();
  else if (told) {
    const again = h("button", { type: "button", click: async () => (await outbox()).settle(true) }, "Try again");
    byId("retry").replaceChildren(again);
    if (trouble?.error.wait) countDown(trouble.error.wait, byId("retry"), again);
  }
}

/** @param {string} name @param {any} guest */
function offer(name, { wins, games }) {
  const parts = [wins.length && counted(wins.length, "win"), games.length > wins.length && counted(games.length - wins.length, "other game")];
  const handed = (/** @type {string | null} */ to) => async () => {
    await handOver(to);
    say(to ? "Added" : "Removed");
    await sent();
  };
  return h("div", { class: "bar", role: "group", "aria-label": "Games played while signed out" },
    h("p", {}, `${parts.filter(Boolean).join(" and ")} played here while signed out: add to ${name}’s account?`),
    h("button", { type: "button", class: "main", click: handed(name) }, "Add"), h("button", { type: "button", click: handed(null) }, "Not mine"));
}

/** @param {Refusal} error @param {import("./journal.js").Win[]} wins @param {number} games */
function waiting(error, wins, games) {
  const late = wins.some(({ day }) => day) ? ` To appear on a day’s board, a win must arrive within ${BOARD_HOURS} hours of the start of that day (UTC).` : "";
  const count = wins.length || games;
  const waits = `${counted(count, wins.length ? "win" : "game")} ${count === 1 ? "waits" : "wait"} to be sent.${late}`;
  const full = error.code === "replay_storage_full" && h("a", { href: "/account" }, "Delete some of your games");
  return h("p", {}, error.status ? `${waits} ${sentence(error)} ` : `Not connected: ${waits}`, full);
}

/** Follow live events if a player is signed in (docs/live.md). @param {string} name @param {() => Promise<unknown>} again @param {(event: any) => boolean} concerns @param {object} [more] */
async function hear(name, again, concerns, more) {
  if (!username() || followed.has(name)) return;
  followed.add(name);
  const { follow } = await import("./live.js");
  follow(again, concerns, more);
}

/** Follow changes of the board of the day. */
function followDay() {
  const board = `daily/${game.day?.date}`;
  if (game.day) hear(board, showDay, ({ data }) => data?.board === board, { boards: [board] }).catch(() => {});
}

/** Ask for the verdict when an event reports one, and otherwise less and less often, but never within Retry-After. Then ask for the rank. @param {Game} judged @param {string} replay @param {number} seconds */
async function judge(judged, replay, seconds) {
  verdict = { status: "pending" };
  hear("verdict", async () => ask(), ({ event }) => event === "verdict").catch(() => {});
  while (verdict.status === "pending") {
    const wait = verdict.error?.wait ?? 0;
    await new Promise((resolve) => {
      ask = () => wait || resolve(undefined);
      setTimeout(resolve, Math.max(seconds, wait) * 1000);
    });
    seconds = Math.min(seconds * 1.6, 60);
    const refused = (/** @type {Refusal} */ error) => ({ status: error.passes ? "pending" : "refused", error });
    const told = await read(`/api/replays/${replay}/verdict`).catch(refused);
    if (judged !== game) return;
    verdict = told;
    if (told.error) render();
  }
  render();
  if (verdict.status !== "verified") return;
  say("Verified");
  const told = await rankOf(replay).catch(() => "Your place on the board couldn’t be loaded.");
  if (judged !== game) return;
  rank = told;
  render();
  showDay();
}

/** The place of the game on the board of its day or its deal, as a sentence. @param {string} replay */
async function rankOf(replay) {
  const { day, seed, draw } = game;
  const board = day ? `daily/${day.date}` : `deals/${seed}/${draw === 3 ? "DrawThree" : "DrawOne"}`;
  const { entries } = await readOwn(`/api/boards/${board}?around=me`);
  const own = entries.find((/** @type {any} */ entry) => entry.own);
  const where = day ? "on the board of the day" : "on the board of this deal";
  if (!own && day && Date.now() > Date.parse(day.date) + BOARD_HOURS * 3600_000) return "This win arrived too late for the board of the day.";
  if (!own) return NAMELESS;
  if (own.replay_id !== replay) return `Your best game ${where} is a different one: place ${own.rank}, ${counted(own.score, "point")}.`;
  return `Place ${own.rank ?? "beyond 10,000"} ${where}.`;
}

/** Show the number of winners of the deal of the day. */
async function showDay() {
  const place = byId("day-board");
  const { day } = game;
  if (!day || !username()) {
    place.hidden = true;
    return;
  }
  const { entries } = await readOwn(`/api/boards/daily/${day.date}?limit=100`).catch(() => ({ entries: null }));
  if (game.day !== day) return;
  place.hidden = false;
  if (!entries) return void (place.textContent = "The winners couldn’t be loaded.");
  const three = entries.filter((/** @type {any} */ entry) => entry.draw_mode === "DrawThree").length;
  const many = entries.length === 100 ? "at least 100 players" : counted(entries.length, "player");
  place.textContent = entries.length ? `Won by ${many}, ${three} of them drawing three.` : "No player on the boards has won it yet.";
}

/** Show unsent games now and after each change. @param {Record<string, () => void>} actions `deal`, `again` */
export function start(actions) {
  next = actions;
  addEventListener("outbox", render);
  addEventListener("session", render);
  addEventListener("journal", render); // of this tab or another
  render();
  if (username()) sent();
}
