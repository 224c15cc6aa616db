// @ts-check
/** /play: games one after the other, with clock, settings, and the saved game of this browser. */

import { inWords } from "./board.js";
import { claim, Game, keepGame, firstSeed, keptGame, newSeed, settings } from "./game.js";
import { local, username } from "./http.js";
import { finish, STOCK } from "./klondike.js";
import { byId, clock, counted, h, refuse, say, tell } from "./page.js";
import { Table } from "./table.js";

const FLIGHT_MS = 150;
const FINISH_MS = 90;
const TICK_MS = 250;
const SOLVER_MS = 2000; // how long a hint waits for the solver
const LOOKING_MS = 250; // after which it says so
const FREE_TURNS = /** @type {Record<number, number>} */ ({ 1: 1, 3: 3 });

/** @typedef {import("./klondike.js").Move} Move */
/** @typedef {{seed: string, draw: 1 | 3, day: import("./game.js").Day | null}} Wanted a deal to play */

const keep = new URLSearchParams(location.search).get("keep"); // a win, see win.js
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const chosen = settings();
const table = new Table(byId("board"), { move, refuse: say, tell: say });
/** The module for finished games. It loads after the first cards, like all that they don't need. */
const results = () => import("./results.js");
/** The module for settings, keys and the board as text. */
const controls = () => import("./controls.js");
/** The module for hints. It loads with the first move, as that for wins, or with the first hint. */
const advice = () => (import("./win.js").catch(() => {}), import("./hints.js"));

/** @type {Game} */
let game;
/** @type {import("./seat.js").Seat | undefined} the seat; `taken` if this tab plays */
let seat;
/** @type {typeof import("./goal.js") | undefined} */
let goals;
let hinted = 0;
let focused = false; // whether the held board had the focus
let ticked = performance.now();

/** Show a notice above the board, with buttons for actions. @param {string} text @param {Record<string, () => void>} [actions] */
function notice(text, actions = {}) {
  const buttons = Object.entries(actions).map(([label, click]) => h("button", { type: "button", click }, label));
  byId("notice").replaceChildren(
    ...(text ? [h("div", { class: "bar", role: "status" }, h("p", {}, text), ...buttons)] : []),
  );
}

/** Stop the game until the next one. */
function hold() {
  focused ||= table.element.contains(document.activeElement);
  table.element.inert = true;
}

/** Let the player play, if in this tab. */
function release() {
  table.element.inert = !seat?.taken;
  if (focused && document.activeElement === document.body) table.button(table.stop).focus({ preventScroll: true });
  focused = false;
}

const playing = () => seat?.taken && !table.element.inert;

// The game

/** Show the game. @param {number} flight @param {string} [pile] the pile that gets the focus */
function show(flight, pile) {
  table.show(game.position, game.draw, calm.matches || document.hidden ? 0 : flight, pile);
  hinted = 0;
  byId("points").textContent = counted(game.score, "point");
  byId("moves").textContent =
    counted(game.moves, "move") + (game.undoPlaces.length ? `, ${counted(game.undoPlaces.length, "undo")}` : "");
  byId("undo").disabled = game.won || !game.moves;
  byId("redo").disabled = !game.undone.length;
  byId("finish").hidden = !finish(game.position, game.draw);
  byId("read-out").hidden = true;
  showTime();
  judge();
}

/** Show whether the game is stuck. @param {boolean} stuck */
function showStuck(stuck) {
  byId("stuck").hidden = !stuck;
  byId("hint").disabled = game.won || stuck || !seat?.taken;
}

/** Find out whether the game is stuck, unless the player moves on, and announce it. A new game isn't searched. */
async function judge() {
  const { position, won, accepted } = game;
  const wasStuck = !won && accepted.length > 0 && !byId("stuck").hidden;
  showStuck(wasStuck);
  if (won || !accepted.length) return;
  await new Promise((resolve) => setTimeout(resolve, FLIGHT_MS));
  if (game.position !== position) return;
  const stuck = await advice().then(
    ({ isLost }) => isLost(game),
    () => false,
  );
  if (game.position !== position) return;
  if (stuck && !wasStuck) say([byId("said").textContent, byId("stuck").textContent].filter(Boolean).join(". "));
  showStuck(stuck);
}

