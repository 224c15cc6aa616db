// @ts-check
/** A recorded game is what docs/replays shows. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { COLUMNS, deal, FOUNDATIONS, play } from "../src/klondike.js";
import { Klondike, STOCK } from "../src/klondike_game.js";

const replay = JSON.parse(await readFile(new URL("../../../docs/replays/won_draw_one.json", import.meta.url), "utf8"));
const pile = (/** @type {any} */ name) =>
  name === "Waste" ? "w" : "Foundation" in name ? FOUNDATIONS[name.Foundation] : COLUMNS[name.Tableau];

test("a replayed game has the points and the record of the replay", () => {
  const game = Klondike.deal(String(replay.seed), replay.draw_mode);
  for (const move of replay.moves) {
    const { from, to, count } = Object(move.Move);
    assert.ok(game.play(move === "StockClick" ? STOCK : { from: pile(from), to: pile(to), count }));
  }
  const {
    won,
    score,
    replay: recorded,
  } = game.record({ seconds: replay.time_seconds, date: new Date(replay.recorded_at) });
  assert.deepEqual([won, score], [true, replay.final_score]);
  assert.deepEqual({ ...recorded, seed: replay.seed }, { ...replay, undo_places: [] });
});

test("an ace lies on an empty foundation alone", () => {
  const dealt = deal(2202n);
  const king = Array.from({ length: 13 }, (_, card) => card);
  const position = { ...dealt, piles: { ...dealt.piles, f0: king, w: [13] } };
  assert.equal(play(position, { from: "w", to: "f0", count: 1 }, 1), null);
  assert.ok(play(position, { from: "w", to: "f1", count: 1 }, 1));
});

test("undo returns to the position before, for a fine", () => {
  const game = Klondike.deal("2202", "DrawThree");
  const { position } = game;
  assert.ok(game.play(STOCK));
  assert.ok(game.undo());
  assert.equal(game.undo(), null);
  assert.equal(game.position, position);
  assert.deepEqual([game.score, game.record({ seconds: 5 }).undone], [0, true]);
});

test("undo takes back the last 64 moves, as on the server", () => {
  const game = Klondike.deal("2202", "DrawOne");
  for (let move = 0; move < 70; move++) assert.ok(game.play(STOCK));
  let undone = 0;
  while (game.undo()) undone += 1;
  assert.deepEqual([undone, game.canUndo], [64, false]);
});

test("the rules refuse piles and counts that don't exist", () => {
  const game = Klondike.deal("2202", "DrawOne");
  for (const [from, to, count] of [
    ["t9", "f0", 1],
    ["t0", "f9", 1],
    ["t0", "", 1],
    ["t0", "f0", NaN],
    ["t0", "f0", 1.5],
    ["t0", "f0", 99],
  ])
    assert.equal(game.play(/** @type {any} */ ({ from, to, count })), null);
});
