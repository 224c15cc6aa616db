"""A player on /play, who makes recorded moves by mouse, by finger or by keyboard."""

import time

from solisync.klondike import recorded
from solisync.klondike.deal import deal
from solisync.klondike.game import Game
from solisync.klondike.rules import FOUNDATIONS, PILE_NAMES, STOCK_CLICK, Move
from solisync.klondike.scoring import MAY_19
from solisync.klondike.solver import find_win
from tests.klondike.vectors import read, wins
from tests.pages.visitor import until

# The place of a card, or its target while the card is still moving.
CENTRE = """([pile, count]) => {
  const piles = ["s", "w", "f0", "f1", "f2", "f3", "t0", "t1", "t2", "t3", "t4", "t5", "t6"];
  const list = document.querySelectorAll("#board ol")[piles.indexOf(pile)];
  const place = (element) => {
    const { left, top, width, height } = element.getBoundingClientRect();
    const [x, y] = getComputedStyle(element).translate.split(" ").map((part) => parseFloat(part) || 0);
    return { left: left - x, top: top - (y ?? 0), width, height };
  };
  const card = list.children[list.children.length - count];
  const box = place(card ?? list);
  const strip = card?.nextElementSibling ? place(card.nextElementSibling).top - box.top : box.height;
  return [box.left + box.width / 2, box.top + strip / 2];
}"""
JOURNALS = "(await (await web('journal.js')).journals())"
KEEP_JOURNALS = """journals => new Promise((resolve, reject) => {
  const name = "solisync.journals";
  const asked = indexedDB.open(name);
  asked.onupgradeneeded = () => asked.result.createObjectStore(name);
  asked.onsuccess = () => {
    const transaction = asked.result.transaction(name, "readwrite");
    transaction.objectStore(name).put(journals, name);
    transaction.onabort = () => reject(transaction.error);
    transaction.oncomplete = () => resolve(asked.result.close());
  };
})"""
# The browser's storage key for the game of the signed-in player, or for a game without a player.
KEY = "['solisync.game', localStorage.solisync].filter(Boolean).join('.')"
DAY_KEY = KEY.replace("game", "day")  # the key for the game of a day's deal
KEPT = f"JSON.parse(localStorage[location.search.includes('daily') ? {DAY_KEY} : {KEY}])"
# A stuck game: no card fits anywhere.
STUCK = (
    {"seed": 3186, "draw_mode": "DrawThree"},
    [
        *(("t4", "f0", 1), None, ("w", "t0", 1), ("t2", "t0", 1), ("t3", "t2", 1)),
        *(None, None, ("w", "t0", 1), ("w", "t0", 1), ("t3", "t0", 1)),
    ],
)


def won_game(number=0):
    """Return the replay of a won game without undos, and its moves.

    A move is (from, to, count), or None for a click on the stock. Aces go to the first empty foundation, as a
    player's click sends them; in the vectors they go to any foundation.
    """
    known = [
        win["replay"] for win in wins("2026-05-19", undo=False) if win["replay"]["mode"] in ("Classic", "TimeAttack")
    ]
    replay = {**known[number], "mode": "Classic"}
    game = Game(deal(replay["seed"]), MAY_19, draw=read(replay).draw)
    places = {pile: pile for pile in FOUNDATIONS}
    moves = []
    for source, target, size in read(replay).moves:
        if target in FOUNDATIONS and not game.board[places[target]]:
            first = next(pile for pile in FOUNDATIONS if not game.board[pile])
            other = next(pile for pile, place in places.items() if place == first)
            places[other], places[target] = places[target], first
        move = Move(places.get(source, source), places.get(target, target), size) if source >= 0 else STOCK_CLICK
        assert game.play(move)
        moves.append(move)
    assert game.score == replay["final_score"]
    named = [
        None if move == STOCK_CLICK else (PILE_NAMES[move.source], PILE_NAMES[move.target], move.size) for move in moves
    ]
    return {**replay, "moves": [recorded(move) for move in moves]}, named


def solution(seed):
    """Return the replay of a win of a deal, drawing one, that the service's own search finds, and its moves."""
    moves = find_win(seed, "DrawOne").moves
    named = [
        None if move == STOCK_CLICK else (PILE_NAMES[move.source], PILE_NAMES[move.target], move.size) for move in moves
    ]
    return {"seed": seed, "draw_mode": "DrawOne"}, named


def address(replay):
    draw = "three" if replay["draw_mode"] == "DrawThree" else "one"
    return f"/play?deal={replay['seed']}&draw={draw}"


def journals(page, expression):
    """Return the value of an asynchronous expression, such as one of JOURNALS."""
    return page.evaluate(f"(async () => {expression})()")


def until_journals(page, expression):
    """Wait until an asynchronous expression is true."""
    return until(page, f"(async () => {expression})()")


