// @ts-check
/** The win of a game on /play: the falling cards, the rain of colours, and the panel with its time, points, verdict, rank and link. */

import { username } from "./http.js";
import { GUEST, journalOf, journals } from "./journal.js";
import { byId, clock, counted, h, leftOf, put, score, sentence, tell } from "./page.js";

/** @typedef {import("./game.js").Game} Game */
/** @typedef {import("./outbox.js").Trouble} Trouble */

const FALL = { first: 250, apart: 20, each: 1150, steps: 24 }; // in milliseconds: 2,420 for all cards

const RAIN = { bits: 60, each: 1300, within: 700, colours: ["#d93025", "#1a6fd0", "#f2b632", "#2e9e5b", "#fffdf8"] };

/** @type {Game} */
let game;
/** @type {any} the verdict on the upload of this game, or with `error` the reason why it is unknown */
let verdict = null;
/** @type {string | null} null for a player who isn't on the leaderboard */
let rank = "";
let shownReplay = "";
let isBest = false;
/** Ask for the verdict now. */
export let ask = () => {};
/** End the fall of the cards. */
let land = () => {};

/** Begin with a game that is new or resumed. @param {Game} begun */
export function begin(begun) {
  land();
  document.querySelector(".rain")?.remove();
  game = begun;
  verdict = null;
  rank = "";
  isBest = false;
}

/** Show the panel. @param {Game} won */
export function show(won) {
  game = won;
  const { day, seconds, undoPlaces } = game;
  const date = day && new Date(day.date).toLocaleDateString("en-GB", { dateStyle: "long", timeZone: "UTC" });
  const undos = undoPlaces.length ? `, ${counted(undoPlaces.length, "undo")}` : "";
  byId("won-heading").replaceChildren(
    date ? `Deal of ${date} won in ` : "Won in ",
    h("b", {}, clock(seconds)),
    h("span", { class: "unseen" }, ` with ${counted(game.score, "point")}${undos}`),
  );
  byId("won").hidden = false;
}

