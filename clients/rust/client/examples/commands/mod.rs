//! The commands of clients/conformance/README.md, for the native driver and the one in a page.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use solisync_client::{Answer, Chunk, Client, Done, Draw, Error, Event, Game, Lost, Request, Store, Transport};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;

const POLL: Duration = Duration::from_millis(100);

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Command {
    pub id: u64,
    pub r#do: String,
    pub url: String,
    #[allow(dead_code)] // a page has a store of its own
    pub store: String,
    pub clock: f64,
    seconds: f64,
    username: String,
    password: String,
    anew: bool,
    game: Option<Finished>,
    game_id: String,
    name: String,
}

#[derive(Deserialize)]
struct Finished {
    game_id: String,
    won: bool,
    score: u32,
    seconds: u32,
    draw_mode: String,
    replay: Option<Box<RawValue>>,
}

/// A transport whose clock is wrong.
struct Wrong<T> {
    transport: T,
    ahead: Arc<AtomicI64>,
}

impl<T: Transport> Transport for Wrong<T> {
    fn send(&self, request: Request, done: Done<Result<Answer, Lost>>) {
        self.transport.send(request, done);
    }
    fn after(&self, pause: Duration, done: Done<()>) {
        self.transport.after(pause, done);
    }
    fn stream(&self, request: Request, each: Box<dyn FnMut(Chunk) -> bool + Send>) {
        self.transport.stream(request, each);
    }
    fn now(&self) -> i64 {
        self.transport.now() + self.ahead.load(Ordering::Relaxed)
    }
    fn elapsed(&self) -> Duration {
        self.transport.elapsed()
    }
    fn random(&self, bytes: &mut [u8]) {
        self.transport.random(bytes);
    }
}

#[derive(Clone)]
pub struct Device {
    client: Client,
    transport: Arc<dyn Transport>,
    ahead: Arc<AtomicI64>,
    heard: Arc<Mutex<VecDeque<(String, String)>>>,
    follows: Arc<AtomicBool>,
}

fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1000.0) as i64
}

impl Device {
    pub fn open<T: Transport + Clone + 'static>(
        command: &Command,
        store: impl Store + 'static,
        transport: T,
    ) -> Result<Device, Error> {
        let ahead = Arc::new(AtomicI64::new(milliseconds(command.clock)));
        let client = Client::new(&command.url, store, Wrong { transport: transport.clone(), ahead: ahead.clone() })?;
        let (heard, follows) = (Arc::default(), Arc::default());
        Ok(Device { client, transport: Arc::new(transport), ahead, heard, follows })
    }

    pub fn opened(&self) -> Value {
        json!({"signed_in": self.client.player().is_some(), "can": ["verdict", "event", "keys"]})
    }

    async fn pause(&self) {
        let (rings, rung) = oneshot::channel();
        self.transport.after(POLL, Box::new(move |()| _ = rings.send(())));
        _ = rung.await;
    }

    /// Wait for an event of the stream.
    async fn event(&self, name: &str) -> Value {
        loop {
            while let Some(event) = self.client.next_event() {
                if let Event::Stream { name, data } = event {
                    self.heard.lock().unwrap().push_back((name, data));
                }
            }
            let found = {
                let mut heard = self.heard.lock().unwrap();
                let place = heard.iter().position(|(other, _)| other == name);
                place.and_then(|place| heard.remove(place))
            };
            match found {
                Some((_, data)) => return serde_json::from_str(&data).expect("the data of events is JSON"),
                None => self.pause().await,
            }
        }
    }

    async fn verdict(&self, game: &str) -> Result<String, Error> {
        loop {
            match self.client.verdict(game).await? {
                Some(verdict) if verdict.status != "pending" => return Ok(verdict.status),
                _ => self.pause().await,
            }
        }
    }

    /// Obey a command. `spawn` runs the stream beside the commands.
    async fn obeyed(&self, command: Command, spawn: fn(Device)) -> Result<Value, Error> {
        let Device { client, ahead, .. } = self;
        let (name, password) = (&*command.username, &*command.password);
        match &*command.r#do {
            "register" => client.register(name, password).await?,
            "login" => client.login(name, password).await?,
            "guest" if command.anew => client.new_guest().await?,
            "guest" => client.guest().await?,
            "claim" => client.claim(name, password).await?,
            "join" => client.join(name, password).await?,
            "logout" => client.sign_out().await?,
            "refresh" => client.refresh().await?,
            "sync" => client.sync().await?,
            "clock" => ahead.store(milliseconds(command.seconds), Ordering::Relaxed),
            "me" => return client.me().await.map(|me| json!({"username": me.username, "guest": me.guest})),
            "verdict" => return self.verdict(&command.game_id).await.map(|status| json!({"status": status})),
            "event" => {
                if !self.follows.swap(true, Ordering::Relaxed) {
                    spawn(self.clone());
                }
                return Ok(json!({"data": self.event(&command.name).await}));
            }
            "totals" => return Ok(json!(client.totals())),
            "finish" => {
                let game = command.game.expect("a game");
                let Finished { game_id: id, won, score, seconds, draw_mode, replay } = game;
                let draw = if draw_mode == "DrawThree" { Draw::Three } else { Draw::One };
                let replay = replay.map(|replay| replay.get().to_owned());
                client.finish(Game { id, won, score, seconds, draw, replay, ..Game::default() })?;
            }
            other => panic!("{other} is no command"),
        }
        client.flush().await?;
        Ok(json!({}))
    }

    pub async fn obey(&self, command: Command, spawn: fn(Device)) -> String {
        let id = command.id;
        said(id, self.obeyed(command, spawn).await)
    }

    pub async fn follow(self) {
        let _ = self.client.follow(&[]).await;
    }
}

/// The line of an answer.
pub fn said(id: u64, answer: Result<Value, Error>) -> String {
    let line = match answer {
        Ok(ok) => json!({"id": id, "ok": ok}),
        Err(Error { code, status, retry_after, message, .. }) => {
            json!({"id": id, "error": {"code": code.as_str(), "status": status, "retry_after": retry_after, "message": message}})
        }
    };
    line.to_string()
}