/** Show the time, and with it the state of the goal of the day. */
function showTime() {
  byId("time").textContent = clock(Math.floor(game.milliseconds / 1000));
  byId("goal").hidden = !game.day;
  if (game.day)
    byId("goal").textContent = [game.day.description, goals && stateOf(game.day, goals)].filter(Boolean).join(": ");
}

/** How far the game is from the goal of its day. The bonus for time comes with the win. @param {import("./game.js").Day} goal @param {typeof import("./goal.js")} goals */
function stateOf(goal, { hasBonus, meets }) {
  const { target_score: target, max_time_secs: most } = goal;
  const { score, seconds, won } = game;
  if (target === null && most === null) return "";
  if (won) return meets(goal, score, seconds) ? "goal met" : "missed, still counts as a win";
  if (most !== null)
    return seconds <= most
      ? `${clock(most - Math.floor(game.milliseconds / 1000))} left`
      : "missed, a win still counts";
  const left = Number(target) - score;
  if (left <= 0) return "reached, now win";
  return `${counted(left, "point")} to go${hasBonus(goal) ? "; a quick win adds a bonus" : ""}`;
}

/** Show and save the game after a step, and announce the step. @param {import("./board.js").Step} step @param {number} before the score before the step @param {string} pile */
function done(step, before, pile) {
  show(FLIGHT_MS, pile);
  if (!keepGame(game)) notice("This browser can’t save your game.");
  const turned = step.input === "undo" && step.to === "w" && step.from === "s" && game.turns >= FREE_TURNS[game.draw];
  say(`${inWords(step, before)}${turned ? ". The waste still counts as turned over" : ""}`);
  if (game.won) results().then(({ won }) => won(game), unsaved);
}

/** @param {Move} move */
function move(move) {
  const before = game.score;
  const step = game.play(move);
  if (step) done(step, before, move === STOCK ? "s" : move.to);
  else say(game.won ? "This game is won" : "Stock and waste are empty");
}

function undo() {
  const before = game.score;
  const step = game.undo();
  if (step) done(step, before, step.to);
  else tell(game.won || !game.moves ? "Nothing to undo" : "Undo goes back 64 moves at most");
}

/** Make the move again that undo took back last. */
function redo() {
  const next = game.undone.at(-1);
  if (next) move(next);
  else say("Nothing to redo");
}

async function hint() {
  const { position } = game;
  const looking = setTimeout(() => tell("Looking for a win …"), LOOKING_MS);
  const told = byId("hint").disabled
    ? null
    : await advice().then(
        ({ hint }) => hint(game, hinted, SOLVER_MS),
        () => null,
      );
  clearTimeout(looking);
  if (!told) return say("No hint available");
  if (game.position !== position) return;
  if (!told.move) return tell(told.words);
  hinted += 1;
  table.hint(told.move);
  say(told.words);
}

/** Move all cards to the foundations, one after the other, until the player does something else. */
function finishing() {
  const next = playing() && finish(game.position, game.draw)?.[0];
  if (!next) return;
  move(next);
  const { position } = game;
  const goOn = () => game.position === position && finishing();
  if (calm.matches) goOn();
  else setTimeout(goOn, FINISH_MS);
}

/** Run the clock after the first move while the page is visible. It doesn't jump after the computer has slept. */
function tick() {
  const now = performance.now();
  const runs =
    game?.accepted.length && !game.won && playing() && !document.hidden && !document.querySelector("dialog[open]");
  const second = Math.floor((game?.milliseconds ?? 0) / 1000);
  if (runs) game.milliseconds += Math.min(now - ticked, 4 * TICK_MS);
  ticked = now;
  if (!runs || Math.floor(game.milliseconds / 1000) === second) return;
  showTime();
  keepGame(game);
}

// From one game to the next

/** Describe the deal. */
function describe() {
  const { draw, day } = game;
  const long = day && new Date(day.date).toLocaleDateString("en-GB", { dateStyle: "full", timeZone: "UTC" });
  byId("deal-heading").textContent = long ? `Deal of ${long}` : "Deal";
  byId("drawn").textContent = `Draw ${draw === 3 ? "three" : "one"}`;
}

