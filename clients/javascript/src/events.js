// @ts-check
/** A stream of events, which opens again after each end (docs/live.md). */

import { unanswered } from "./error.js";
import { sleep } from "./transport.js";

/** @typedef {{event: string, data?: any}} StreamEvent the event "alive" is a heartbeat */

const SILENCE_MS = 60_000; // the service sends a line every 25 s
const PAUSE_MS = 1_000;
const PAUSE_MOST_MS = 60_000;

export class Stream {
  /** Whether it is open now, and has begun with an event of the service. */
  open = false;
  #retry = PAUSE_MS;
  #current = new AbortController();

  /** @param {(signal: AbortSignal) => Promise<Response>} ask sends the request; its errors have `passes`, and `retryAfter` in seconds @param {(event: StreamEvent) => void} hear */
  constructor(ask, hear) {
    this.ask = ask;
    this.hear = hear;
  }

  /** Close the stream, and open it again without a pause. */
  restart() {
    this.#current.abort();
  }

  /** Read a stream to its end, or to a minute of silence. Return the reason of the end, or "". @param {Response} answer */
  async #listen(answer) {
    const reader = /** @type {ReadableStream<any>} */ (answer.body).pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const silence = setTimeout(() => reader.cancel().catch(() => {}), SILENCE_MS);
      const { done, value } = await reader.read().finally(() => clearTimeout(silence));
      if (done) return "";
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: ?(.*)/s)));
        if (fields.retry) this.#retry = Number(fields.retry);
        const data = fields.data && JSON.parse(fields.data);
        if (fields.event === "hello") this.open = true;
        this.hear({ event: fields.event ?? "alive", data });
        if (fields.event === "end") return data.reason;
      }
    }
  }

  /** Keep the stream open until `signal`, or until the service has too many streams of the player, or refuses it permanently: then throw the error. @param {AbortSignal} signal */
  async run(signal) {
    for (let wait = PAUSE_MS; !signal.aborted;) {
      this.#current = new AbortController();
      const either = AbortSignal.any([signal, this.#current.signal]);
      try {
        const reason = await this.#listen(await this.ask(either));
        if (!this.open && !reason) throw unanswered(); // from another server
        if (reason === "superseded") return;
        wait = ["", "stopping", "slow"].includes(reason) ? this.#retry : PAUSE_MS; // the next request shows the cause
      } catch (error) {
        if (either.aborted) continue;
        if (error.passes === false) throw error; // an error of the stream itself has no such field
        if (this.open) wait = 0;
        wait = Math.max(1000 * (error.retryAfter ?? 0), Math.min(Math.max(2 * wait, this.#retry), PAUSE_MOST_MS));
      } finally {
        this.open = false;
      }
      await sleep(wait, either);
    }
  }
}
