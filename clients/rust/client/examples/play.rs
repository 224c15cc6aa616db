//! Win a game of Klondike as a guest, and wait for the verdict: `play URL DIRECTORY [CERTIFICATE]`, with the certificate of
//! an authority to trust.

use solisync_client::{Background, Client, Event, FileStore, Game, UreqTransport};
use solisync_klondike::{Draw, Game as Klondike, Mode, Move, Pile};
use std::error::Error;
use std::thread::sleep;
use std::time::Duration;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

const SEED: u64 = 11; // this deal needs no thought
const TURNS: u32 = 3;

/// Make a move: to a foundation, or else any but those that turn no card up. Without one, draw.
fn play(game: &mut Klondike) -> bool {
    let position = game.position();
    let helps = |made: &&Move| match **made {
        Move::Cards { from: Pile::Column(from), to: Pile::Column(_), count } => {
            let (cards, down) = (&position.columns[usize::from(from)], position.down[usize::from(from)]);
            down > 0 && cards.len() == usize::from(down + count)
        }
        Move::Cards { from, .. } => !matches!(from, Pile::Foundation(_)),
        Move::Stock => false,
    };
    let moves = position.moves();
    let home = moves.iter().find(|made| matches!(made, Move::Cards { to: Pile::Foundation(_), .. }));
    let made = home.or_else(|| moves.iter().find(helps));
    game.play(made.copied().unwrap_or(Move::Stock)).is_some()
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, directory, certificates @ ..] = words.as_slice() else {
        return Err("play URL DIRECTORY [CERTIFICATE]".into());
    };
    let transport = match certificates.first() {
        None => UreqTransport::default(),
        Some(file) => {
            let certificate = Certificate::from_pem(&std::fs::read(file)?)?;
            let tls = TlsConfig::builder().root_certs(RootCerts::new_with_certs(&[certificate])).build();
            UreqTransport::new(Agent::config_builder().tls_config(tls))
        }
    };
    let client = Client::new(url, FileStore::open(directory)?, transport)?;
    let id = client.new_id();
    let mut game = Klondike::new(SEED, Draw::One, Mode::Classic);
    while !game.is_won() && game.turns() < TURNS && play(&mut game) {}
    client.finish(Game::of(&game, id.clone(), 184, &client.now()))?;
    let _background = Background::with_guest(&client, &[]);
    loop {
        match client.next_event() {
            Some(Event::Verdict { game, status, .. }) if game.as_ref() == Some(&id) => {
                println!("won {}, {status}", client.totals().games_won);
                return Ok(());
            }
            Some(Event::Trouble(error)) => return Err(error.into()),
            Some(_) => {}
            None => sleep(Duration::from_millis(16)),
        }
    }
}
