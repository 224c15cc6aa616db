//! Positions and moves (docs/replays.md, "The rules", ruleset 2026-05-19).

use crate::deal::shuffled;
use alloc::vec::Vec;

/// A card: 0 to 51, by suit (clubs, diamonds, hearts, spades), and within a suit from the ace to the king.
pub type Card = u8;

const KING: u8 = 12;

/// The rank of a card: 0 is an ace, 12 a king.
pub const fn rank(card: Card) -> u8 {
    card % 13
}

/// Whether a card is a diamond or a heart.
pub const fn is_red(card: Card) -> bool {
    card >= 13 && card < 39
}

/// How many cards a click on the stock draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Draw {
    /// One card.
    #[default]
    One = 1,
    /// Three cards.
    Three = 3,
}

/// A place for cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pile {
    /// The cards that were drawn.
    Waste,
    /// A foundation, 0 to 3.
    Foundation(u8),
    /// A column, 0 to 6.
    Column(u8),
}

/// What a player can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// A click on the stock, which draws cards or turns the waste over.
    Stock,
    /// Move the last `count` cards of one pile to another.
    Cards {
        /// The pile that has the cards.
        from: Pile,
        /// The pile that takes them.
        to: Pile,
        /// How many.
        count: u8,
    },
}

/// What a move has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Played {
    /// The card that the move turned up.
    pub flipped: Option<Card>,
    /// Whether the waste was turned over.
    pub turned: bool,
}

/// Where the cards are. Lists have the lowest card first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The cards to draw; the last one comes first.
    pub stock: Vec<Card>,
    /// The cards that were drawn; the last one can be played.
    pub waste: Vec<Card>,
    /// The foundations.
    pub foundations: [Vec<Card>; 4],
    /// The columns.
    pub columns: [Vec<Card>; 7],
    /// How many cards of each column lie face down.
    pub down: [u8; 7],
}

/// Whether a card may lie on another one in a column.
const fn descends(card: Card, under: Card) -> bool {
    rank(under) == rank(card) + 1 && is_red(under) != is_red(card)
}

impl Position {
    /// The position at the beginning of a deal.
    pub fn deal(seed: u64) -> Position {
        let cards = shuffled(seed);
        let columns = core::array::from_fn(|column| {
            let first = column * (column + 1) / 2;
            cards[first..=first + column].to_vec()
        });
        let down = core::array::from_fn(|column| column as u8);
        Position { stock: cards[28..].to_vec(), waste: Vec::new(), foundations: Default::default(), columns, down }
    }

    /// Whether each foundation has all its cards.
    pub fn is_won(&self) -> bool {
        self.foundations.iter().all(|foundation| foundation.len() == 13)
    }

    /// The cards of a pile; none if there is no such pile.
    pub fn cards(&self, pile: Pile) -> &[Card] {
        match pile {
            Pile::Waste => &self.waste,
            Pile::Foundation(number) => self.foundations.get(usize::from(number)).map_or(&[], Vec::as_slice),
            Pile::Column(number) => self.columns.get(usize::from(number)).map_or(&[], Vec::as_slice),
        }
    }

    fn cards_mut(&mut self, pile: Pile) -> &mut Vec<Card> {
        match pile {
            Pile::Waste => &mut self.waste,
            Pile::Foundation(number) => &mut self.foundations[usize::from(number)],
            Pile::Column(number) => &mut self.columns[usize::from(number)],
        }
    }

    /// The last `count` cards of a pile, if they can be moved together.
    fn run(&self, pile: Pile, count: u8) -> Option<&[Card]> {
        let (cards, count) = (self.cards(pile), usize::from(count));
        let first = cards.len().checked_sub(count).filter(|_| count > 0)?;
        let run = &cards[first..];
        let is_free = match pile {
            Pile::Column(number) => first >= usize::from(self.down[usize::from(number)]),
            _ => count == 1,
        };
        (is_free && run.windows(2).all(|pair| descends(pair[1], pair[0]))).then_some(run)
    }

    fn takes(&self, pile: Pile, cards: &[Card]) -> bool {
        let last = self.cards(pile).last().copied();
        match pile {
            Pile::Foundation(0..4) => {
                let [card] = *cards else { return false };
                last.map_or(rank(card) == 0, |last| card == last + 1 && rank(card) > 0)
            }
            Pile::Column(0..7) => last.map_or(rank(cards[0]) == KING, |last| descends(cards[0], last)),
            _ => false,
        }
    }

    /// Whether the rules accept a move of cards.
    fn accepts(&self, from: Pile, to: Pile, count: u8) -> bool {
        let between_foundations = matches!((from, to), (Pile::Foundation(_), Pile::Foundation(_)));
        from != to && !between_foundations && self.run(from, count).is_some_and(|cards| self.takes(to, cards))
    }

    /// Make a move. None if the rules refuse it; the position is unchanged then.
    pub fn play(&mut self, made: Move, draw: Draw) -> Option<Played> {
        let Move::Cards { from, to, count } = made else { return self.click(draw) };
        if self.is_won() || !self.accepts(from, to, count) {
            return None;
        }
        let cards = self.cards_mut(from);
        let moved = cards.split_off(cards.len() - usize::from(count));
        self.cards_mut(to).extend(moved);
        let flipped = match from {
            Pile::Column(number) => self.turn_up(usize::from(number)),
            _ => None,
        };
        Some(Played { flipped, turned: false })
    }

    fn turn_up(&mut self, column: usize) -> Option<Card> {
        let (cards, down) = (&self.columns[column], &mut self.down[column]);
        let flipped = cards.last().copied().filter(|_| cards.len() == usize::from(*down));
        *down -= u8::from(flipped.is_some());
        flipped
    }

    fn click(&mut self, draw: Draw) -> Option<Played> {
        let turned = self.stock.is_empty();
        if (turned && self.waste.is_empty()) || self.is_won() {
            return None;
        }
        if turned {
            self.stock = core::mem::take(&mut self.waste);
            self.stock.reverse();
        } else {
            let drawn = self.stock.split_off(self.stock.len().saturating_sub(draw as usize));
            self.waste.extend(drawn);
        }
        Some(Played { flipped: None, turned })
    }

    /// All moves of cards that the rules accept. A click on the stock is a move while it or the waste has cards.
    pub fn moves(&self) -> Vec<Move> {
        let piles = || (0..4).map(Pile::Foundation).chain((0..7).map(Pile::Column));
        let mut found = Vec::new();
        for from in core::iter::once(Pile::Waste).chain(piles()) {
            for count in 1..=self.cards(from).len() as u8 {
                let targets = piles().filter(|to| self.accepts(from, *to, count));
                found.extend(targets.map(|to| Move::Cards { from, to, count }));
            }
        }
        found
    }
}
