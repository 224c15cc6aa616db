"""Playback of a timeline as a page does it, without any rule of the game."""

from solisync.klondike.rules import FACE_DOWN, PILE_NAMES


class Player:
    """A player of a timeline: piles of cards, and the cards that lie face down."""

    def __init__(self, deal):
        self.piles = {name: [] for name in PILE_NAMES} | {"s": list(deal["stock"])}
        self.piles |= {f"t{index}": list(cards) for index, cards in enumerate(deal["tableau"])}
        self.down = {card for cards in deal["tableau"] for card in cards[:-1]}

    def show(self, step):
        source, target = self.piles[step["from"]], self.piles[step["to"]]
        turned_over = {step["from"], step["to"]} == {"s", "w"} and (step["from"] == "w") == (step["input"] == "stock")
        cards = step["cards"]
        if step["input"] == "undo" and turned_over:
            cards = cards[::-1]
        assert source[-len(cards) :] == cards
        del source[-len(cards) :]
        target += cards[::-1] if turned_over else cards
        if step["flipped"] is not None:
            assert (step["flipped"] in self.down) == (step["input"] == "move")
            self.down ^= {step["flipped"]}

    @property
    def board(self):
        return tuple(bytes(card + FACE_DOWN * (card in self.down) for card in self.piles[name]) for name in PILE_NAMES)
