// @ts-check
/** A stream opens again after each end, as docs/live.md says. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Stream } from "../src/events.js";
import { SolisyncError } from "../src/error.js";

const hello = 'event: hello\ndata: {"revision":null}\n\n';

/** A body of these pieces; it breaks off instead of ending if the last one is an error. @param {(string | Error)[]} pieces */
const body = (...pieces) =>
  new Response(
    new ReadableStream({
      pull(controller) {
        const piece = pieces.shift();
        if (piece === undefined) controller.close();
        else if (piece instanceof Error) controller.error(piece);
        else controller.enqueue(new TextEncoder().encode(piece));
      },
    }),
  );

/** Run a stream with these answers; return the events, and the pauses before the requests. @param {(Response | Error)[]} answers */
async function run(...answers) {
  const ended = new AbortController();
  const heard = /** @type {string[]} */ ([]);
  const pauses = /** @type {number[]} */ ([]);
  let before = performance.now();
  const stream = new Stream(
    async () => {
      pauses.push(performance.now() - before);
      const answer = answers.shift();
      if (!answers.length) ended.abort();
      if (answer instanceof Error) throw answer;
      return /** @type {Response} */ (answer);
    },
    ({ event }) => {
      heard.push(event);
      before = performance.now();
    },
  );
  const error = await stream.run(ended.signal).then(
    () => null,
    (error) => error,
  );
  return { heard, pauses, error };
}

test("events are read from pieces of any size", async () => {
  const { heard } = await run(body(...`retry: 10\n\n${hello}:\n\n${hello}`.split("")), body());
  assert.deepEqual(heard, ["alive", "hello", "alive", "hello"]);
});

test("the next stream waits for the time in retry, also after a break", async () => {
  const { pauses } = await run(body(`retry: 150\n\n${hello}`), body(hello, new Error("reset")), body());
  assert.ok(pauses[1] >= 149, String(pauses));
  assert.ok(pauses[2] >= 149, String(pauses));
});

test("the pauses grow when an answer has no events, as the login page of a network", async () => {
  const page = () => body("<html></html>");
  const { pauses } = await run(body(`retry: 20\n\n${hello}`), page(), page(), page(), body());
  const between = pauses.slice(2).map((since, place) => since - pauses[place + 1]);
  assert.ok(between[0] >= 19 && between[1] >= 39 && between[2] >= 79, String(between));
});

test("a stream that was superseded stays closed", async () => {
  const { pauses } = await run(body('event: end\ndata: {"reason":"superseded"}\n\n'), body(), body());
  assert.equal(pauses.length, 1);
});

test("a refusal that stays ends the stream", async () => {
  const refusal = new SolisyncError(404, "not_found", "");
  assert.equal((await run(refusal, body(), body())).error, refusal);
});
