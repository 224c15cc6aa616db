// @ts-check
/** Each finished game reaches the service, and is sent again where the service may have lost it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { bodies, brittle, clock, DAY, forget, game, id, merged, pair, service, started, times } from "./service.js";

const lost = (/** @type {number} */ number) => ({ ...game(number), won: false, replay: null });
/** The numbers of the games in the requests since the last call of `forget`. */
const sent = () =>
  bodies("/api/games").map(({ games }) => games.map((/** @type {any} */ { game_id }) => Number(game_id.slice(-12))));

/** A client that is signed in. @param {any} store */
async function signedIn(store) {
  const { solis } = started(store);
  await solis.login("ann", "password");
  return solis;
}

test("a game needs no session, and goes to the first one", async () => {
  const store = brittle();
  const { solis, told } = started(store);
  await solis.finish(game(1));
  await started(store).solis.finish(lost(2));
  assert.deepEqual([(await solis.totals()).games_played, await solis.unsent()], [2, 2]);
  await assert.rejects(solis.sync(), { code: "signed_out" });
  assert.deepEqual([await solis.player(), told], [null, []]);
  await solis.login("ann", "password");
  await solis.sync();
  assert.deepEqual(sent(), [[1, 2]]);
  assert.equal(times("/api/replays"), 1);
  assert.equal(await solis.unsent(), 0);
});

test("a game is sent with all that the service counts by", async () => {
  const solis = await signedIn(brittle());
  const day = { date: "2026-11-20" };
  await solis.finish({
    ...game(1),
    id: id(1).toUpperCase(),
    score: 5.5,
    mode: "Zen",
    undone: true,
    day,
    replay: { seed: 7n },
  });
  await solis.sync();
  const [{ games }] = bodies("/api/games");
  const { ended_at: end, ...rest } = games[0];
  assert.deepEqual(rest, {
    game_id: id(1),
    mode: "Zen",
    draw_mode: "DrawOne",
    won: true,
    score: 5,
    seconds: 9,
    undone: true,
    seed: "7",
  });
  assert.equal(Date.parse(end), clock.now);
  assert.match(end, /[+-]\d\d:\d\d$/);
  await assert.rejects(solis.finish({ ...game(2), id: "game 2" }), TypeError);
});

test("250 games are three requests", async () => {
  const solis = await signedIn(brittle());
  for (let number = 0; number < 250; number++) await solis.finish(lost(number));
  await solis.sync();
  assert.deepEqual(
    sent().map((games) => games.length),
    [100, 100, 50],
  );
});

test("a game that the service refuses is set aside, and holds up no other", async () => {
  const solis = await signedIn(brittle());
  for (const number of [1, 2]) await solis.finish(lost(number));
  service.answers["/api/games"] = { games: [{ error: "bad_field" }, { error: null }], merged: merged() };
  await solis.sync();
  await solis.sync();
  assert.deepEqual([sent(), await solis.unsent()], [[[1, 2]], 0]);
});

test("a node of version 1.1 leaves all games unsent, for later", async () => {
  const solis = await signedIn(brittle());
  await solis.finish(game(1));
  const { "/api/games": count } = service.answers;
  service.answers["/api/games"] = { status: 404, code: "not_found" };
  await assert.rejects(solis.sync(), { code: "unavailable", passes: true });
  assert.equal(await solis.unsent(), 1);
  service.answers["/api/games"] = count;
  await solis.sync();
  assert.equal(await solis.unsent(), 0);
});

test("an answer of another server settles nothing", async () => {
  const solis = await signedIn(brittle());
  await solis.finish(game(1));
  service.answers["/api/games"] = {};
  await assert.rejects(solis.sync(), { code: "network", passes: true });
  assert.equal(await solis.unsent(), 1);
});

test("settled games are sent again in a new session", async () => {
  const store = brittle();
  const solis = await signedIn(store);
  for (const number of [1, 2]) await solis.finish(lost(number));
  await solis.sync();
  forget();
  await started(store).solis.sync();
  assert.deepEqual(sent(), []);
  await (await signedIn(store)).sync();
  assert.deepEqual(sent(), [[1, 2]]);
});

test("settled games are sent again when the service has lost some", async () => {
  const solis = await signedIn(brittle());
  for (const number of [1, 2]) await solis.finish(lost(number));
  await solis.sync();
  service.counted.delete(id(1)); // a restored backup
  forget();
  await solis.finish(lost(3));
  await solis.sync();
  assert.deepEqual(sent(), [[3], [1, 2]]);
  service.counted.clear();
  await solis.sync(); // the pull shows it
  await solis.sync();
  assert.equal(service.counted.size, 3);
});

test("games of the last two days are sent again at the first sync of a day", async () => {
  const begun = clock.now;
  const solis = await signedIn(brittle());
  for (const number of [1, 2, 3]) {
    await solis.finish(lost(number));
    await solis.sync();
    clock.now += 2 * DAY;
  }
  clock.now -= DAY;
  forget();
  await solis.sync();
  await solis.sync();
  assert.deepEqual(sent(), [[3]]);
  clock.now = begun;
});

