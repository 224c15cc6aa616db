// @ts-check
/**
 * Live events (docs/live.md): one stream for all tabs of this browser.
 *
 * The tab that holds the lock reads the stream and passes its events on. A tab takes part until it has been hidden for
 * five minutes. Where there is no stream (switched off, refused, no locks on plain HTTP), pages ask now and then.
 */

import { ask } from "./api.js";
import { Refusal, username } from "./http.js";
import { sleep } from "./locks.js";
import { byId, h, sentence, signInPath } from "./page.js";

/** @typedef {{event: string, data?: any, boards?: string[]}} Event an event of the stream, and the boards that it tells of */
/** @typedef {{concerns: (event: Event) => boolean, knows: (revision: string | null) => boolean, boards: string[], heard: () => void}} Follower */

const NAME = "solisync.live";
const SILENCE_MS = 60_000; // a stream has a line every 25 s
const HIDDEN_MS = 300_000;
const RETRY_MS = 60_000;
const PAUSE_MS = 1_000; // the least between two reads of the same
const SPREAD_MS = 500; // a board has many readers
const BOARDS = 3; // of one stream

const channel = new BroadcastChannel(NAME);
/** @type {Follower[]} */
const followers = [];
/** Ends this tab's part. @type {AbortController | null} */
let part = null;
/** Ends the stream that this tab reads or is about to open. @type {AbortController | null} */
let stream = null;
/** The boards that this tab's stream tells of. @type {string[]} */
let asked = [];
/** When this tab last heard of a stream, and of which boards that tells. */
let life = { at: -Infinity, boards: /** @type {string[]} */ ([]) };
let open = false;
let over = false;
let who = username();

/** Whether there is a stream that tells of certain boards. @param {string[]} [boards] */
export const streaming = (boards = []) =>
  performance.now() - life.at < SILENCE_MS && boards.every((board) => life.boards.includes(board));

/** Say what ended, as long as the page is open. @param {string} text @param {boolean} [signIn] */
function notice(text, signIn) {
  byId("over")?.remove();
  byId("main").prepend(h("p", { id: "over", class: "refused", role: "alert" }, text, " ",
    signIn && h("a", { href: signInPath(), class: "button" }, "Sign in")));
}

/** Take in what the stream said. @param {Event} event */
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

/** Hear something, and pass it on to the other tabs. @param {Event} event */
function hand(event) {
  event.boards = asked;
  channel.postMessage(event);
  hear(event);
}

/** Let the stream tell of these boards too. Of more than it may, the last that were asked for. @param {string[]} boards */
function want(boards) {
  const missing = boards.filter((board) => !asked.includes(board));
  if (!missing.length) return open && hand({ event: "alive" });
  asked = [...asked, ...missing].slice(-BOARDS);
  stream?.abort();
}

const mine = () => followers.flatMap(({ boards }) => boards);

channel.onmessage = ({ data }) => {
  if (data.wanted) {
    if (stream) want(data.wanted);
  } else if (data.event === "who") channel.postMessage({ wanted: mine() });
  else hear(data);
};

/** Read a stream to its end; returns the reason, if there was one, and when to open the next. @param {Response} answer */
async function listen(answer) {
  const reader = /** @type {ReadableStream<any>} */ (answer.body).pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let retry = PAUSE_MS;
  for (;;) {
    const silence = setTimeout(() => stream?.abort(), SILENCE_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(silence));
    if (done) return { reason: "", retry };
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: ?(.*)/s)));
      if (fields.retry) retry = Number(fields.retry);
      const data = fields.data && JSON.parse(fields.data);
      hand({ event: fields.event ?? "alive", data });
      if (fields.event === "end") return { reason: data.reason, retry };
    }
  }
}

/** Keep a stream open, in the one tab that does. @param {AbortSignal} signal */
async function lead(signal) {
  asked = mine().slice(-BOARDS);
  stream = new AbortController();
  channel.postMessage({ event: "who" });
  await sleep(50); // for the answers
  for (let wait = PAUSE_MS; !signal.aborted; ) {
    stream = new AbortController();
    const either = AbortSignal.any([signal, stream.signal]);
    try {
      const query = new URLSearchParams(asked.map((board) => ["board", board]));
      const answer = await ask("GET", `/api/events?${query}`, { signal: either });
      open = true;
      const { reason, retry } = await listen(answer).finally(() => (open = false));
      if (reason === "superseded") break;
      wait = ["stopping", "slow"].includes(reason) ? retry : PAUSE_MS; // the next answer says what has happened
    } catch (error) {
      if (either.aborted) continue;
      if (error instanceof Refusal && error.status) {
        if (error.code === "suspended") hand({ event: "over", data: sentence(error) });
        if (error.status !== 429 && error.status !== 503) break;
        wait = error.wait * 1000;
      }
      wait = Math.min(Math.max(wait * 2, PAUSE_MS), RETRY_MS);
    }
    await Promise.race([sleep(wait), new Promise((done) => signal.addEventListener("abort", done))]);
  }
  stream = null;
}

/** Take part, if there is something to follow for a player. */
function start() {
  if (part || over || !username() || !navigator.locks || !followers.length) return;
  const { signal } = (part = new AbortController());
  navigator.locks.request(NAME, { signal }, () => lead(signal)).catch(() => {}); // rejected if it ends before its turn
}

function stop() {
  part?.abort();
  part = null;
}

/**
 * Read something again whenever it may have changed: on the events that concern it, when a stream begins, and every so
 * many seconds where no stream tells. Never while the page is hidden; then once as soon as it is seen.
 * @param {() => Promise<unknown>} again @param {(event: Event) => boolean} concerns
 * @param {{boards?: string[], knows?: Follower["knows"], every?: number, always?: boolean}} [more] `knows`: whether a
 *   revision of the player's progress is what was read; `always`: every so many seconds with a stream too
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
    await again().catch(() => {}); // what is shown stays until the next time
    await sleep(PAUSE_MS);
    busy = false;
    if (stale) heard();
  };
  const asks = () => username() && !over && (always || !streaming(boards)) && heard();
  setInterval(asks, every * 1000);
  document.addEventListener("visibilitychange", () => !document.hidden && (stale ? heard() : asks()));
  followers.push({ concerns, knows, boards, heard });
  start();
  if (stream) want(boards);
  else channel.postMessage({ wanted: mine() });
}

/** Put newer content into an element, and the focus where it was. @param {HTMLElement} place @param {Node[]} nodes */
export function replace(place, nodes) {
  const name = (/** @type {Element} */ each) => each.id || (each.getAttribute("href") ?? each.getAttribute("aria-label"));
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
