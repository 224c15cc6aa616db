// @ts-check
/**
 * Sending a journal: finished games as a push of progress, won games as uploads.
 *
 * A push without an answer is sent again with the same bytes before anything else, so the service counts it once. An
 * upload is repeated in the same way: the service stores a game_id with the same bytes once.
 */

import { accept, journalOf, localTime } from "./journals.js";
import { DAY_MS, withGames } from "./progress.js";

/**
 * @typedef {import("./journals.js").Journals} Journals
 * @typedef {import("./journals.js").Journal} Journal
 * @typedef {{read: () => Promise<Journals>, change: <T>(alter: (all: Journals) => T) => Promise<T>}} Kept
 *   the stored journals; each change is one transaction
 * @typedef {(method: string, path: string, body: string | null, name: string) => Promise<any>} Send
 *   send a request as this player only, and return its JSON; errors have `status`, `code` and `passes`
 */

const FINAL = [400, 413]; // a replay with this answer would have it again
const REFUSED = 20;

/** Remove a win that is uploaded, or set it aside, as one of the newest of those that the service refuses. @param {Journal} journal @param {string} id @param {boolean} refused */
function settleWin(journal, id, refused) {
  journal.full = 0;
  const settled = journal.wins.find((win) => win.id === id);
  if (settled && refused) settled.refused = true;
  const aside = journal.wins.filter((win) => win.refused).slice(-REFUSED);
  journal.wins = journal.wins.filter((win) => (refused || win !== settled) && (!win.refused || aside.includes(win)));
}

/** Sends the journals of players. Only one sender at a time may work on the same journals. */
export class Sender {
  /** @param {Kept} kept @param {Send} send @param {() => Date} [now] */
  constructor(kept, send, now = () => new Date()) {
    this.kept = kept;
    this.send = send;
    this.now = now;
  }

  /** @param {string} name @returns {Promise<Journal>} */
  async #mine(name) {
    return journalOf(await this.kept.read(), name);
  }

  /** @param {string} name @param {Journal} journal @param {any} merged */
  #accept(name, journal, merged) {
    return this.kept.change((all) => accept(all, name, merged, journal));
  }

  /** Send a request; after a 400, by which nothing was stored, change the journal. @param {string} name @param {string} method @param {string} path @param {string | null} body @param {Partial<Journal>} [after400] */
  async #ask(name, method, path, body, after400 = {}) {
    try {
      return await this.send(method, path, body, name);
    } catch (error) {
      if (error.status === 400 && !error.passes)
        await this.kept.change((all) => Object.assign(journalOf(all, name), after400));
      throw error;
    }
  }

  /** Push the stored bytes, if there are any. @param {string} name @param {Journal} journal */
  async #push(name, journal) {
    if (!journal.sent) return;
    const again = { sent: null, base: null }; // the next attempt begins with a pull
    const { merged } = await this.#ask(name, "POST", "/api/sync/push", journal.sent.body, again);
    await this.#accept(name, journal, merged);
  }

  /** Push all games. @param {string} name @param {boolean} pulls whether to pull first, as after each start and login */
  async count(name, pulls) {
    const before = await this.#mine(name);
    if (before.sent) await this.#push(name, before);
    else if (pulls || !before.base)
      await this.#accept(name, before, (await this.#ask(name, "GET", "/api/sync/pull", null)).merged);
    for (;;) {
      const journal = await this.kept.change((all) => {
        const { base, games, sent } = journalOf(all, name);
        if (games.length && base && !sent) {
          const body = JSON.stringify(withGames(base, games, localTime(this.now())));
          journalOf(all, name).sent = { body, games: games.length };
        }
        return structuredClone(journalOf(all, name));
      });
      if (!journal.sent) return;
      await this.#push(name, journal);
    }
  }

  /**
   * Upload all wins, and throw the first refusal at the end. After "replay_storage_full", wins wait for a day; a win
   * that the service refuses for another reason is set aside.
   * @param {string} name @param {boolean} [again] try also these wins now
   */
  async upload(name, again = false) {
    const tried = new Set();
    const next = async () => {
      const { wins, full = 0 } = await this.#mine(name);
      if (!again && Math.abs(Number(this.now()) - full) < DAY_MS) return undefined;
      return wins.find(({ id, refused }) => !tried.has(id) && (again || !refused));
    };
    let refusal;
    for (let win = await next(); win; win = await next()) {
      const { id, body } = win;
      tried.add(id);
      let replay = "";
      try {
        replay = (await this.send("POST", "/api/replays", body, name)).id;
      } catch (error) {
        if (!FINAL.includes(error.status) || error.passes) throw error;
        refusal ??= error;
        if (error.code === "replay_storage_full") {
          await this.kept.change((all) => void (journalOf(all, name).full = Number(this.now())));
          break;
        }
      }
      await this.kept.change((all) => {
        if (replay) all.uploaded[id] = replay;
        settleWin(journalOf(all, name), id, !replay);
      });
    }
    if (refusal) throw refusal;
  }
}
