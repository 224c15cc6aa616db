// @ts-check
/** The client keeps games and sessions when the store fails, and when the service refuses. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bodies,
  brittle,
  clock,
  DAY,
  EMPTY,
  forget,
  game,
  GONE,
  pair,
  refuse,
  REFUSED,
  service,
  started,
  times,
} from "./service.js";

test("a game that the store refuses is shown, is not sent, and is stored later", async () => {
  const store = brittle();
  const { solis } = started(store);
  await solis.login("ann", "password");
  store.full = true;
  await assert.rejects(solis.finish(game(1)), { code: "storage", passes: true });
  assert.equal((await solis.totals()).games_won, 1);
  assert.equal(await solis.unsent(), 1);
  await assert.rejects(solis.sync(), { code: "storage" });
  assert.equal(times("/api/games") + times("/api/replays"), 0);
  store.full = false;
  await solis.sync();
  assert.equal(times("/api/games") + times("/api/replays"), 2);
  assert.equal(await started(store).solis.unsent(), 0);
});

test("a game that the store refuses during another change is stored later", async () => {
  const store = brittle();
  const { solis } = started(store);
  const stored = solis.finish(game(1));
  store.full = true; // the change of game 1 still runs
  await assert.rejects(solis.finish(game(2)), { code: "storage" });
  await stored;
  store.full = false;
  await solis.finish(game(3));
  assert.equal(await started(store).solis.unsent(), 3);
});

test("a game whose answer can't be stored is sent again", async () => {
  const store = brittle();
  const { solis } = started(store);
  await solis.login("ann", "password");
  await solis.finish(game(1));
  const count = service.answers["/api/games"];
  service.answers["/api/games"] = (/** @type {any} */ body) => ((store.full = true), count(body));
  await assert.rejects(solis.sync(), { code: "storage" });
  store.full = false;
  service.answers["/api/games"] = count;
  await started(store).solis.sync();
  assert.equal(times("/api/games"), 2);
  assert.equal((await solis.totals()).games_played, 1);
});

test("a store that can't be read doesn't count as empty", async () => {
  const store = brittle();
  const { solis } = started(store);
  await solis.login("ann", "password");
  await solis.finish(game(1));
  store.unreadable = true;
  let begun = false;
  await assert.rejects(
    started(store).solis.restoreOr(async () => {
      begun = true;
    }),
    { code: "storage" },
  );
  assert.equal(begun, false);
  await assert.rejects(solis.finish(game(2)), { code: "storage" });
  assert.equal((await solis.totals()).games_won, 2);
  store.unreadable = false;
  await solis.sync();
  assert.equal(service.counted.size, 2);
});

test("a session that another database refuses comes back with its games", async () => {
  const store = brittle();
  const { solis, told } = started(store);
  await solis.login("ann", "password");
  await solis.finish(game(1));
  const working = { ...service.answers, "/api/sync/pull": { merged: EMPTY } };
  refuse(GONE);
  await assert.rejects(solis.sync(), { code: "user_not_found" });
  assert.equal(await solis.player(), null);
  assert.equal(await solis.unsent(), 1);
  const other = started(store);
  await other.solis.restoreOr(async () => {});
  assert.equal(await other.solis.player(), null);
  assert.deepEqual([...told, ...other.told], ["signedIn", "signedOut user_not_found"]);
  Object.assign(service.answers, working);
  const third = started(store);
  await third.solis.restoreOr(() => assert.fail("there is a session"));
  await third.solis.sync();
  assert.equal(await third.solis.unsent(), 0);
  assert.deepEqual(third.told, ["signedIn"]);
});

test("a session that is set aside isn't replaced by a guest, and can be forgotten", async () => {
  const store = brittle();
  service.answers["/api/auth/login"] = () => ({ ...pair("ann"), player: { id: "ann", username: "ann", guest: false } });
  service.answers["/api/auth/guest"] = () => ofGuest("guest");
  const { solis } = started(store);
  await solis.login("ann", "password");
  refuse(GONE);
  await assert.rejects(solis.sync());
  await assert.rejects(
    started(store).solis.restoreOr(() => solis.guest()),
    { code: "signed_out" },
  );
  await solis.signOut();
  await solis.guest();
  assert.equal(await solis.player(), "guest");
});

test("a refused session is asked for once a minute at most", async () => {
  const { solis } = started(brittle());
  await solis.login("ann", "password");
  refuse(REFUSED);
  for (let count = 0; count < 5; count++) await assert.rejects(solis.sync());
  assert.equal(times("/api/auth/refresh"), 2); // when it ended, and once more
});

