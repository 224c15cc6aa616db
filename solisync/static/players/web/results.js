// @ts-check
/** Finished games on /play: their journal, the board of the day, unsent games, and games that were played signed out. */

import { readOwn } from "./api.js";
import { username } from "./http.js";
import { enter, GUEST, journalOf, journals } from "./journal.js";
import { byId, counted, h, put } from "./page.js";

/** @typedef {import("./game.js").Game} Game */

const outbox = () => import("./outbox.js");

/** @type {typeof import("./win.js") | null} */
let win = null;
const loadWin = async () => (win ??= await import("./win.js").catch(() => null));

/** @type {Game} */
let game;
/** @type {Record<string, () => void>} */
let next = {};
/** @type {Set<string>} the events that this page follows */
const followed = new Set();

/** Store a finished game in the journal. @param {Game} game */
function stored(game) {
  const date = new Date();
  return enter(game.record({ seconds: game.seconds, date }), date, game.player);
}

/** Enter a finished game. It is sent afterwards. @param {Game} game @param {Promise<unknown>} [storing] if that has begun */
export async function entered(game, storing = stored(game)) {
  await storing;
  sent().then(statistics);
}

/** Send the journal if a player is signed in. */
async function sent() {
  if (username())
    await outbox().then(
      ({ settle }) => settle(),
      () => {},
    ); // offline
  render();
}

/** Show and enter a game that was just won. @param {Game} game */
export async function won(game) {
  const storing = stored(game); // before the panel is loaded, which may take long
  const win = await loadWin();
  win?.show(game);
  byId("won-heading").focus();
  win?.celebrate();
  await render();
  await entered(game, storing);
}

/** Handle a new or resumed game. Return false if it has already been left, just before the page was. @param {Game} begun @param {string | null} keep the signed-out win that the player has signed in to keep */
export async function opened(begun, keep) {
  const all = await journals();
  if (!begun.won && all.known.includes(begun.id)) return false;
  const name = username();
  if (name && journalOf(all, GUEST).wins.some(({ id }) => id === keep))
    await (await import("./own_journal.js")).handOver(name);
  if (begun.won) await loadWin();
  game = begun;
  win?.begin(game);
  showDay();
  followDay();
  if (!game.won) return true;
  win?.show(game);
  await render();
  await entered(game); // in case the page was left before the win was entered
  return true;
}

let rendered = Promise.resolve();
/** Show the current state. Calls run one after the other, so the last one shows the newest state. */
const render = () => (rendered = rendered.then(show, show));

async function show() {
  const all = await journals();
  const { trouble } = username() ? await outbox().catch(() => ({ trouble: null })) : { trouble: null };
  if (game?.won) {
    if (all.uploaded[game.id])
      hear(
        "verdict",
        async () => win?.ask(),
        ({ event }) => event === "verdict",
      ).catch(() => {});
    await win?.fill(all, trouble, next);
  }
  await renderOutbox(all, trouble);
}

/** Show unsent games, and the offer to add signed-out games. @param {any} all @param {import("./outbox.js").Trouble | null} trouble */
async function renderOutbox(all, trouble) {
  const name = username();
  const guest = journalOf(all, GUEST);
  put("offer", name ?? "", name && guest.games.length ? [(await import("./offer.js")).offer(name, guest, sent)] : []);
  const { wins, games } = journalOf(all, name ?? GUEST);
  const kept = trouble && wins.length + games.length;
  const unsaved =
    all.unsaved > 0 && h("p", {}, "This browser can’t save finished games now. Keep this page open until it can.");
  const { inWords, addButton } = Object(kept && (await outbox()));
  if (!put("waiting", "", [unsaved || inWords?.(trouble?.error, wins, games.length)])) return;
  byId("retry").replaceChildren();
  addButton?.(byId("retry"));
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
  place.textContent = entries.length
    ? `Won by ${many}, ${three} of them drawing three.`
    : "No player on the boards has won it yet.";
}

/** Show the player's statistics if they are unfolded. */
const statistics = async () => byId("statistics").open && (await import("./standing.js")).show(byId("standing"));

/** Show unsent games now and after each change. @param {Record<string, () => void>} actions `deal`, `again` */
export function start(actions) {
  next = actions;
  byId("statistics").ontoggle = statistics;
  for (const name of ["outbox", "session", "verdict", "journal"]) addEventListener(name, render); // "journal": of this tab or another
  render();
  if (username()) sent();
}
