// @ts-check
/**
 * Live events (docs/live.md): one stream for all tabs of this browser.
 *
 * The tab that holds the lock reads the stream and sends its events to the other tabs. A tab leaves when it has been
 * hidden for five minutes. Without a stream (switched off, refused, or no locks on plain HTTP), pages poll.
 */

import { ask } from "./api.js";
import { Stream } from "./events.js";
import { Refusal, username } from "./http.js";
import { sleep } from "./transport.js";
import { byId, h, sentence, signInPath } from "./page.js";

/** @typedef {import("./events.js").StreamEvent & {boards?: string[]}} Event an event of the stream, and the boards that the stream follows */
/** @typedef {{concerns: (event: Event) => boolean, knows: (revision: string | null) => boolean, boards: string[], heard: () => void}} Follower */

const NAME = "solisync.live";
const SILENCE_MS = 60_000; // a stream sends a line every 25 s
const HIDDEN_MS = 300_000;
const PAUSE_MS = 1_000; // the minimum between two reads of the same data
const SPREAD_MS = 500; // at random, because a board has many readers
const BOARDS = 3; // the limit of one stream

const channel = new BroadcastChannel(NAME);
/** @type {Follower[]} */
const followers = [];
/** Ends this tab's participation. @type {AbortController | null} */
let part = null;
/** Whether this tab has the stream, or is about to open it. */
let leads = false;
/** The boards that this tab's stream follows. @type {string[]} */
let asked = [];
/** The time of the last sign of an open stream, and the boards that it follows. */
let life = { at: -Infinity, boards: /** @type {string[]} */ ([]) };
let over = false;
let who = username();

/** Whether there is an open stream that follows these boards. @param {string[]} [boards] */
export const streaming = (boards = []) =>
  performance.now() - life.at < SILENCE_MS && boards.every((board) => life.boards.includes(board));

/** Show a notice that stays until the page is left. @param {string} text @param {boolean} [signIn] */
function notice(text, signIn) {
  byId("over")?.remove();
  byId("main").prepend(
    h(
      "p",
      { id: "over", class: "refused", role: "alert" },
      text,
      " ",
      signIn && h("a", { href: signInPath(), class: "button" }, "Sign in"),
    ),
  );
}

/** Handle an event of the stream. @param {Event} event */
function hear(event) {
  if (event.event === "over") {
    over = true;
    return notice(event.data);
  }
  life = { at: event.event === "end" ? -Infinity : performance.now(), boards: event.boards ?? [] };
  if (event.data?.reason === "account_deleted") notice("This account has been deleted.");
  for (const { concerns, knows, heard } of followers) {
    if (event.event === "hello" ? !knows(event.data.revision) : concerns(event)) heard();
  }
}

/** Handle an event, and send it to the other tabs. @param {Event} event */
function hand(event) {
  event.boards = asked;
  channel.postMessage(event);
  hear(event);
}

/** Let the stream follow these boards too. Above the limit, the latest requested boards count. @param {string[]} boards */
function want(boards) {
  const missing = boards.filter((board) => !asked.includes(board));
  if (!missing.length) return stream.open && hand({ event: "alive" });
  asked = [...asked, ...missing].slice(-BOARDS);
  stream.restart();
}

const mine = () => followers.flatMap(({ boards }) => boards);

channel.onmessage = ({ data }) => {
  if (data.wanted) {
    if (leads) want(data.wanted);
  } else if (data.event === "who") channel.postMessage({ wanted: mine() });
  else hear(data);
};

const stream = new Stream((signal) => {
  const query = new URLSearchParams(asked.map((board) => ["board", board]));
  return ask("GET", `/api/events?${query}`, { signal });
}, hand);

/** Keep the stream open, while this tab holds the lock. @param {AbortSignal} signal */
async function lead(signal) {
  asked = mine().slice(-BOARDS);
  leads = true;
  channel.postMessage({ event: "who" });
  await sleep(50); // for the answers of the other tabs
  await stream.run(signal).catch((error) => {
    if (!(error instanceof Refusal)) throw error;
    if (error.code === "suspended") hand({ event: "over", data: sentence(error) });
  });
  leads = false;
}

/** Join the tabs that share a stream, if a player is signed in and the page follows something. */
function start() {
  if (part || over || !username() || !navigator.locks || !followers.length) return;
  const { signal } = (part = new AbortController());
  navigator.locks.request(NAME, { signal }, () => lead(signal)).catch(() => {}); // rejected if the tab stops before it gets the lock
}

function stop() {
  part?.abort();
  part = null;
}

/**
 * Call `again` whenever its data may have changed: on the events that concern it, when a stream begins, and without a
 * stream every `every` seconds. While the page is hidden, the call waits until the page is visible.
 * @param {() => Promise<unknown>} again @param {(event: Event) => boolean} concerns
 * @param {{boards?: string[], knows?: Follower["knows"], every?: number, always?: boolean}} [more] `knows`: whether a
 *   revision of the player's progress was read last; `always`: poll with a stream too
 */
export function follow(again, concerns, { boards = [], knows = () => false, every = 60, always = false } = {}) {
  let busy = false;
  let stale = false;
  const heard = async () => {
    stale = true;
    if (busy || document.hidden) return;
    busy = true;
    await sleep(boards.length ? Math.random() * SPREAD_MS : 0);
    stale = false;
    await again().catch(() => {}); // an error leaves the old content until the next event
    await sleep(PAUSE_MS);
    busy = false;
    if (stale) heard();
  };
  const asks = () => username() && !over && (always || !streaming(boards)) && heard();
  setInterval(asks, every * 1000);
  document.addEventListener("visibilitychange", () => !document.hidden && (stale ? heard() : asks()));
  followers.push({ concerns, knows, boards, heard });
  start();
  if (leads) want(boards);
  else channel.postMessage({ wanted: mine() });
}

/** Replace the content of an element, and keep the focus on the same control. @param {HTMLElement} place @param {Node[]} nodes */
export function replace(place, nodes) {
  const name = (/** @type {Element} */ each) =>
    each.id || (each.getAttribute("href") ?? each.getAttribute("aria-label"));
  const focused = place.contains(document.activeElement) ? document.activeElement : null;
  place.replaceChildren(...nodes);
  if (!focused) return;
  const same = [...place.querySelectorAll("a, button, input")].find((each) => name(each) === name(focused));
  if (!same) place.tabIndex = -1;
  /** @type {HTMLElement} */ (same ?? place).focus({ preventScroll: true });
}

let hidden = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hidden);
  if (document.hidden) hidden = setTimeout(stop, HIDDEN_MS);
  else start();
});
addEventListener("pagehide", stop);
addEventListener("pageshow", start);
addEventListener("session", (event) => {
  if (/** @type {CustomEvent} */ (event).detail) notice("You have been signed out.", true);
  if (who === username()) return;
  who = username();
  over = false;
  stop();
  start();
});
