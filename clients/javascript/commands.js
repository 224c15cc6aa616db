// @ts-check
/** The commands of clients/conformance/README.md, for Node and browsers. */

import { Solisync, SolisyncError } from "./src/solisync.js";

const SHOWN = [
  "games_played",
  "games_won",
  "games_lost",
  "lifetime_score",
  "draw_one_wins",
  "draw_three_wins",
  "best_single_score",
  "fastest_win_seconds",
];
const POLL_MS = 200;

/** Return a function from a command to its answer. @param {(directory: string) => import("./src/stores.js").Store} newStore @param {string[]} [can] further abilities of the driver */
export function commands(newStore, can = []) {
  /** @type {Solisync} */
  let solis;
  let ahead = 0;
  /** @type {Record<string, {heard: any[], waiting: ((data: any) => void)[]}>} */
  let events = {};
  const queue = (/** @type {string} */ name) => (events[name] ??= { heard: [], waiting: [] });

  /** @type {Record<string, (command: any) => any>} */
  const work = {
    async open({ url, store, clock }) {
      solis?.close();
      ahead = clock;
      events = {};
      solis = new Solisync(url, {
        store: newStore(store),
        background: false,
        now: () => new Date(Date.now() + 1000 * ahead),
      });
      solis.on("event", ({ event, data }) => {
        const { heard, waiting } = queue(event);
        const next = waiting.shift();
        if (next) next(data);
        else heard.push(data);
      });
      return { signed_in: (await solis.player()) !== null, can: ["verdict", "event", "keys", ...can] };
    },
    clock: ({ seconds }) => void (ahead = seconds),
    register: ({ username, password }) => solis.register(username, password),
    login: ({ username, password }) => solis.login(username, password),
    guest: ({ anew }) => solis.guest({ anew }),
    claim: ({ username, password }) => solis.claim(username, password),
    join: ({ username, password }) => solis.join(username, password),
    logout: () => solis.signOut(),
    refresh: () => solis.refresh(),
    sync: () => solis.sync(),
    async me() {
      const { username, guest = false } = await solis.me();
      return { username, guest };
    },
    finish({ game: { game_id: id, draw_mode: draw, won, score, seconds, replay } }) {
      return solis.finish({ id, won, score, seconds, draw: draw === "DrawThree" ? 3 : 1, replay });
    },
    async totals() {
      const totals = await solis.totals();
      return Object.fromEntries(SHOWN.map((name) => [name, totals[name]]));
    },
    async verdict({ game_id: id }) {
      for (;;) {
        const verdict = await solis.verdict(id);
        if (verdict && verdict.status !== "pending") return { status: verdict.status };
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    },
    event({ name }) {
      solis.stream();
      const { heard, waiting } = queue(name);
      if (heard.length) return { data: heard.shift() };
      return new Promise((resolve) => waiting.push((data) => resolve({ data })));
    },
  };

  return async (/** @type {{id: number, do: string}} */ command) => {
    const { id, do: name } = command;
    try {
      if (
        !["open", "clock", "register", "login", "guest", "finish", "sync", "totals"].includes(name) &&
        !(await solis.player())
      )
        return { id, error: { code: "signed_out" } };
      return { id, ok: (await work[name](command)) ?? {} };
    } catch (error) {
      if (!(error instanceof SolisyncError)) return { id, error: { code: "broken", message: String(error.stack) } };
      return { id, error: { code: error.code, status: error.status, retry_after: error.retryAfter || undefined } };
    }
  };
}
