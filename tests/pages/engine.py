"""The engine of the page to play, asked from Python."""

from solisync.klondike.rules import COLUMNS, FACE_DOWN, PILE_NAMES

PRELUDE = """
  const { Game, restored } = await import("/web/game.js");
  const engine = await import("/web/klondike.js");
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
    return [game, again].map((played) => [played.upload("2026-11-22"), played.score, text(played.position)]);
  }"""
)

ADVICE = (
    "async asked => {"
    + PRELUDE
    + (
        "return asked.map(({ position, draw }) => ({ useful: engine.useful(position, draw).length,"
        " finish: engine.finish(position) })); }"
    )
)


def position_of(board):
    """A board of the Python engine as the page has it."""
    piles = dict(zip(PILE_NAMES, board, strict=True))
    return {
        "piles": {name: [card % FACE_DOWN for card in pile] for name, pile in piles.items()},
        "down": {PILE_NAMES[pile]: sum(card >= FACE_DOWN for card in board[pile]) for pile in COLUMNS},
    }