test("settled games stay for 30 days, and the newest 200 longer", async () => {
  const begun = clock.now;
  const store = brittle();
  const solis = await signedIn(store);
  for (let number = 0; number < 250; number++) await solis.finish(lost(number));
  await solis.sync();
  const kept = async () => (await store.read()).players.ann.games.length;
  clock.now += 29 * DAY;
  await solis.sync();
  assert.equal(await kept(), 250);
  clock.now += 2 * DAY;
  await solis.sync();
  assert.equal(await kept(), 200);
  clock.now = begun;
});

test("an old win stays until its upload", async () => {
  const begun = clock.now;
  const solis = await signedIn(brittle());
  await solis.finish(game(0));
  service.answers["/api/replays"] = { status: 400, code: "replay_storage_full" };
  await assert.rejects(solis.sync(), { code: "replay_storage_full" });
  for (let number = 1; number <= 201; number++) await solis.finish(lost(number));
  clock.now += 31 * DAY;
  await assert.rejects(solis.sync(), { code: "replay_storage_full" });
  clock.now += DAY;
  service.answers["/api/replays"] = { id: "replay" };
  await solis.sync();
  assert.deepEqual([times("/api/replays"), await solis.unsent()], [3, 0]);
  clock.now = begun;
});

test("unsent games are added to the statistics and the days of the last answer", async () => {
  const solis = await signedIn(brittle());
  await solis.sync();
  const stats = { ...merged().stats, games_played: 10, games_won: 4, avg_time_seconds: 9, win_streak_current: 2 };
  const progress = {
    daily_challenge_last_completed: "2026-11-19",
    daily_challenge_streak: 3,
    daily_challenge_history: [],
  };
  service.answers["/api/sync/pull"] = { merged: { ...merged(), stats, progress } };
  await solis.pull();
  await solis.finish({ ...game(1), day: { date: "2026-11-20" } });
  const shown = /** @type {any} */ (await solis.progress());
  const { games_played: played, games_won: won, win_streak_current: row, classic_best_score: best } = shown.stats;
  assert.deepEqual([played, won, row, best], [11, 5, 3, 5]);
  assert.equal(shown.progress.daily_challenge_streak, 4);
  assert.deepEqual(shown.progress.daily_challenge_history, ["2026-11-20"]);
});

test("a win in Zen, or after the 36 hours of its day, counts for no day", async () => {
  clock.now = Date.UTC(2026, 10, 20);
  const solis = await signedIn(brittle());
  await solis.sync();
  await solis.finish({ ...game(1), day: { date: "2026-11-20" }, mode: "Zen" });
  clock.now += 1.5 * DAY;
  await solis.finish({ ...game(2), day: { date: "2026-11-20" } });
  const before = /** @type {any} */ (await solis.progress()).progress;
  clock.now -= 1;
  await solis.finish({ ...game(3), day: { date: "2026-11-20" } });
  const after = /** @type {any} */ (await solis.progress()).progress;
  assert.deepEqual([before.daily_challenge_streak, after.daily_challenge_streak], [0, 1]);
});

test("other progress is pushed beside a player who has never played", async () => {
  const solis = await signedIn(brittle());
  const achievements = [{ id: "first", unlocked: true, unlock_date: null, reward_granted: false }];
  await solis.push({ achievements, progress: { unlocked_card_backs: [0, 3], hats: 1 }, stats: { cats: 2 }, dogs: 3 });
  const [body] = bodies("/api/sync/push");
  assert.deepEqual([body.achievements, body.dogs, body.stats.cats, body.progress.hats], [achievements, 3, 2, 1]);
  assert.deepEqual(body.progress.unlocked_card_backs, [0, 3]);
  const { games_played: played, fastest_win_seconds: fastest, lifetime_score: score } = body.stats;
  assert.deepEqual([played, fastest, score, body.progress.total_xp], [0, null, 0, 0]);
  for (const change of [
    { stats: { games_won: 1 } },
    { progress: { total_xp: 5 } },
    { progress: { daily_challenge_streak: 5 } },
  ])
    await assert.rejects(solis.push(change), TypeError);
});

test("a replay that was refused is uploaded again on request", async () => {
  const solis = await signedIn(brittle());
  await solis.finish(game(1));
  service.answers["/api/replays"] = { status: 400, code: "replay_storage_full" };
  await assert.rejects(solis.sync(), { code: "replay_storage_full" });
  service.answers["/api/replays"] = { id: "replay" };
  await solis.sync();
  assert.equal(await solis.unsent(), 1);
  await solis.sync({ again: true });
  assert.equal(await solis.unsent(), 0);
});

// Stores of version 1.1

