// @ts-check
/** The win of a game on /play: the falling cards, and the panel with its time, points, verdict, rank and link. */

import { read, readOwn } from "./api.js";
import { inTime } from "./goal.js";
import { Refusal, username } from "./http.js";
import { GUEST, journalOf } from "./journal.js";
import { byId, clock, counted, h, say, score, sentence, tell } from "./page.js";

/** @typedef {import("./game.js").Game} Game */
/** @typedef {import("./outbox.js").Trouble} Trouble */

const NAMELESS = " to appear on the boards.";
const FALL = { first: 250, apart: 20, each: 1150, steps: 24 }; // in milliseconds: 2,420 for all cards

/** @type {Game} */
let game;
/** @type {any} the verdict on the upload of this game, or with `error` the reason why it is unknown */
let verdict = null;
let rank = "";
/** Ask for the verdict now. */
export let ask = () => {};
/** End the fall of the cards. */
let land = () => {};

/** Begin with a game that is new or resumed. @param {Game} begun */
export function begin(begun) {
  land();
  game = begun;
  verdict = null;
  rank = "";
}

/** Show the panel. @param {Game} won */
export function show(won) {
  game = won;
  const { day, seconds, undoPlaces } = game;
  const date = day && new Date(day.date).toLocaleDateString("en-GB", { dateStyle: "long", timeZone: "UTC" });
  const undos = undoPlaces.length ? `, ${counted(undoPlaces.length, "undo")}` : "";
  byId("won-heading").replaceChildren(
    date ? `Deal of ${date} won in ` : "Won in ", h("b", {}, clock(seconds)), h("span", { class: "unseen" }, ` with ${counted(game.score, "point")}${undos}`));
  byId("won").hidden = false;
}

