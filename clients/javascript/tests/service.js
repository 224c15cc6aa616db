// @ts-check
/** What tests of the client need: a service with answers that a test sets, and a store that can fail. */

import { createServer } from "node:http";
import { after, before, beforeEach } from "node:test";
import { memoryStore, Solisync } from "../src/solisync.js";

export const DAY = 86_400_000;
export const GONE = { status: 404, code: "user_not_found" };
export const REFUSED = { status: 401, code: "unauthorized" };
const STATS = {
  games_played: 0,
  games_won: 0,
  games_lost: 0,
  win_streak_current: 0,
  win_streak_best: 0,
  lifetime_score: 0,
};
export const EMPTY = {
  user_id: "",
  stats: STATS,
  achievements: [],
  progress: { total_xp: 0, weekly_goal_progress: {} },
};

/** The state of the service, which begins anew before each test. */
export const service = {
  url: "",
  /** The answers by route: a status with an error code and headers, or an object. @type {Record<string, any>} */
  answers: {},
  /** The requests: route, and body. @type {[string, any][]} */
  asked: [],
  /** The games that are counted. @type {Set<string>} */
  counted: new Set(),
};
let token = 0;

/** The answer of a request with progress. */
export const merged = () => {
  const { size } = service.counted;
  return { ...EMPTY, stats: { ...STATS, games_played: size, games_won: size } };
};

/** A pair of tokens of an account. @param {string} account */
export const pair = (account) => ({
  access_token: `h.${Buffer.from(JSON.stringify({ sub: account })).toString("base64url")}.${++token}`,
  refresh_token: `r${token}`,
});

const server = createServer(async (request, response) => {
  let text = "";
  for await (const piece of request) text += piece;
  const path = String(request.url);
  service.asked.push([path, JSON.parse(text || "{}")]);
  const answer = service.answers[path] ?? { merged: merged() };
  const given = typeof answer === "function" ? answer(JSON.parse(text || "{}")) : answer;
  if (given.code)
    response
      .writeHead(given.status, { "Error-Code": given.code, ...given.headers })
      .end(JSON.stringify({ error: given.code }));
  else response.writeHead(200).end(JSON.stringify(given));
});
before(
  () =>
    new Promise((resolve) =>
      server.listen(0, "127.0.0.1", () => {
        service.url = `http://127.0.0.1:${Object(server.address()).port}`;
        resolve(null);
      }),
    ),
);
after(() => {
  server.closeAllConnections();
  server.close();
});

/** The bodies of the requests of a route since the last call of `forget`. @param {string} path */
export const bodies = (path) => service.asked.filter(([each]) => each === path).map(([, body]) => body);
/** How often a route was asked. @param {string} path */
export const times = (path) => bodies(path).length;
export const forget = () => (service.asked = []);

beforeEach(() => {
  forget();
  service.counted = new Set();
  service.answers = {
    "/api/auth/login": () => pair("ann"),
    "/api/auth/refresh": () => pair("ann"),
    "/api/replays": ({ game_id }) => ({ id: `of ${game_id}` }),
    "/api/games": ({ games }) => {
      const isNew = games.map((/** @type {any} */ { game_id }) => !service.counted.has(game_id));
      for (const { game_id } of games) service.counted.add(game_id);
      return { games: isNew.map((/** @type {boolean} */ counted) => ({ counted, error: null })), merged: merged() };
    },
  };
});

/** Answer requests with an access token so, and refuse refreshes. @param {object} answer */
export const refuse = (answer) =>
  Object.assign(service.answers, { "/api/sync/pull": answer, "/api/games": answer, "/api/auth/refresh": REFUSED });

/** A store that can fail, as on a full disk. @param {any} [value] */
export function brittle(value) {
  const inner = memoryStore(value);
  const store = {
    full: false,
    unreadable: false,
    ...inner,
    async read() {
      if (store.unreadable) throw new Error("unreadable");
      return inner.read();
    },
    async change(/** @type {any} */ alter) {
      if (store.full || store.unreadable) throw new Error("full");
      return inner.change(alter);
    },
  };
  return store;
}

export const clock = { now: Date.UTC(2026, 10, 20) };
/** A client, as after a start. @param {any} store @param {boolean} [background] */
export function started(store, background = false) {
  const solis = new Solisync(service.url, { store, background, now: () => new Date(clock.now) });
  const told = /** @type {string[]} */ ([]);
  solis.on("signedOut", (why) => told.push(`signedOut ${why}`));
  solis.on("signedIn", () => told.push("signedIn"));
  solis.on("trouble", ({ code }) => told.push(code));
  return { solis, told };
}

export const id = (/** @type {number} */ number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
export const game = (/** @type {number} */ number, replay = {}) => ({
  id: id(number),
  won: true,
  score: 5,
  seconds: 9,
  draw: /** @type {1} */ (1),
  replay,
});