test("the games of an account that doesn't exist are forgotten after a week, and not by one wrong clock", async () => {
  const store = brittle();
  const { solis } = started(store);
  await solis.login("ann", "password");
  await solis.finish(game(1));
  refuse(GONE);
  await assert.rejects(solis.sync());
  const begun = clock.now;
  const unsent = [];
  for (const days of [30, 0, 3, 8]) {
    clock.now = begun + days * DAY;
    await assert.rejects(started(store).solis.sync(), { code: "signed_out" });
    unsent.push(await started(store).solis.unsent());
  }
  clock.now = begun;
  assert.deepEqual(unsent, [1, 1, 1, 0]);
});

test("a join that the service refuses is reported once, holds nothing up, and is tried again a day later", async () => {
  const store = brittle();
  service.answers["/api/auth/guest"] = () => pair("guest");
  service.answers["/api/me"] = { username: "guest_1" };
  service.answers["/api/me/join"] = { status: 403, code: "suspended" };
  const { solis, told } = started(store);
  await solis.guest();
  await assert.rejects(solis.join("ann", "password"), { code: "suspended" });
  await solis.finish(game(1));
  forget();
  await solis.sync();
  assert.equal(times("/api/games"), 1);
  assert.equal(times("/api/me/join"), 0);
  clock.now += DAY;
  const next = started(store);
  await next.solis.sync();
  assert.equal(times("/api/me/join"), 1);
  service.answers["/api/me/join"] = { status: 400, code: "sync_too_large" };
  clock.now += DAY;
  await next.solis.sync();
  service.answers["/api/me/join"] = { merged: EMPTY };
  clock.now += DAY;
  await next.solis.sync();
  await next.solis.sync();
  assert.equal(times("/api/me/join"), 3);
  assert.deepEqual([...told, ...next.told], ["signedIn", "signedIn"]); // the call of join has thrown the error
});

test("a join that a proxy refuses is sent again with the next sync", async () => {
  service.answers["/api/auth/guest"] = () => pair("guest");
  service.answers["/api/me"] = { username: "guest_1" };
  const { solis } = started(brittle());
  await solis.guest();
  service.answers["/api/me/join"] = { status: 403, code: " " };
  await assert.rejects(solis.join("ann", "password"), { code: "network" });
  forget();
  service.answers["/api/me/join"] = { merged: EMPTY };
  await solis.sync();
  assert.equal(times("/api/me/join"), 1);
});

const PLAYER = { username: "ann", guest: false };

for (const other of [false, true])
  test(`a player sends the games of a guest when ${other ? "another player logs in" : "signing out"} before the join is answered`, async () => {
    service.answers["/api/auth/guest"] = () => ofGuest("guest");
    service.answers["/api/me"] = { username: "guest_1", guest: true };
    service.answers["/api/me/join"] = { status: 400, code: "replay_storage_full" };
    const { solis } = started(brittle());
    await solis.finish(game(1));
    await solis.guest();
    await solis.sync();
    await assert.rejects(solis.join("ann", "password"), { code: "replay_storage_full" });
    service.answers["/api/me"] = PLAYER;
    if (other) {
      service.answers["/api/auth/login"] = () => pair("bob");
      await solis.login("bob", "password");
      service.answers["/api/auth/login"] = () => pair("ann");
    } else await solis.signOut();
    await solis.login("ann", "password");
    forget();
    await solis.sync();
    assert.equal(bodies("/api/games")[0].games.length, 1);
  });

test("a player whose session was refused for a week can sign out", async () => {
  const store = brittle();
  await started(store).solis.login("ann", "password");
  refuse(REFUSED);
  service.answers["/api/me"] = REFUSED;
  const begun = clock.now;
  for (let day = 0; day < 9; day++, clock.now += DAY) await assert.rejects(started(store).solis.sync());
  clock.now = begun;
  const { solis, told } = started(store);
  await solis.signOut();
  assert.deepEqual(told, ["signedOut left"]);
});

test("a guest can sign out when the answers to its deletion were lost", async () => {
  service.answers["/api/auth/guest"] = () => ofGuest("guest");
  service.answers["/api/me"] = { username: "guest_1", guest: true };
  service.answers["/api/account"] = { status: 502, code: " " };
  const store = brittle();
  const { solis } = started(store);
  await solis.guest();
  await solis.finish(game(1));
  await assert.rejects(solis.signOut(), { code: "network" });
  service.answers["/api/me"] = GONE;
  await solis.signOut();
  const { guest, players } = await store.read();
  assert.deepEqual([guest, players], [null, {}]);
});