def until_stored(page, games):
    """Wait until IndexedDB has this number of finished games. After an earlier exit, the next /play stores them."""
    until_journals(page, f"(({{ known, unsaved }}) => known.length === {games} && !unsaved)({JOURNALS})")


class Hand:
    """A hand that makes moves in a page, by mouse, finger or keyboard."""

    def __init__(self, page):
        self.page = page

    def centre(self, pile, count=1):
        return self.page.evaluate(CENTRE, [pile, count])

    def stock(self):
        self.page.mouse.click(*self.centre("s"))

    def select(self, pile):
        self.page.mouse.click(*self.centre(pile))

    def drag(self, move):
        if move is None:
            return self.stock()
        source, target, count = move
        mouse = self.page.mouse
        start = self.centre(source, count)
        mouse.move(*start)
        mouse.down()
        mouse.move(start[0] + 5, start[1] + 5)
        mouse.move(*self.centre(target))
        mouse.up()
        return None

    def tap(self, move):
        self.page.touchscreen.tap(*(self.centre("s") if move is None else self.centre(move[0], move[2])))
        if move is not None:
            self.page.touchscreen.tap(*self.centre(move[1]))

    def key(self, move):
        press = self.page.keyboard.press
        if move is None:
            press("s")
            return press("Enter")
        source, target, count = move
        if source == "w":
            press("w")
        elif source[0] == "t":
            press(str(int(source[1]) + 1))
            for _ in range(count - 1):
                press("ArrowUp")
        else:
            press("f")
            for _ in range(int(source[1])):
                press("ArrowRight")
        press("x")
        return press("f" if target[0] == "f" else str(int(target[1]) + 1))


class Fingers:
    """Fingers on a touch screen: each finger captures the pointer from its first to its last touch."""

    def __init__(self, page):
        self._send = page.context.new_cdp_session(page).send
        self._down = {}

    def _tell(self, kind, down):
        points = [{"x": x, "y": y, "id": finger} for finger, (x, y) in down.items()]
        self._send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def press(self, point, finger=0):
        self._down[finger] = point
        self._tell("touchStart", self._down)

    def move(self, point, finger=0):
        self._down[finger] = point
        self._tell("touchMove", self._down)

    def lift(self, finger=0):
        self._tell("touchEnd", {finger: self._down.pop(finger)} if len(self._down) > 1 else {})
        self._down.pop(finger, None)

    def spread(self, box):
        """Move two fingers apart from the middle of a box, each by 60 pixels."""
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self._down = {0: (x - 30, y), 1: (x + 30, y)}
        self._tell("touchStart", self._down)
        for step in range(1, 11):
            self._tell("touchMove", {0: (x - 30 - 6 * step, y), 1: (x + 30 + 6 * step, y)})
        self._down.clear()
        self._tell("touchEnd", {})

    def drag(self, start, end, *, steps, pause):
        """Drag in `steps` steps, with `pause` milliseconds before each."""
        self.press(start)
        for step in range(1, steps + 1):
            time.sleep(pause / 1000)
            self.move([begin + (stop - begin) * step / steps for begin, stop in zip(start, end, strict=True)])
        self.lift()


def opened(visitor, path="/play"):
    """Open the page to play, wait for its cards, and return the page."""
    page = visitor.page
    page.goto(path)
    until(page, "document.querySelector('#board li') && !document.querySelector('[aria-busy]')")
    return page


def choose(page, **settings):
    """Open the settings and change some of them, such as `tap=False`."""
    page.evaluate("document.querySelector('#settings details').open = true")
    for name, value in settings.items():
        page.set_checked(f"[name={name}]", value)


def kept(page):
    """Return the game that the browser has stored."""
    return page.evaluate(KEPT)


def keep(page, replay, moves, *, ms=200_000, undos=(), day=None, number=0):
    """Store a game with its moves in the browser, from a page that doesn't store games itself.

    The service ignores a game that it knows: games of one length need different numbers.
    """
    page.goto("/replays")
    letters = "abcdefghijkl"
    piles = ("f0", "f1", "f2", "f3", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "w")
    text = "".join(
        "s-0" if move is None else f"{letters[piles.index(move[0])]}{letters[piles.index(move[1])]}{move[2]:x}"
        for move in moves
    )
    game = {
        "id": f"3f2c0e9a-0000-4000-8000-{number:06}{len(moves):06}",
        "deal": str(replay["seed"]),
        "draw": 3 if replay["draw_mode"] == "DrawThree" else 1,
        "day": day,
        "moves": text,
        "undos": list(undos),
        "ms": ms,
    }
    page.evaluate(f"game => localStorage.setItem({DAY_KEY if day else KEY}, JSON.stringify(game))", game)