/** Let the cards fall off the foundations until all are gone, or until a key or a tap. */
export function celebrate() {
  const board = byId("board");
  if (document.hidden || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const frame = board.getBoundingClientRect();
  const piles = [...board.querySelectorAll("ol.foundation")];
  board.classList.add("falling");
  const flights = piles.flatMap((pile, number) =>
    [...pile.children].reverse().map((card, place) => {
      const { left, right, bottom } = pile.getBoundingClientRect();
      const way = Math.random() < 0.7 ? frame.left - right : frame.right - left; // most of them to the left, the longer way
      const frames = bounces(way * (1 + Math.random()), frame.bottom - bottom);
      return card.animate(frames, {
        delay: FALL.first + FALL.apart * (4 * place + number),
        duration: FALL.each,
        fill: "forwards",
      });
    }),
  );
  const stop = new AbortController();
  land = () => {
    stop.abort();
    land = () => {};
    board.classList.remove("falling");
    for (const flight of flights) flight.cancel();
    rain(board);
  };
  for (const name of ["keydown", "pointerdown"]) addEventListener(name, land, { capture: true, signal: stop.signal });
  Promise.all(flights.map(({ finished }) => finished)).then(land, () => {});
}

/** Let bits of paper in the colours of the deck fall in front of the board. @param {HTMLElement} board */
function rain(board) {
  const place = h("div", { class: "rain", "aria-hidden": "true" });
  board.after(place);
  const { width, height } = place.getBoundingClientRect();
  const falls = Array.from({ length: RAIN.bits }, (_, number) => {
    const bit = place.appendChild(h("i"));
    bit.style.background = RAIN.colours[number % RAIN.colours.length];
    const x = Math.random() * width;
    const frames = [
      { translate: `${x}px -1rem`, rotate: "0deg" },
      { translate: `${x + (Math.random() - 0.5) * 160}px ${height}px`, rotate: `${Math.random() * 1440 - 720}deg` },
    ];
    const timing = { duration: RAIN.each, delay: Math.random() * RAIN.within, fill: /** @type {const} */ ("both") };
    return bit.animate(frames, timing).finished;
  });
  Promise.allSettled(falls).then(() => place.remove());
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
  const owner = Object.keys(all.of).find((each) =>
    all.of[each].wins.some((/** @type {any} */ { id }) => id === game.id),
  );
  if (owner === undefined) return all.known.includes(game.id) ? ["This game is no longer saved."] : ["Saving …"];
  if (all.unsaved) return ["This browser can’t save this game now. Keep this page open."];
  const {
    wins,
    games: { length },
  } = all.of[owner];
  const others = length > 1 ? `, with ${counted(length - 1, "other game")}` : "";
  const back = encodeURIComponent(`/play?keep=${game.id}`);
  const signIn =
    !name &&
    h(
      "a",
      { href: `/account?next=${back}#register`, class: "button" },
      `Create a free account to save ${length > 1 ? "them" : "it"}`,
    );
  if (owner !== name) return [`Saved on this device ${owner ? `for ${owner}` : "only"}${others}.`, signIn];
  const refused = wins.some((/** @type {any} */ win) => win.id === game.id && win.refused);
  if (!trouble && !refused) return ["Uploading …"];
  if (refused || !trouble || !trouble.error.passes) return ["Saved on this device, but not sent yet."];
  return [
    `Saved on this device. It will be sent when ${trouble.error.status ? "the service answers" : "you’re back online"}.`,
  ];
}

function verdictInWords() {
  const { status = "pending", error } = verdict ?? {};
  if (status === "pending") return `Checking …${error ? " The result isn’t available yet. This page retries." : ""}`;
  if (error) return sentence(error);
  return status === "verified" ? "✓ Score verified" : "The check could not confirm this game.";
}

/** The state of the upload of this game. @param {any} all @param {Trouble | null} trouble */
function uploadOf(all, trouble) {
  const replay = all.uploaded[game.id];
  if (!replay) return whereKept(all, trouble).map((told) => told && h("p", {}, told));
  if (!verdict) judge(replay);
  return [rank === null ? appear() : rank && h("p", { class: "place" }, rank), h("p", {}, verdictInWords())];
}

/** An offer to appear on the leaderboard under the username. */
function appear() {
  const name = username() ?? "";
  const click = async () => {
    const { ask } = await import("./api.js");
    try {
      await ask("POST", "/api/leaderboard/opt-in", { json: { display_name: name } });
      const { rankOf } = await import("./verdict.js");
      tell("Your wins are on the leaderboard.");
      rank = await rankOf(game, shownReplay);
      dispatchEvent(new Event("verdict"));
    } catch (error) {
      tell(sentence(error));
      location.assign("/leaderboard"); // the player may choose another name there
    }
  };
  return h(
    "p",
    { class: "place" },
    `Show this win on the leaderboard as “${name}”? `,
    h("button", { type: "button", click }, "Show it"),
    " ",
    h("a", { href: "/leaderboard" }, "Another name"),
  );
}

/** This game beside the player's others: of the account, as last answered, and of this browser. @param {any} all */
async function factsOf(all) {
  const name = username();
  const { base, games } = journalOf(all, name ?? GUEST);
  const facts = [["Points", score(game.score)]];
  if (base || !name) {
    const { statsOf } = await import("./shown.js").catch(() => ({ statsOf: () => ({}) })); // offline
    const {
      best_single_score: best,
      win_streak_current: row,
      games_won: won,
      games_played: played,
    } = statsOf(
      base,
      games.map(({ game }) => game),
    );
    isBest = won > 1 && game.score > 0 && game.score >= best;
    if (won)
      facts.push(["Best", score(best)], ["Win streak", score(row)], ["Won", `${score(won)} of ${score(played)}`]);
  }
  return h(
    "dl",
    { class: "facts" },
    ...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

/** The streak of days, as this browser knows it. @param {any} all */
const streakOf = async (all) => (await import("./own_days.js")).daysIn(journalOf(all, username() ?? GUEST)).streak;

/** The streak, and the time of the next deal. @param {any} all */
async function streakAndNext(all) {
  const streak = await streakOf(all).catch(() => 0); // offline
  const today = new Date().toISOString().slice(0, 10);
  return streak > 0 ? `${streak}-day streak · next deal in ${leftOf(today)}` : `Next deal in ${leftOf(today)}`;
}

/** What is special about this win: the best score, and the goal of the day. */
async function honours() {
  const { meets } = await import("./goal.js").catch(() => ({ meets: () => false })); // offline
  const { day, score, seconds } = game;
  const hasGoal = day && (day.target_score !== null || day.max_time_secs !== null);
  const met = hasGoal && meets(day, score, seconds) && `✓ Goal met: ${day.description.toLowerCase()}`;
  return [isBest && "★ Your best score", met].map((told) => told && h("p", { class: "best" }, told));
}

/** @param {string | undefined} replay */
async function share(replay) {
  const streak = await streakOf(await journals()).catch(() => 0);
  const path = game.day || !replay ? location.pathname + location.search : `/replays/${replay}`;
  return (await import("./share.js")).share(game, path, streak);
}

/** Fill in the panel. @param {any} all @param {Trouble | null} trouble @param {Record<string, () => void>} next */
export async function fill(all, trouble, next) {
  const replay = all.uploaded[game.id];
  const facts = await factsOf(all);
  const streak = game.day && h("p", { class: "place" }, await streakAndNext(all));
  put("result", game.id, [facts, ...(await honours()), streak, ...uploadOf(all, trouble)]);
  put("won-next", game.id + replay, [
    h("button", { type: "button", class: "main", click: () => next.deal() }, "New game"),
    h("button", { type: "button", click: () => share(replay) }, "Share"),
    replay && h("a", { href: `/replays/${replay}`, class: "button" }, "Watch"),
    h("button", { type: "button", click: () => next.again() }, "Play again"),
  ]);
}

/** Ask for the verdict on the game and for its rank, and show them, until another game begins. @param {string} replay */
function judge(replay) {
  const judged = game;
  verdict = { status: "pending" };
  shownReplay = replay;
  const told = (/** @type {any} */ told) => {
    if (judged !== game) return false;
    ({ verdict, rank } = { verdict, rank, ...told });
    dispatchEvent(new Event("verdict"));
    return true;
  };
  const waiting = (/** @type {() => void} */ now) => (ask = now);
  import("./verdict.js").then(({ judge }) => judge(judged, replay, told, waiting)).catch(() => (verdict = null)); // offline
}