test("a guest that another device has claimed keeps its games when it signs out", async () => {
  service.answers["/api/auth/guest"] = () => ofGuest("guest");
  const { solis } = started(brittle());
  await solis.guest();
  await solis.finish(game(1));
  refuse(REFUSED);
  service.answers["/api/me"] = REFUSED;
  service.answers["/api/auth/guest"] = { status: 409, code: "guest_gone" };
  await solis.signOut();
  service.answers["/api/auth/login"] = () => pair("guest");
  await solis.login("ann", "password");
  assert.equal(await solis.unsent(), 1);
});

test("a strange number of games in an answer changes no total that the device keeps", async () => {
  const store = brittle();
  const { solis } = started(store);
  await solis.login("ann", "password");
  await solis.finish(game(1));
  await solis.sync();
  for (const games_played of [null, 7.5, "8", 1e300]) {
    service.answers["/api/sync/pull"] = { merged: { ...EMPTY, stats: { ...EMPTY.stats, games_played } } };
    await solis.sync();
    assert.equal((await store.read()).players.ann.played, 1);
  }
});

/** A store of version 1.1 with the session of an account. @param {string} account */
async function storeOf11(account) {
  const store = brittle();
  const journal = { base: EMPTY, answers: 1, games: [], sent: null, wins: [] };
  await store.change(() => [
    {
      player: account,
      session: pair(account),
      retryKey: null,
      joining: null,
      journals: { known: [], uploaded: {}, of: { [account]: journal } },
    },
    null,
  ]);
  return store;
}

const UNKNOWN = { status: 404, code: "guest_unknown" };
const ofGuest = (/** @type {string} */ account) => ({
  ...pair(account),
  player: { id: account, username: "guest_1", guest: true },
});

test("a guest's key is stored before it is sent, and asks for no other guest later", async () => {
  const store = brittle();
  service.answers["/api/auth/guest"] = { status: 503, code: "unavailable" };
  await assert.rejects(started(store).solis.guest(), { code: "unavailable" });
  service.answers["/api/auth/guest"] = () => ofGuest("guest");
  const { solis } = started(store);
  await solis.guest();
  refuse(REFUSED);
  service.answers["/api/auth/guest"] = UNKNOWN;
  await assert.rejects(solis.sync(), { code: "signed_out" });
  const sent = bodies("/api/auth/guest");
  assert.match(sent[0].guest_key, /^[A-Za-z0-9_-]{22,64}$/);
  assert.deepEqual(new Set(sent.map(({ guest_key }) => guest_key)).size, 1);
  assert.deepEqual(
    sent.map(({ create }) => create),
    [...Array(sent.length - 1).fill(true), false],
  );
});

test("a full store sends no key", async () => {
  const store = brittle();
  store.full = true;
  await assert.rejects(started(store).solis.guest(), { code: "storage" });
  await assert.rejects(started(store).solis.register("ann", "password"), { code: "storage" });
  assert.deepEqual(service.asked, []);
});

test("the key of a guest isn't trusted after an answer of version 1.1", async () => {
  const store = brittle();
  service.answers["/api/auth/guest"] = () => pair("guest");
  await started(store).solis.guest();
  refuse(REFUSED);
  service.answers["/api/me"] = { username: "guest_1", guest: true };
  service.answers["/api/me/guest-key"] = { status: 404, code: "not_found" };
  await assert.rejects(started(store).solis.sync(), { code: "signed_out" });
  assert.equal(times("/api/auth/guest"), 1);
});

test("a node of version 1.1 doesn't replace a guest", async () => {
  const store = brittle();
  service.answers["/api/auth/guest"] = () => ofGuest("guest");
  await started(store).solis.guest();
  refuse(REFUSED);
  service.answers["/api/auth/guest"] = () => pair("another");
  const { solis } = started(store);
  await assert.rejects(solis.sync(), { code: "network" });
  assert.equal(await solis.player(), "guest");
});

test("a suspended guest keeps all, and the error says so", async () => {
  const store = brittle();
  service.answers["/api/auth/guest"] = () => ofGuest("guest");
  const { solis } = started(store);
  await solis.guest();
  await solis.finish(game(1));
  refuse(REFUSED);
  service.answers["/api/auth/guest"] = { status: 403, code: "suspended" };
  await assert.rejects(started(store).solis.sync(), { code: "suspended" });
  assert.equal(await solis.player(), "guest");
  assert.equal(await solis.unsent(), 1);
});

