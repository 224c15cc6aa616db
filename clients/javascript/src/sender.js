// @ts-check
/**
 * Sending a journal: finished games as a push of progress, won games as uploads.
 *
 * A push without an answer is sent again with the same bytes before anything else, so the service counts it once. An
 * upload is repeated in the same way: the service stores a game_id with the same bytes once.
 */

import { accept, journalOf, localTime } from "./journals.js";
import { withGames } from "./progress.js";

/**
 * @typedef {import("./journals.js").Journals} Journals
 * @typedef {import("./journals.js").Journal} Journal
 * @typedef {{read: () => Promise<Journals>, change: <T>(alter: (all: Journals) => T) => Promise<T>}} Kept
 *   the stored journals; each change is one transaction
 * @typedef {(method: string, path: string, body: string | null, name: string) => Promise<any>} Send
 *   send a request as this player only, and return its JSON; errors have `status`, `code` and `passes`
 */

/** Sends the journals of players. Only one sender at a time may work on the same journals. */
export class Sender {
  /** @type {Set<string>} wins whose upload the service has refused, and would refuse again */
  refused = new Set();

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
      if (error.code === "user_not_found") await this.kept.change((all) => void delete all.of[name]);
      else if (error.status === 400 && !error.passes) await this.kept.change((all) => Object.assign(journalOf(all, name), after400));
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
    else if (pulls || !before.base) await this.#accept(name, before, (await this.#ask(name, "GET", "/api/sync/pull", null)).merged);
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

  /** Upload all wins that the service hasn't refused. @param {string} name */
  async upload(name) {
    const next = async () => (await this.#mine(name)).wins.find(({ id }) => !this.refused.has(id));
    for (let win = await next(); win; win = await next()) {
      const { id, body } = win;
      const { id: replay } = await this.#ask(name, "POST", "/api/replays", body).catch((error) => {
        if (error.passes === false) this.refused.add(id);
        throw error;
      });
      await this.kept.change((all) => {
        const journal = journalOf(all, name);
        journal.wins = journal.wins.filter((other) => other.id !== id);
        all.uploaded[id] = replay;
      });
    }
  }
}
