// @ts-check
/** The verdict on an uploaded win, and its place on a board. It loads after the upload. */

import { read, readOwn } from "./api.js";
import { inTime } from "./goal.js";
import { counted, say } from "./page.js";

/** @typedef {import("./game.js").Game} Game */

/**
 * Ask for the verdict when an event reports one, and otherwise less and less often, but never within Retry-After. Then
 * ask for the rank.
 * @param {Game} game @param {string} replay
 * @param {(told: {verdict: any} | {rank: string | null}) => boolean} tell called with each answer; returns whether to go on
 * @param {(now: () => void) => void} waiting called before each pause, with a function that ends it
 */
export async function judge(game, replay, tell, waiting) {
  let verdict = /** @type {any} */ ({ status: "pending" });
  for (let seconds = 2; verdict.status === "pending"; seconds = Math.min(seconds * 1.6, 60)) {
    const wait = verdict.error?.retryAfter ?? 0;
    await new Promise((resolve) => {
      waiting(() => wait || resolve(undefined));
      setTimeout(resolve, Math.max(seconds, wait) * 1000);
    });
    verdict = await read(`/api/replays/${replay}/verdict`).catch(
      (/** @type {import("./http.js").Refusal} */ error) => ({
        status: error.passes ? "pending" : "refused",
        error,
      }),
    );
    if (!tell({ verdict })) return;
  }
  if (verdict.status !== "verified") return;
  say("Verified");
  tell({ rank: await rankOf(game, replay).catch(() => "Your place on the board couldn’t be loaded.") });
}

/** The place of the game on the board of its day or its deal, as a sentence; null without a display name. @param {Game} game @param {string} replay */
export async function rankOf({ day, seed, draw }, replay) {
  const board = day ? `daily/${day.date}` : `deals/${seed}/${draw === 3 ? "DrawThree" : "DrawOne"}`;
  const { entries } = await readOwn(`/api/boards/${board}?around=me`);
  const own = entries.find((/** @type {any} */ entry) => entry.own);
  const where = day ? "on the board of the day" : "on the board of this deal";
  if (!own && day && !inTime(day.date, Date.now())) return "This win arrived too late for the board of the day.";
  if (!own) return null;
  if (own.replay_id !== replay)
    return `Your best game ${where} is a different one: place ${own.rank}, ${counted(own.score, "point")}.`;
  return `Place ${own.rank ?? "beyond 10,000"} ${where}.`;
}
