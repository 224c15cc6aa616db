//! Win a game as a guest: `play URL DIRECTORY [CERTIFICATE]`, with the certificate of an authority to trust.

use solisync_client::{Client, FileStore, Game, UreqTransport, block_on};
use std::error::Error;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

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
    client.finish(Game { id: client.new_id(), won: true, score: 670, seconds: 184, ..Game::default() })?;
    block_on(async {
        client.guest().await?;
        client.sync().await
    })?;
    println!("won {}", client.totals().games_won);
    Ok(())
}