test("a guest of version 1.1 gets a key", async () => {
  const store = await storeOf11("guest");
  service.answers["/api/me"] = { username: "guest_1", guest: true };
  service.answers["/api/me/guest-key"] = { status: 404, code: "not_found" };
  await started(store).solis.sync(); // on a node of version 1.1
  service.answers["/api/me/guest-key"] = { ok: true };
  await started(store).solis.sync();
  await started(store).solis.sync();
  const [first, second, ...more] = bodies("/api/me/guest-key");
  assert.deepEqual([first, more], [second, []]);
  refuse(REFUSED);
  service.answers["/api/auth/guest"] = UNKNOWN;
  await assert.rejects(started(store).solis.sync(), { code: "signed_out" });
  assert.deepEqual(bodies("/api/auth/guest")[0], { ...first, create: false });
});

test("a player of version 1.1 gets no key, and is asked about once", async () => {
  const store = await storeOf11("ann");
  service.answers["/api/me"] = { username: "ann" };
  await started(store).solis.sync();
  await started(store).solis.sync();
  assert.deepEqual([times("/api/me"), times("/api/me/guest-key")], [1, 0]);
});

test("a login with another name or after a refusal has another key", async () => {
  const { solis } = started(brittle());
  const outcomes = [
    { status: 503, code: "unavailable" },
    { status: 401, code: "invalid_credentials" },
  ];
  for (const answer of outcomes) {
    service.answers["/api/auth/login"] = answer;
    await assert.rejects(solis.login("ann", "password"));
  }
  service.answers["/api/auth/login"] = () => pair("ann");
  await solis.login("ann", "password");
  await solis.login("bob", "password");
  const keys = bodies("/api/auth/login").map(({ retry_key }) => retry_key);
  assert.deepEqual(new Set(keys.slice(0, 4)).size, 1); // three attempts, and the one that was refused
  assert.equal(new Set(keys).size, 3);
});

test("a join whose player logs in again is finished", async () => {
  const store = brittle();
  service.answers["/api/auth/guest"] = () => ofGuest("guest");
  service.answers["/api/me"] = { username: "guest_1" };
  service.answers["/api/me/join"] = { status: 503, code: "unavailable" };
  const { solis } = started(store);
  await solis.guest();
  await assert.rejects(solis.join("ann", "password"), { code: "unavailable" });
  forget();
  service.answers["/api/me/join"] = { merged: EMPTY };
  await solis.login("ann", "password");
  await solis.sync();
  assert.equal(times("/api/me/join"), 1);
});

test("a join whose guest is suspended, or unknown for a while, is not given up", async () => {
  const store = brittle();
  service.answers["/api/auth/guest"] = () => ofGuest("guest");
  service.answers["/api/me"] = { username: "guest_1" };
  service.answers["/api/me/join"] = { status: 409, code: "not_a_guest" };
  const { solis } = started(store);
  await solis.guest();
  service.answers["/api/auth/guest"] = { status: 403, code: "suspended" };
  await assert.rejects(solis.join("ann", "password"), { code: "suspended" });
  service.answers["/api/auth/guest"] = UNKNOWN;
  clock.now += DAY;
  await solis.sync();
  service.answers["/api/auth/guest"] = () => ofGuest("guest");
  service.answers["/api/me/join"] = () =>
    times("/api/me/join") > 3 ? { merged: EMPTY } : { status: 409, code: "not_a_guest" };
  clock.now += DAY;
  await solis.sync();
  assert.equal(times("/api/me/join"), 4);
  clock.now += DAY;
  await solis.sync();
  assert.equal(times("/api/me/join"), 4);
});

test("full storage stops the uploads at the first, for a day", async () => {
  const store = brittle();
  const { solis } = started(store);
  await solis.login("ann", "password");
  for (let number = 0; number < 9; number++) await solis.finish(game(number));
  service.answers["/api/replays"] = { status: 400, code: "replay_storage_full" };
  await assert.rejects(solis.sync(), { code: "replay_storage_full" });
  await solis.sync();
  await started(store).solis.sync();
  assert.equal(times("/api/replays"), 1);
  clock.now += DAY;
  await assert.rejects(started(store).solis.sync(), { code: "replay_storage_full" });
  assert.equal(times("/api/replays"), 2);
  assert.equal(await solis.unsent(), 9);
  clock.now += DAY;
  service.answers["/api/replays"] = { id: "replay" };
  await solis.sync();
  assert.equal(times("/api/replays"), 11);
  assert.equal(await solis.unsent(), 0);
});

