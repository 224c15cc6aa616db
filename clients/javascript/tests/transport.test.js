// @ts-check
/** Each unusable answer is a typed error, and only what may pass is repeated. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { SolisyncError } from "../src/error.js";
import { repeated, request, secondsOf } from "../src/transport.js";

/** @type {import("node:http").RequestListener} */
let answer;
const server = createServer((asked, answered) => answer(asked, answered));
let url = "";
before(
  () =>
    new Promise((resolve) =>
      server.listen(0, "127.0.0.1", () => {
        url = `http://127.0.0.1:${Object(server.address()).port}/`;
        resolve(null);
      }),
    ),
);
after(() => server.close());

/** The error of a request that is answered like this. @param {import("node:http").RequestListener} given @returns {Promise<SolisyncError>} */
const failure = (given) => {
  answer = given;
  return request(url).then(
    () => assert.fail("no error"),
    (error) => error,
  );
};

/** @type {Record<string, import("node:http").RequestListener>} */
const UNUSABLE = {
  "a page": (_, answered) => answered.end("<h1>Welcome to our Wi-Fi</h1>"),
  nothing: (_, answered) => answered.end(),
  "half an answer": (_, answered) => {
    answered.writeHead(200, { "Content-Length": 50 });
    answered.write("{");
    setTimeout(() => answered.destroy(), 20);
  },
  "a redirect": (_, answered) => answered.writeHead(302, { Location: "/other" }).end(),
  "a proxy's 401": (_, answered) => answered.writeHead(401).end("<h1>Please pay</h1>"),
  "a closed connection": (_, answered) => void answered.destroy(),
};
for (const [what, given] of Object.entries(UNUSABLE)) {
  test(`${what} is an error with the code network`, async () => {
    const error = await failure(given);
    assert.ok(error instanceof SolisyncError);
    assert.equal(error.code, "network");
    assert.ok(error.passes);
  });
}

test("an error of the service has its code, text and headers", async () => {
  const headers = {
    "Error-Code": "suspended",
    "X-Request-Id": "7",
    "Suspended-Until": "2026-12-01T00:00:00Z",
    "Retry-After": "3",
  };
  const error = await failure((_, answered) => answered.writeHead(403, headers).end('{"error": "no"}'));
  const { status, code, message, requestId, retryAfter, until, passes } = error;
  assert.deepEqual([status, code, message, requestId, retryAfter, passes], [403, "suspended", "no", "7", 3, false]);
  assert.equal(until?.getTime(), Date.UTC(2026, 11, 1));
});

test("an aborted request throws the reason of its signal", async () => {
  answer = () => {};
  await assert.rejects(request(url, { signal: AbortSignal.abort(new Error("enough")) }), /enough/);
});

test("Retry-After may be a date by the server's clock", () => {
  const headers = { "Retry-After": "Fri, 20 Nov 2026 12:00:02 GMT", Date: "Fri, 20 Nov 2026 12:00:00 GMT" };
  assert.equal(secondsOf(new Headers(headers)), 2);
  assert.equal(secondsOf(new Headers({ "Retry-After": "soon" })), 0);
});

/** How often `repeated` runs work that fails like this. @param {SolisyncError} error */
async function attempts(error) {
  let count = 0;
  await repeated(async () => {
    count += 1;
    throw error;
  }).catch(() => {});
  return count;
}

test("an error that may pass is repeated twice", async () => {
  assert.equal(await attempts(new SolisyncError(503, "unavailable", "")), 3);
});

test("an error that stays is not repeated", async () => {
  assert.equal(await attempts(new SolisyncError(400, "bad_json", "")), 1);
});

test("a long wait is the caller's", async () => {
  assert.equal(await attempts(new SolisyncError(429, "rate_limited", "", { retryAfter: 6 })), 1);
});
