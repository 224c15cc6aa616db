// @ts-check
/**
 * Sending the player's journal: finished games as a push of progress, won games as uploads.
 *
 * A push without an answer is sent again with the same bytes before anything else, so the server counts it once. An
 * upload is repeated in the same way: the server stores a game_id with the same bytes once.
 */

import { ask, readOwn } from "./api.js";
import { Refusal, username } from "./http.js";
import { change, journalOf, journals, localTime, take } from "./journal.js";
import { exclusively } from "./locks.js";
import { withGames } from "./progress.js";

/** @typedef {{error: Refusal, until: number}} Trouble the error of an attempt, and the time of the next one */

const AGAIN_S = 60;

/** The reason why the outbox isn't empty, or null. @type {Trouble | null} */
export let trouble = null;
let pulled = ""; // the player whose progress this page has pulled
let timer = 0;
/** @type {Set<string>} wins whose upload the server has refused, and would refuse again */
const refusedWins = new Set();

/** @param {string} body */
const json = (body) => new Blob([body], { type: "application/json" });

/** @param {string} name */
const mine = async (name) => journalOf(await journals(), name);

/** @param {string} name @param {import("./journal.js").Journal} journal */
async function push(name, journal) {
  if (!journal.sent) return;
  const answer = await ask("POST", "/api/sync/push", { body: json(journal.sent.body), as: name });
  await take(name, (await answer.json()).merged, journal);
}

/** Push all games of the journal. @param {string} name */
async function count(name) {
  const before = await mine(name);
  if (before.sent) await push(name, before);
  else if (pulled !== name || !before.base) await take(name, (await readOwn("/api/sync/pull", name)).merged, before);
  pulled = name;
  await push(name, await change((all) => {
    const journal = journalOf(all, name);
    const { base, games } = journal;
    if (games.length) journal.sent ??= { body: JSON.stringify(withGames(base, games, localTime(new Date()))), games: games.length };
    return structuredClone(journal);
  }));
}

/** Upload all wins of the journal. @param {string} name */
async function upload(name) {
  const next = async () => (await mine(name)).wins.find(({ id }) => !refusedWins.has(id));
  for (let win = await next(); win; win = await next()) {
    const { id, body } = win;
    refusedWins.add(id);
    const answer = await ask("POST", "/api/replays", { body: json(body), as: name }).catch((error) => {
      if (error.passes) refusedWins.delete(id);
      throw error;
    });
    const replay = (await answer.json()).id;
    await change((all) => {
      const journal = journalOf(all, name);
      journal.wins = journal.wins.filter((other) => other.id !== id);
      all.uploaded[id] = replay;
    });
  }
}

/** Change the journal after a refused push or upload. @param {string} name @param {Refusal} error */
const refused = (name, error) =>
  change((all) => {
    const journal = journalOf(all, name);
    if (error.code === "user_not_found") delete all.of[name];
    // The server stored nothing. The next attempt begins with a pull.
    else if (error.status === 400) Object.assign(journal, { sent: null, base: null });
  });

/** Send everything, unless it must wait. Set `trouble` to the obstacle, and dispatch the event "outbox". */
export async function settle(forced = false) {
  const name = username();
  const waits = () => !forced && trouble && Date.now() < trouble.until;
  if (!name || waits()) return;
  clearTimeout(timer);
  if (forced) refusedWins.clear();
  await exclusively("solisync.outbox", async () => {
    if (waits()) return; // an attempt that has just ended requires a pause
    trouble = null;
    for (const work of [upload, count]) {
      try {
        await work(name);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        if (!error.passes) await refused(name, error);
        const until = error.passes ? Date.now() + 1000 * (error.wait || AGAIN_S) : Infinity;
        trouble = { error, until };
        if (error.status !== 400) break;
      }
    }
  });
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
  pulled = "";
  trouble = null;
  settle(true);
});
document.addEventListener("visibilitychange", whenVisible);