test("a win that the service refuses is sent once, and holds up no other", async () => {
  const store = brittle();
  const { solis } = started(store);
  await solis.login("ann", "password");
  for (const bad of [true, false]) await solis.finish(game(Number(bad), { bad }));
  service.answers["/api/replays"] = ({ bad }) => (bad ? { status: 400, code: "bad_field" } : { id: "replay" });
  await assert.rejects(solis.sync(), { code: "bad_field" });
  assert.equal(times("/api/replays"), 2);
  await started(store).solis.sync();
  assert.equal(times("/api/replays"), 2);
  assert.equal(await solis.unsent(), 0);
});

test("a win of a suspended player is uploaded after the suspension", async () => {
  const { solis } = started(brittle());
  await solis.login("ann", "password");
  await solis.finish(game(1));
  service.answers["/api/replays"] = { status: 403, code: "suspended" };
  await assert.rejects(solis.sync(), { code: "suspended" });
  assert.equal(await solis.unsent(), 1);
  service.answers["/api/replays"] = { id: "replay" };
  await solis.sync();
  assert.equal(times("/api/replays"), 2);
  assert.equal(await solis.unsent(), 0);
});

/** How many syncs in the background follow one with this answer, within some seconds. @param {import("node:test").TestContext} t @param {object} answer @param {number} seconds */
async function repeats({ mock: { timers } }, answer, seconds) {
  const store = brittle();
  await started(store).solis.login("ann", "password");
  service.answers["/api/sync/pull"] = answer;
  timers.enable({ apis: ["setTimeout"] });
  const { solis } = started(store, true);
  const failed = new Promise((resolve) => solis.on("trouble", resolve));
  await solis.restoreOr(() => assert.fail("there is a session"));
  timers.tick(1);
  await failed;
  forget();
  timers.tick(1000 * seconds);
  await assert.rejects(solis.sync()); // runs after those in the background
  timers.reset();
  return times("/api/sync/pull") - 1;
}

test("a sync in the background is repeated when Retry-After has passed", async (t) => {
  const limited = { status: 429, code: "rate_limited", headers: { "Retry-After": 7 } };
  assert.deepEqual([await repeats(t, limited, 6), await repeats(t, limited, 7)], [0, 1]);
});

test("a sync in the background isn't repeated after an error that stays", async (t) => {
  assert.equal(await repeats(t, { status: 400, code: "bad_field" }, 3600), 0);
});

test("a password is sent composed, and a login tries it once more as it was typed", async () => {
  const [typed, composed] = ["cafe\u0301 au lait", "caf\u00e9 au lait"];
  const { solis } = started(brittle());
  service.answers["/api/auth/login"] = ({ password }) =>
    password === typed ? pair("ann") : { status: 401, code: "invalid_credentials" };
  await solis.login("ann", typed);
  await assert.rejects(solis.login("ann", composed), { code: "invalid_credentials" });
  service.answers["/api/auth/register"] = () => pair("bob");
  await solis.register("bob", typed);
  service.answers["/api/me/claim"] = { id: "bob" };
  await solis.claim("bob", typed);
  const sent = ["login", "register"].map((route) => bodies(`/api/auth/${route}`).map(({ password }) => password));
  assert.deepEqual(sent, [[composed, typed, composed], [composed]]);
  assert.equal(bodies("/api/me/claim")[0].password, composed);
});

test("a join as another player finishes the one without an answer, and checks the password", async () => {
  service.answers["/api/auth/guest"] = () => ofGuest("guest");
  service.answers["/api/me"] = { username: "guest_1", guest: true };
  service.answers["/api/me/join"] = { status: 503, code: "unavailable" };
  const { solis } = started(brittle());
  await solis.guest();
  await assert.rejects(solis.join("ann", "password"), { code: "unavailable" });
  service.answers["/api/me"] = PLAYER;
  service.answers["/api/me/join"] = { merged: EMPTY };
  service.answers["/api/auth/login"] = { status: 401, code: "invalid_credentials" };
  forget();
  await assert.rejects(solis.join("bob", "wrong"), { code: "invalid_credentials" });
  assert.deepEqual([times("/api/me/join"), await solis.player()], [1, "ann"]);
});
