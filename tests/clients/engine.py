"""Calls from Python to the engine of the page to play."""

from solisync.klondike.rules import COLUMNS, FACE_DOWN, PILE_NAMES

PRELUDE = """
  const { Game, restored } = await web("game.js");
  const engine = await web("klondike.js");
  const pile = (place) => typeof place === "string" ? place[0].toLowerCase()
    : "Foundation" in place ? `f${place.Foundation}` : `t${place.Tableau}`;
  const move = (input) => input === "StockClick" ? engine.STOCK
    : { from: pile(input.Move.from), to: pile(input.Move.to), count: input.Move.count };
  const text = ({ piles, down }) => Object.keys(piles).sort().map((name) => `${name}:` + piles[name].map((card, at) =>
    name === "s" || at < (down[name] ?? 0) ? `(${card})` : card).join(" ")).join("|");
  const attempt = (game, input) => (input === "Undo" ? game.undo() : game.play(move(input))) !== null;
"""

DECKS = "async seeds => {" + PRELUDE + "return seeds.map(seed => engine.deck(BigInt(seed))); }"

FOLLOW = (
    "async games => {"
    + PRELUDE
    + """return games.map(({ seed, draw, inputs }) => {
    const game = new Game(seed, draw);
    const tried = inputs.map((input) => [attempt(game, input), game.score, text(game.position)]);
    return { tried, won: game.won, moves: game.moves, turns: game.turns, undos: game.undoPlaces };
  }); }"""
)

UPLOAD = (
    "async ({ seed, draw, inputs }) => {"
    + PRELUDE
    + """const game = new Game(seed, draw);
    for (const input of inputs) attempt(game, input);
    const again = restored(JSON.parse(JSON.stringify(game.kept())));
    const upload = (played) => {
      const { id, replay } = played.record({ seconds: played.seconds, date: new Date("2026-11-22") });
      return replay && JSON.stringify({ ...replay, game_id: id });
    };
    return [game, again].map((played) => [upload(played), played.score, text(played.position)]);
  }"""
)

ADVICE = (
    "async asked => {"
    + PRELUDE
    + """const { isStuck } = await web("hints.js");
  return asked.map(({ position, draw }) => ({
    stuck: isStuck(position, draw, []), finish: engine.finish(position, draw),
  })); }"""
)

# Plays games by the first hint each time, or in `stray` of a hundred steps by an undo or another move, until they end;
# with a solver, only the deals for which it finds a win. A hint "repeats" if it takes the last move back, or moves
# cards to a position that the game has passed twice.
HINTED = (
    "async asked => {"
    + PRELUDE
    + """const { hints, isStuck } = await web("hints.js");
  const { solve } = await web("solver.js");
  const exact = (position) => JSON.stringify(position);
  const played = async ({ seed, draw, stray }) => {
    const game = new Game(seed, draw);
    let chance = Number(seed) % 2147483647;
    const random = (below) => (chance = (chance * 48271 + 1) % 2147483647) % below;
    const repeats = [];
    for (let left = 400; left && !game.won; left--) {
      const passed = game.passed.map(exact);
      const last = game.before.map(exact).at(-1);
      const found = await hints(game, 60_000);
      for (const hint of found) {
        const after = hint !== engine.STOCK && exact(engine.play(game.position, hint, draw).position);
        const visits = passed.filter((state) => state === after).length;
        if (after && (after === last || visits > 1)) repeats.push(hint);
      }
      const others = [engine.STOCK, ...engine.moves(game.position)];
      if (random(100) < stray && game.undo()) continue;
      const move = random(100) < stray ? others[random(others.length)] : found[0];
      if (!move) return { end: isStuck(game.position, draw, game.before) ? "stuck" : "undo", repeats };
      if (!game.play(move)) return { end: "refused", repeats };
    }
    return { end: game.won ? "won" : "long", repeats };
  };
  const found = [];
  for (const each of asked) {
    const solved = Boolean((await solve(engine.deal(BigInt(each.seed)), each.draw)).moves);
    if (solved || !("Worker" in window)) found.push({ solved, ...(await played(each)) });
  }
  return found; }"""
)


def position_of(board):
    """Return a board of the Python engine in the page's form."""
    piles = dict(zip(PILE_NAMES, board, strict=True))
    return {
        "piles": {name: [card % FACE_DOWN for card in pile] for name, pile in piles.items()},
        "down": {PILE_NAMES[pile]: sum(card >= FACE_DOWN for card in board[pile]) for pile in COLUMNS},
    }
