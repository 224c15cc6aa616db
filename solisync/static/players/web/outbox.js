// @ts-check
/** When the player's journal is sent: after each game, and again after errors. client.js does it. */

import { Client } from "./client.js";
import { username } from "./http.js";
import { kept } from "./journal.js";
import { carrier } from "./session.js";

/** @typedef {{error: import("./http.js").Refusal, until: number}} Trouble the error of an attempt, and the time of the next one */

const AGAIN_S = 60;

/** The reason why the outbox isn't empty, or null. @type {Trouble | null} */
export let trouble = null;
let timer = 0;

const client = new Client("", kept, carrier, false);

/** Send everything, unless it must wait. Set `trouble` to the obstacle, and dispatch the event "outbox". @param {boolean} [forced] don't wait @param {boolean} [again] try again what the service has refused */
export async function settle(forced = false, again = false) {
  if (!username() || (!forced && trouble && Date.now() < trouble.until)) return;
  clearTimeout(timer);
  trouble = await client.sync({ again }).then(
    () => null,
    (error) => {
      if (error.passes === undefined) throw error; // a mistake in a script
      return { error, until: error.passes ? Date.now() + 1000 * (error.retryAfter || AGAIN_S) : Infinity };
    },
  );
  if (trouble && trouble.until < Infinity) timer = setTimeout(whenVisible, trouble.until - Date.now());
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
