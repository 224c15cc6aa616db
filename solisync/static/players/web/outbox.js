// @ts-check
/** When the player's journal is sent, and what pages say until then. client.js sends it. */

import { Client } from "./client.js";
import { DAY_HOURS } from "./goal.js";
import { username, waits } from "./http.js";
import { kept } from "./journal.js";
import { countDown, counted, h, sentence } from "./page.js";
import { carrier } from "./session.js";

/** @typedef {{error: import("./http.js").Refusal, waits: boolean}} Trouble the error of an attempt, and whether the next one must wait */

const AGAIN_S = 60;

/** The reason why the outbox isn't empty, or null. @type {Trouble | null} */
export let trouble = null;
let timer = 0;

const client = new Client("", kept, carrier);

let last = Promise.resolve();

/** Send everything, unless it must wait. Calls run one after the other, so that each knows the trouble of the one before. @param {boolean} [forced] don't wait @param {boolean} [again] try again what the service has refused */
export const settle = (forced = false, again = false) =>
  (last = last.catch(() => {}).then(() => attempt(forced, again)));

/** Set `trouble` to the obstacle, and dispatch the event "outbox". @param {boolean} forced @param {boolean} again */
async function attempt(forced, again) {
  if (!username() || (!forced && trouble?.waits)) return;
  clearTimeout(timer);
  /** @type {any} */
  let error = null;
  await client.sync({ again }).catch((refusal) => (error = refusal));
  if (error && error.passes === undefined) throw error; // a mistake in a script
  if (!error && waits()) await kept.change(() => {}).catch(() => {}); // notes that nothing waits
  /** @type {Trouble | null} */
  const failed = error && { error, waits: true };
  trouble = failed;
  const next = () => {
    if (failed) failed.waits = false;
    whenVisible();
  };
  if (error?.passes) timer = setTimeout(next, 1000 * (error.retryAfter || AGAIN_S));
  dispatchEvent(new Event("outbox"));
}

function whenVisible() {
  if (!document.hidden) settle();
}

addEventListener("online", () => settle(true));
let player = username();
addEventListener("session", () => {
  if (player === username()) return;
  player = username();
  trouble = null;
  settle(true);
});
document.addEventListener("visibilitychange", whenVisible);

/** What waits, and why. @param {import("./http.js").Refusal} error @param {import("./journal.js").Win[]} wins @param {number} games */
export function inWords(error, wins, games) {
  const late = wins.some(({ day }) => day)
    ? ` To appear on a day’s board, a win must arrive within ${DAY_HOURS} hours of the start of that day (UTC).`
    : "";
  const count = wins.length || games;
  const waits = `${counted(count, wins.length ? "win" : "game")} ${count === 1 ? "waits" : "wait"} to be sent.${late}`;
  const full = error.code === "replay_storage_full" && h("a", { href: "/account" }, "Delete some of your games");
  return h("p", {}, error.code === "network" ? `Not connected: ${waits}` : `${waits} ${sentence(error)} `, full);
}

/** Add a button that tries again, when the service allows it. @param {HTMLElement} place */
export function addButton(place) {
  const again = h("button", { type: "button", click: () => settle(true, true) }, "Try again");
  place.append(again);
  if (trouble?.error.retryAfter) countDown(trouble.error.retryAfter, place, again);
}