/** The address of a game: that of its day, or of its deal. @param {Game} game */
const pathOf = ({ seed, draw, day }) =>
  `/play?${day ? `daily=${day.date}` : `deal=${seed}&draw=${draw === 3 ? "three" : "one"}`}`;

/** Begin or resume a game. @param {Game} next */
function begin(next) {
  game = next;
  claim(game);
  byId("won").hidden = true;
  release();
  show(0);
  if (seat && !game.moves && !calm.matches && !document.hidden)
    import("./dealing.js").then(
      ({ deals }) => deals(table.board),
      () => {},
    );
  describe();
  history.replaceState(null, "", pathOf(game));
  setTimeout(async () => {
    // after the cards are shown
    const { opened } = await results().catch(() => ({ opened: () => true })); // offline
    if (!(await opened(next, keep)) && game === next) next.day ? deal(next) : newDeal();
  });
}

const unsaved = () => notice("This game can’t be saved yet. Please try again later.");

/** Store a game that has ended. Return false if it can't be stored. @param {Game} ended */
const saved = (ended) =>
  results()
    .then(async ({ entered }) => (await entered(ended), notice(""), true))
    .catch(() => (unsaved(), false));

/** Whether the player leaves the game. A game with moves counts as lost, so the page asks first. */
async function left() {
  const ended = game; // the page may show another one before the player answers
  if (!ended?.moves) return true;
  if (!ended.won) {
    const dialog = /** @type {HTMLDialogElement} */ (byId("leave"));
    dialog.returnValue = "stay";
    dialog.showModal();
    await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
    if (dialog.returnValue !== "leave") return false;
  }
  hold();
  if (await saved(ended)) return true;
  release();
  return false;
}

/** @param {Wanted} wanted */
const deal = ({ seed, draw, day }) => begin(new Game(seed, draw, day));

/** Begin a new deal, a winnable one if the settings ask for it. */
async function newDeal() {
  const { draw } = chosen;
  if (!chosen.winnable) return deal({ seed: newSeed(), draw, day: null });
  if (!game) return deal({ seed: firstSeed(), draw, day: null });
  hold();
  const before = game;
  const stop = new AbortController();
  const now = new Promise((stopped) =>
    notice("Looking for a deal that can be won …", { "Deal now": () => stopped(stop.abort()) }),
  );
  const found = import("./solver.js")
    .then(({ winnableSeed }) => winnableSeed(draw, stop.signal))
    .catch(() => newSeed()); // offline, any deal
  const seed = (await Promise.race([found, now])) ?? newSeed();
  notice("");
  if (game === before) deal({ seed, draw, day: null });
}

/** Begin a new deal. A day's game stays, because it has its own place in the storage, but the other stored game ends. */
async function leave() {
  const other = game.day && keptGame(false);
  if (other) begin(other);
  if ((game.day && keepGame(game)) || (await left())) newDeal();
}

async function again() {
  const same = game;
  if (await left()) deal(same);
}

/** The stored game to show until the address is understood. @param {URLSearchParams} query */
function keptFor(query) {
  const [daily, other] = [keptGame(true), keptGame(false)];
  if (query.has("daily") || (daily && daily.seed === (query.get("deal") ?? query.get("seed")))) return daily;
  return other ?? daily;
}

/** The deal that the address names, or null if it names none or an invalid one. The stored game of the named day costs no request. @param {URLSearchParams} query @param {Game | null} kept @returns {Promise<Wanted | null>} */
async function linked(query, kept) {
  if (!["daily", "deal", "seed"].some((name) => query.has(name))) return null;
  // at the same time, because each of these imports the next
  const [{ drawOf, linked }] = await Promise.all([import("./links.js"), import("./days.js"), import("./goal.js")]);
  const draw = drawOf(query);
  if (kept?.day && kept.day.date === query.get("daily") && (draw ?? kept.draw) === kept.draw) return kept;
  const wanted = await linked(query, notice);
  return wanted && { ...wanted, draw: draw ?? (wanted.seed === kept?.seed ? kept.draw : chosen.draw) };
}