/** Let the cards fall off the foundations until all are gone, or until a key or a tap. */
export function celebrate() {
  const board = byId("board");
  if (document.hidden || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const frame = board.getBoundingClientRect();
  const piles = [...board.querySelectorAll("ol.foundation")];
  board.classList.add("falling");
  const flights = piles.flatMap((pile, number) => [...pile.children].reverse().map((card, place) => {
    const { left, right, top, bottom, width } = pile.getBoundingClientRect();
    const way = Math.random() < 0.7 ? frame.left - right : frame.right - left; // most of them to the left, the longer way
    const frames = bounces(way * (1 + Math.random()), frame.bottom - bottom);
    return card.animate(frames, { delay: FALL.first + FALL.apart * (4 * place + number), duration: FALL.each, fill: "forwards" });
  }));
  const stop = new AbortController();
  land = () => {
    stop.abort();
    board.classList.remove("falling");
    for (const flight of flights) flight.cancel();
  };
  for (const name of ["keydown", "pointerdown"]) addEventListener(name, land, { capture: true, signal: stop.signal });
  Promise.all(flights.map(({ finished }) => finished)).then(land, () => {});
}

/** The way of a card that bounces, as key frames. @param {number} across @param {number} height */
function bounces(across, height) {
  const frames = [];
  for (let step = 0, y = 0, speed = 0; step <= FALL.steps; step++) {
    frames.push({ translate: `${(across * step) / FALL.steps}px ${y}px`, zIndex: 9 });
    speed += height / 55;
    y += speed;
    if (y <= height) continue;
    y = height;
    speed *= -0.75;
  }
  return frames;
}

/** The state of a win that is not uploaded. @param {any} all @param {Trouble | null} trouble */
function whereKept(all, trouble) {
  const name = username();
  const owner = Object.keys(all.of).find((each) => all.of[each].wins.some((/** @type {any} */ { id }) => id === game.id));
  if (owner === undefined) return all.known.includes(game.id) ? ["This game is no longer saved."] : ["Saving …"];
  const { length } = all.of[owner].games;
  const others = length > 1 ? `, with ${counted(length - 1, "other game")}` : "";
  const back = encodeURIComponent(`/play?keep=${game.id}`);
  const signIn = !name && h("a", { href: `/account?next=${back}`, class: "button" }, `Sign in to keep ${length > 1 ? "them" : "it"}`);
  if (owner !== name) return [`It is saved in this browser${owner && ` for ${owner}`}${others}.`, signIn];
  if (!trouble) return ["Uploading …"];
  if (trouble.until === Infinity) return ["It is saved in this browser, but not uploaded yet."];
  return [`It is saved in this browser, and will be uploaded when ${trouble.error.status ? "the service answers" : "the connection is back"}.`];
}

function verdictInWords() {
  const { status = "pending", error } = verdict ?? {};
  if (status === "pending") return `Checking …${error ? " The result isn’t available yet. This page retries." : ""}`;
  if (error) return sentence(error);
  return status === "verified" ? "✓ Verified: the moves prove this score." : "The check could not confirm this game.";
}

/** The state of the upload of this game. @param {any} all @param {Trouble | null} trouble */
function uploadOf(all, trouble) {
  const replay = all.uploaded[game.id];
  if (!replay) return whereKept(all, trouble).map((told) => told && h("p", {}, told));
  if (!verdict) void judge(game, replay, 2);
  const choose = rank === NAMELESS && h("a", { href: "/leaderboard" }, "Choose a name on the leaderboard");
  return [rank && h("p", { class: "place" }, choose, rank), h("p", {}, verdictInWords())];
}

/** This game beside the player's others: of the account, as last answered, and of this browser. @param {any} all */
async function factsOf(all) {
  const name = username();
  const { base, games } = journalOf(all, name ?? GUEST);
  const facts = [["Points", score(game.score)]];
  if (base || !name) {
    const { statsOf } = await import("./progress.js").catch(() => ({ statsOf: () => ({}) })); // offline
    const { best_single_score: best, win_streak_current: row, games_won: won, games_played: played } = statsOf(base, games);
    if (won) facts.push(["Best", score(best)], ["In a row", score(row)], ["Won", `${score(won)} of ${score(played)}`]);
  }
  return h("dl", { class: "facts" }, ...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** Fill in the panel. @param {any} all @param {Trouble | null} trouble @param {Record<string, () => void>} next */
export async function fill(all, trouble, next) {
  const replay = all.uploaded[game.id];
  put("result", game.id, [await factsOf(all), ...uploadOf(all, trouble)]);
  put("won-next", game.id + replay, [
    h("button", { type: "button", class: "main", click: () => next.deal() }, "New deal"),
    h("button", { type: "button", click: () => share(replay) }, "Share"),
    replay && h("a", { href: `/replays/${replay}`, class: "button" }, "Watch"),
    h("button", { type: "button", click: () => next.again() }, "Same deal"),
  ]);
}

/** Put content into a place unless it has the same key and text, so that a button isn't replaced while it is pressed. @param {string} id @param {string} key @param {(Node | string | false | undefined)[]} content */
export function put(id, key, content) {
  const frame = h("div", {}, ...content);
  const place = byId(id);
  const same = place.textContent === frame.textContent && place.dataset.key === key;
  place.dataset.key = key;
  if (!same) place.replaceChildren(...frame.childNodes);
  return !same;
}

/** Share the win with the device's own dialog, or else copy it. @param {string | undefined} replay without one, share the deal */
async function share(replay) {
  const { seed, draw, day, seconds } = game;
  const drawn = `draw ${draw === 3 ? "three" : "one"}`;
  const deal = day ? `the deal of ${day.date}` : `deal ${seed}`;
  const text = `I won ${deal} (${drawn}) in ${clock(seconds)} with ${counted(game.score, "point")}.`;
  const url = new URL(replay ? `/replays/${replay}` : `/play?deal=${seed}&${drawn.replace(" ", "=")}`, location.href).href;
  try {
    if (navigator.share) return await navigator.share({ text, url });
    await navigator.clipboard.writeText(`${text} ${url}`);
    tell("Result and link copied.");
  } catch (error) {
    if (error.name === "AbortError") return; // the player has cancelled
    const field = h("input", { value: `${text} ${url}`, readonly: true, "aria-label": "Result and link" }); // plain HTTP has no clipboard
    byId("won-next").append(field);
    field.select();
  }
}

/** Ask for the verdict when an event reports one, and otherwise less and less often, but never within Retry-After. Then ask for the rank. @param {Game} judged @param {string} replay @param {number} seconds */
async function judge(judged, replay, seconds) {
  const changed = () => dispatchEvent(new Event("verdict"));
  verdict = { status: "pending" };
  while (verdict.status === "pending") {
    const wait = verdict.error?.retryAfter ?? 0;
    await new Promise((resolve) => {
      ask = () => wait || resolve(undefined);
      setTimeout(resolve, Math.max(seconds, wait) * 1000);
    });
    seconds = Math.min(seconds * 1.6, 60);
    const refused = (/** @type {Refusal} */ error) => ({ status: error.passes ? "pending" : "refused", error });
    const told = await read(`/api/replays/${replay}/verdict`).catch(refused);
    if (judged !== game) return;
    verdict = told;
    if (told.error) changed();
  }
  changed();
  if (verdict.status !== "verified") return;
  say("Verified");
  const told = await rankOf(replay).catch(() => "Your place on the board couldn’t be loaded.");
  if (judged !== game) return;
  rank = told;
  changed();
}

/** The place of the game on the board of its day or its deal, as a sentence. @param {string} replay */
async function rankOf(replay) {
  const { day, seed, draw } = game;
  const board = day ? `daily/${day.date}` : `deals/${seed}/${draw === 3 ? "DrawThree" : "DrawOne"}`;
  const { entries } = await readOwn(`/api/boards/${board}?around=me`);
  const own = entries.find((/** @type {any} */ entry) => entry.own);
  const where = day ? "on the board of the day" : "on the board of this deal";
  if (!own && day && !inTime(day.date, Date.now())) return "This win arrived too late for the board of the day.";
  if (!own) return NAMELESS;
  if (own.replay_id !== replay) return `Your best game ${where} is a different one: place ${own.rank}, ${counted(own.score, "point")}.`;
  return `Place ${own.rank ?? "beyond 10,000"} ${where}.`;
}