const BASE = { ...merged(), stats: { ...merged().stats, games_played: 2, games_won: 2 } };
const old = (/** @type {number} */ number) => ({
  ...{ id: id(number), at: "2026-11-01T12:00:00.000+01:00", won: true, score: 5, seconds: 9, draw: 3, undone: false },
  day: { date: "2026-11-01" },
});
const PUSH = JSON.stringify({ stats: { games_played: 3, games_won: 3 }, progress: {} });
const upload = (/** @type {number} */ number) => ({
  id: id(number),
  body: `{"game_id":"${id(number)}","seed":"7"}`,
  day: null,
});

/** What the npm package has stored: game 1 in a push without an answer, game 2 unsent. */
const npm = () => ({
  ...{ player: "ann", session: pair("ann"), retryKey: null, joining: null },
  journals: {
    known: [id(0), id(1), id(2)],
    uploaded: { [id(0)]: "replay" },
    of: {
      ann: {
        base: BASE,
        answers: 1,
        games: [old(1), old(2)],
        sent: { body: PUSH, games: 1 },
        wins: [upload(1), upload(2)],
      },
    },
  },
});

/** The same from Python's `Device`. */
function python() {
  const { session, player, journals } = npm();
  const { base, sent, wins } = journals.of.ann;
  const games = [1, 2].map((number) => ({
    game_id: id(number),
    won: true,
    score: 5,
    seconds: 9,
    draw_mode: "DrawThree",
  }));
  const uploads = wins.map(({ id: game_id, body }) => ({ game_id, body }));
  return {
    ...{
      tokens: session,
      player,
      retry_key: null,
      joining: null,
      finished: journals.known,
      uploaded: journals.uploaded,
    },
    journals: { ann: { base, games, sent, wins: uploads } },
  };
}

/** A store beside one of version 1.1. @param {any} former */
const beside = (former) => ({ ...brittle(), former: async () => former });

for (const [name, make] of Object.entries({ "the npm package": npm, "Python's Device": python })) {
  test(`a store of ${name} is taken over: its push with the same bytes, the other games by their ids`, async () => {
    const former = brittle(make());
    const store = beside(former);
    const { solis } = started(store);
    assert.equal(await solis.player(), "ann");
    assert.deepEqual([(await solis.totals()).games_played, await solis.unsent()], [4, 2]);
    service.answers["/api/sync/push"] = { status: 503, code: "unavailable" };
    await assert.rejects(solis.sync(), { code: "unavailable" });
    assert.equal(times("/api/games"), 0); // the push comes first
    service.answers["/api/sync/push"] = { merged: merged() };
    await started(store).solis.sync();
    await (await signedIn(store)).sync();
    assert.deepEqual(new Set(bodies("/api/sync/push").map((body) => JSON.stringify(body))), new Set([PUSH]));
    assert.deepEqual(sent(), [[2], [2]]); // and again in the new session
    assert.equal(times("/api/replays"), 2);
    const [game] = bodies("/api/games")[0].games;
    assert.deepEqual([game.draw_mode, game.seed, game.score], ["DrawThree", "7", 5]);
    const { session = null, tokens = null } = await former.read();
    assert.deepEqual([session, tokens], [null, null]);
    await solis.finish(game_0);
    assert.equal(await solis.unsent(), 0); // it was counted by version 1.1
  });
}
const game_0 = game(0);

test("games of a push that the service refuses go by their ids", async () => {
  const former = brittle(npm());
  service.answers["/api/sync/push"] = { status: 400, code: "bad_field" };
  await started(beside(former)).solis.sync();
  assert.deepEqual(sent(), [[1, 2]]);
  assert.deepEqual((await former.read()).journals.of.ann.sent, null);
});

test("games that a program of version 1.1 finishes later are taken at the next start", async () => {
  const former = brittle(npm());
  const store = beside(former);
  await started(store).solis.sync();
  forget();
  await former.change((value) => {
    value.journals.of.ann.games.push(old(3));
    return [value, null];
  });
  await started(store).solis.sync();
  await started(store).solis.sync();
  assert.deepEqual(sent(), [[3]]);
});

test("a takeover that was interrupted is repeated, and sends nothing twice", async () => {
  const former = brittle(npm());
  const store = beside(former);
  former.full = true; // between the two stores
  await assert.rejects(started(store).solis.sync(), { code: "storage" });
  former.full = false;
  await started(store).solis.sync();
  await started(store).solis.sync();
  assert.deepEqual([times("/api/sync/push"), sent()], [1, [[2]]]);
});

test("a store of one's own, which has a value of version 1.1, is taken over in its place", async () => {
  const store = brittle(npm());
  service.answers["/api/sync/push"] = { status: 503, code: "unavailable" };
  await assert.rejects(started(store).solis.sync(), { code: "unavailable" });
  service.answers["/api/sync/push"] = { merged: merged() };
  await started(store).solis.sync();
  assert.deepEqual([times("/api/sync/push"), sent(), (await store.read()).version], [4, [[2]], 2]);
});

test("a journal of a newer version is left alone", async () => {
  const store = brittle({ version: 3 });
  await assert.rejects(started(store).solis.finish(game(1)), { code: "storage" });
  assert.deepEqual(await store.read(), { version: 3 });
});