/** Resume the saved game, or begin the deal of the address. */
async function open(query = new URLSearchParams(location.search)) {
  let kept = keptFor(query);
  /** @type {Wanted | null} */
  let wanted = null;
  try {
    wanted = await linked(query, kept);
  } catch (error) {
    refuse(byId("notice"), error, () => (notice(""), open(query))); // the query is passed because the address has changed by then
    byId("notice").firstElementChild.prepend("The deal of the day couldn’t be loaded. ");
  }
  kept = wanted ? keptGame(wanted.day !== null) : (kept ?? keptGame(false));
  const other = wanted?.day && keptGame(false); // the day's deal may have begun as another one
  if (other && other.seed === wanted?.seed && !other.won) {
    other.day = wanted.day;
    if (!query.has("draw") && !query.has("draw3")) wanted.draw = other.draw;
    kept ??= other;
  }
  const same =
    kept &&
    (!wanted ||
      (wanted.seed === kept.seed &&
        wanted.day?.date === kept.day?.date && // two days may have one deal
        wanted.draw === kept.draw));
  if (kept?.won && !same) {
    if (!(await saved(kept))) return begin(kept); // in case the page was left before the win was entered
    kept = null;
  }
  if (kept) begin(kept);
  if (same) return;
  if (!wanted) await newDeal();
  else if (!kept || (await left())) deal(wanted);
}

/** Disable the game because another tab plays. */
function setAside() {
  byId("board").inert = true;
  for (const id of ["undo", "redo", "hint"]) byId(id).disabled = true;
  notice("This game is open in another tab.", {
    "Play here": async () => (await seat?.take(true), notice(""), open()),
  });
}

/** A change of player ends the game on this page. A session that expired doesn't: its player is still here. */
addEventListener("session", (event) => {
  const ended = /** @type {CustomEvent} */ (event).detail && !username();
  if (!game?.player || game.player === username() || ended) return;
  byId("leave").close();
  if (seat?.taken) open(new URLSearchParams());
  else location.replace("/play");
});

// Settings, buttons, keys

function applySettings() {
  document.body.classList.toggle("four", chosen.four);
  document.body.classList.toggle("print", chosen.large);
  document.body.classList.toggle("left", chosen.left);
  table.taps = chosen.tap;
  table.mirror(chosen.left);
}

const actions = /** @type {Record<string, () => void>} */ ({
  undo,
  redo,
  hint,
  finish: finishing,
  again,
  copy: async () => (await import("./share.js")).copyLink(),
  read: async () => (await controls()).readBoard(table.board.lists),
  new: leave,
  "help-open": () => byId("help").showModal(),
});
for (const [id, action] of Object.entries(actions)) {
  actions[id] = () => (playing() || id === "help-open" || id === "read") && action();
  document.getElementById(id)?.addEventListener("click", actions[id]); // redo has keys alone
}
setInterval(tick, TICK_MS);
for (const name of ["pagehide", "visibilitychange"])
  addEventListener(name, () => game && seat?.taken && (tick(), keepGame(game)), true);
applySettings();
if (!local) notice("This browser can’t save your game.");
// What a move needs loads beside the deal.
const needed = Promise.all([
  import("./seat.js"),
  table.draggable().catch(() => {}),
  import("./goal.js").then(
    (module) => (goals = module),
    () => {},
  ),
  controls().then(
    ({ start }) => start(chosen, applySettings, actions),
    () => {},
  ),
]);
// Show cards first, of the saved game or of a new one, even if another tab plays.
const kept = keptFor(new URLSearchParams(location.search));
if (kept) {
  game = kept;
  describe();
  show(0);
} else await open();
const [{ Seat }] = await needed;
seat = new Seat(setAside, () => (notice(""), open()));
if (!(await seat.take(false))) setAside();
else if (kept) await open();
else {
  byId("board").inert = false;
  show(0); // again, with the hint's button
}
byId("board").removeAttribute("aria-busy");
results().then(
  ({ start }) => start({ again, deal: actions.new }),
  () => {},
);
import("./workers.js").then(
  ({ keepPage }) => keepPage(byId("offline")),
  () => {},
);
