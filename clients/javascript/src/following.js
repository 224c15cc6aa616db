// @ts-check
/** What a client does with the stream of events: it pulls what has changed elsewhere, and reports each verdict once. */

import { entryOf } from "./device_journal.js";
import { Stream } from "./events.js";

/**
 * @typedef {import("../messages.js").VerdictAnswer["status"]} Status
 * @typedef {object} Tools
 * @property {import("./device_journal.js").Kept} kept
 * @property {{revision: string | null, awaited: Set<string>}} seen
 * @property {(signal: AbortSignal) => Promise<Response>} open
 * @property {(name: "event" | "verdict" | "trouble", data: any) => void} tell
 * @property {() => Promise<void>} pull
 * @property {(id: string) => Promise<{status: Status} | null>} verdict
 */

export class Following {
  /** The verdicts that were reported, by replay. @type {Map<string, string>} */
  #verdicts = new Map();

  /** @param {Tools} tools */
  constructor(tools) {
    this.tools = tools;
    this.stream = new Stream(tools.open, (event) => this.#hear(event).catch((error) => tools.tell("trouble", error)));
  }

  /** @param {AbortSignal} signal */
  async run(signal) {
    await this.stream.run(signal).catch((error) => this.tools.tell("trouble", error));
  }

  /** @param {import("./events.js").StreamEvent} event */
  async #hear({ event, data }) {
    if (event === "alive") return;
    const { seen, tell, pull } = this.tools;
    tell("event", { event, data });
    if (event === "verdict") await this.#judged(data.replay_id, data.status);
    if (event === "progress" && data.own) seen.revision = data.revision;
    else if ((event === "hello" || event === "progress") && data.revision !== seen.revision) await pull();
    if (event === "hello") await this.settled(); // verdicts may have been sent before the stream was open
  }

  /** Ask for verdicts whose events may have been missed. */
  async settled() {
    const { kept, seen, verdict } = this.tools;
    for (const game of this.stream.open ? seen.awaited : []) {
      const answer = await verdict(game);
      const replay = entryOf(await kept.read(), game)?.win?.replay;
      if (replay && answer && answer.status !== "pending") await this.#judged(replay, answer.status);
    }
  }

  /** Report a verdict once. @param {string} replay @param {Status} status */
  async #judged(replay, status) {
    const { players } = await this.tools.kept.read();
    const games = Object.values(players).flatMap(({ games }) => games);
    const game = games.find(({ win }) => win?.replay === replay)?.game.game_id ?? null;
    if (game) this.tools.seen.awaited.delete(game);
    if (this.#verdicts.get(replay) === status) return;
    this.#verdicts.set(replay, status);
    this.tools.tell("verdict", { replay_id: replay, game_id: game, status });
  }
}
