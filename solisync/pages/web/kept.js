// @ts-check
/** What this browser keeps of the page to play: the game, the settings; and which of its tabs plays. */

import { local } from "./http.js";
import { restored } from "./game.js";

const GAME = "solisync.game";
const SETTINGS = "solisync.play";
const COLOURS = "solisync.colours"; // which replays share
const WAIT_MS = 400; // for a tab that is just being left, such as this one before a reload

/** @typedef {{draw: 1 | 3, tap: boolean, winnable: boolean, four: boolean, large: boolean, left: boolean}} Settings */

/** @type {Settings} */
const DEFAULTS = { draw: 1, tap: true, winnable: false, four: false, large: false, left: false };

/** @param {string} key */
function stored(key) {
  try {
    return JSON.parse(local?.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

/** Store a value; false where the browser refuses. @param {string} key @param {any} value */
function store(key, value) {
  try {
    local?.setItem(key, JSON.stringify(value));
    return Boolean(local);
  } catch {
    return false;
  }
}

/** The game that was played last, as far as it can be played again. */
export const keptGame = () => restored(stored(GAME));

/** @param {import("./game.js").Game} game */
export const keepGame = (game) => store(GAME, game.kept());

/** @returns {Settings} */
export function settings() {
  const { draw, ...marks } = Object(stored(SETTINGS));
  if (local) marks.four = local.getItem(COLOURS) === "four";
  const known = Object.entries(DEFAULTS).map(([name, value]) => [name, typeof value === "boolean" ? marks[name] ?? value : draw === 3 ? 3 : 1]);
  return /** @type {Settings} */ (Object.fromEntries(known));
}

/** @param {Settings} chosen */
export function keepSettings(chosen) {
  if (store(SETTINGS, chosen)) local?.setItem(COLOURS, chosen.four ? "four" : "two");
}

/** One tab of the browser plays. */
export class Seat {
  /** @param {() => void} lost called when another tab takes over @param {() => void} freed called when it is closed */
  constructor(lost, freed) {
    this.lost = lost;
    this.freed = freed;
    this.taken = false;
    if (navigator.locks) return;
    // On plain HTTP the tabs ask one another.
    this.channel = new BroadcastChannel(GAME);
    this.channel.onmessage = ({ data }) => {
      if (data === "asks" && this.taken) this.channel?.postMessage("plays");
      if (data === "plays") this.answered = true;
      if (data === "takes over") this.#leave();
    };
  }

  #leave() {
    if (this.taken) this.lost();
    this.taken = false;
  }

  /** Whether this tab plays from now on; `over`: even if another one does. @param {boolean} over @returns {Promise<boolean>} */
  async take(over) {
    if (this.channel) {
      this.answered = false;
      this.channel.postMessage(over ? "takes over" : "asks");
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS / 2));
      return (this.taken = over || !this.answered);
    }
    return new Promise((resolve) => {
      let waited = false;
      setTimeout(() => {
        waited = !this.taken;
        resolve(this.taken);
      }, WAIT_MS);
      navigator.locks.request(GAME, { steal: over }, () => {
        resolve((this.taken = true));
        if (waited) this.freed();
        return new Promise(() => {}); // until the page is left
      }).catch(() => this.#leave()); // another tab has taken it
    });
  }
}
