//! Deals, published replays, and games of the original engine.

use serde_json::Value;
use solisync_klondike::{Draw, Game, Level, Mode, Move, Pile, Position, shuffled};
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

fn replays() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/replays")
}

fn json(path: impl AsRef<Path>) -> Value {
    serde_json::from_str(&read_to_string(path).unwrap()).unwrap()
}

fn pile(value: &Value) -> Option<Pile> {
    let number = |name: &str| Some(value[name].as_u64()? as u8);
    match value.as_str() {
        Some("Waste") => Some(Pile::Waste),
        Some(_) => None, // no rule moves cards from or to the stock
        None => number("Foundation").map(Pile::Foundation).or(number("Tableau").map(Pile::Column)),
    }
}

fn game(replay: &Value) -> Game {
    let draw = if replay["draw_mode"] == "DrawThree" { Draw::Three } else { Draw::One };
    let mode = match replay["mode"].as_str() {
        Some("Zen") => Mode::Zen,
        Some("Challenge") => Mode::Challenge,
        Some("TimeAttack") => Mode::TimeAttack,
        Some(_) => Mode::Classic,
        None => Mode::Difficulty(Level::Easy),
    };
    let seed = &replay["seed"];
    Game::new(seed.as_u64().unwrap_or_else(|| seed.as_str().unwrap().parse().unwrap()), draw, mode)
}

/// Do what a record says, and return whether the rules accept it.
fn done(game: &mut Game, input: &Value) -> bool {
    match input.as_str() {
        Some("StockClick") => game.play(Move::Stock).is_some(),
        Some("Undo") => game.undo(),
        _ => {
            let Value::Object(made) = &input["Move"] else { panic!("{input}") };
            let (Some(from), Some(to)) = (pile(&made["from"]), pile(&made["to"])) else { return false };
            game.play(Move::Cards { from, to, count: made["count"].as_u64().unwrap() as u8 }).is_some()
        }
    }
}

#[test]
fn seeds_give_the_published_deals() {
    for deal in json(replays().join("deals.json")).as_array().unwrap() {
        let deck: Vec<u8> = serde_json::from_value(deal["deck"].clone()).unwrap();
        assert_eq!(shuffled(deal["seed"].as_str().unwrap().parse().unwrap()).as_slice(), deck, "{}", deal["seed"]);
    }
}

#[test]
fn published_replays_are_played_and_recorded_again() {
    for name in ["won_draw_one", "won_draw_three", "won_with_undo_places", "seed_as_number", "seed_as_text"] {
        let replay = json(replays().join(format!("{name}.json")));
        let mut game = game(&replay);
        let places: Vec<usize> = serde_json::from_value(replay["undo_places"].clone()).unwrap_or_default();
        for (number, input) in replay["moves"].as_array().unwrap().iter().enumerate() {
            for _ in places.iter().filter(|place| **place == number) {
                assert!(game.undo(), "{name}");
            }
            assert!(!game.is_won() && game.replay(1, "2026-11-28").is_none(), "{name}");
            assert!(done(&mut game, input), "{name}: {input}");
        }
        assert!(game.is_won(), "{name}");
        assert_eq!(Value::from(game.score()), replay["final_score"], "{name}");
        assert_eq!(game.is_undone(), !places.is_empty(), "{name}");
        let record: Value = serde_json::from_str(&game.replay(184, "2026-11-28").unwrap()).unwrap();
        for field in ["moves", "draw_mode", "mode", "final_score"] {
            assert_eq!(record[field], replay[field], "{name}: {field}");
        }
        assert_eq!(record["undo_places"], Value::from(places), "{name}");
        assert!(!game.undo() && game.play(Move::Stock).is_none(), "{name}: a won game is over");
    }
}

#[test]
fn listed_moves_are_those_that_the_rules_accept() {
    let replay = json(replays().join("won_draw_one.json"));
    let mut game = game(&replay);
    for input in replay["moves"].as_array().unwrap() {
        let listed = game.position().moves();
        for from in (0..5).map(Pile::Foundation).chain((0..8).map(Pile::Column)).chain([Pile::Waste]) {
            for to in (0..5).map(Pile::Foundation).chain((0..8).map(Pile::Column)).chain([Pile::Waste]) {
                for count in 0..14 {
                    let made = Move::Cards { from, to, count };
                    let accepted = game.position().clone().play(made, Draw::One);
                    assert_eq!(accepted.is_some(), listed.contains(&made), "{made:?}");
                }
            }
        }
        assert!(done(&mut game, input));
    }
}

#[test]
fn undo_reaches_sixty_four_moves_back() {
    let mut game = Game::new(2202, Draw::One, Mode::Classic);
    for _ in 0..100 {
        game.play(Move::Stock).unwrap();
    }
    assert_eq!((0..100).filter(|_| game.undo()).count(), 64);
    let mut challenge = Game::new(2202, Draw::One, Mode::Challenge);
    challenge.play(Move::Stock).unwrap();
    assert!(!challenge.undo());
}

/// The position as the traces spell it.
fn board(position: &Position) -> String {
    let pile = |name: &str, cards: &[u8], down: usize| {
        let card = |(at, card): (usize, &u8)| if at < down { format!("({card})") } else { card.to_string() };
        format!("{name}:{}", cards.iter().enumerate().map(card).collect::<Vec<_>>().join(" "))
    };
    let foundations = (0..4).map(|n| pile(&format!("f{n}"), &position.foundations[n], 0));
    let columns = (0..7).map(|n| pile(&format!("t{n}"), &position.columns[n], position.down[n].into()));
    let piles = [pile("s", &position.stock, 24)].into_iter().chain(columns).chain([pile("w", &position.waste, 0)]);
    foundations.chain(piles).collect::<Vec<_>>().join("|")
}

/// The file is one of tests/klondike/vectors, unpacked; `make test-clients` names it.
#[test]
#[ignore = "needs SOLISYNC_TRACES"]
fn every_attempt_of_the_traces_ends_as_recorded() {
    let mut attempts = 0;
    for line in read_to_string(std::env::var("SOLISYNC_TRACES").unwrap()).unwrap().lines() {
        let trace: Value = serde_json::from_str(line).unwrap();
        let mut game = game(&trace);
        for (at, input) in trace["inputs"].as_array().unwrap().iter().enumerate() {
            assert_eq!(Value::from(done(&mut game, input)), trace["accepted"][at], "{input}");
            assert_eq!(Value::from(game.score()), trace["scores"][at], "{input}");
            attempts += 1;
        }
        assert_eq!(board(game.position()), trace["last_board"].as_str().unwrap());
        assert_eq!(
            (Value::from(game.is_won()), Value::from(game.turns())),
            (trace["won"].clone(), trace["recycles"].clone())
        );
    }
    assert!(attempts > 2_000);
}
