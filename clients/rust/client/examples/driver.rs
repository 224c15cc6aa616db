//! The driver of the conformance suite (clients/conformance/README.md): each command has a thread of its own.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use solisync_client::{
    Answer, Chunk, Client, Done, Draw, Error, Event, FileStore, Game, Lost, Request, Transport, UreqTransport, block_on,
};
use std::collections::VecDeque;
use std::io::{BufRead, Write, stdin, stdout};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{sleep, spawn};
use std::time::Duration;

const POLL: Duration = Duration::from_millis(100);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Command {
    id: u64,
    r#do: String,
    url: String,
    store: String,
    clock: f64,
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
    draw_mode: Draw,
    replay: Option<Box<RawValue>>,
}

/// A transport whose clock is wrong.
struct Wrong {
    transport: UreqTransport,
    ahead: Arc<AtomicI64>,
}

impl Transport for Wrong {
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

#[derive(Default)]
struct Heard {
    events: Mutex<VecDeque<(String, String)>>,
    came: Condvar,
    follows: Mutex<bool>,
}

#[derive(Clone)]
struct Device {
    client: Client,
    ahead: Arc<AtomicI64>,
    heard: Arc<Heard>,
}

fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1000.0) as i64
}

impl Device {
    fn open(command: &Command) -> Result<Device, Error> {
        let ahead = Arc::new(AtomicI64::new(milliseconds(command.clock)));
        let transport = Wrong { transport: UreqTransport::default(), ahead: ahead.clone() };
        let client = Client::new(&command.url, FileStore::open(&command.store)?, transport)?;
        Ok(Device { client, ahead, heard: Arc::default() })
    }

    /// Wait for an event of the stream, which opens with the first call.
    fn event(&self, name: &str) -> Value {
        if !std::mem::replace(&mut *self.heard.follows.lock().unwrap(), true) {
            let Device { client, heard, .. } = self.clone();
            spawn(move || block_on(client.follow(&[])));
            let client = self.client.clone();
            spawn(move || {
                loop {
                    match client.next_event() {
                        Some(Event::Stream { name, data }) => heard.events.lock().unwrap().push_back((name, data)),
                        Some(_) => {}
                        None => sleep(POLL),
                    }
                    heard.came.notify_all();
                }
            });
        }
        let mut events = self.heard.events.lock().unwrap();
        loop {
            if let Some(found) = events.iter().position(|(other, _)| other == name) {
                let (_, data) = events.remove(found).expect("it was found");
                return serde_json::from_str(&data).expect("the data of events is JSON");
            }
            events = self.heard.came.wait(events).unwrap();
        }
    }

    fn verdict(&self, game: &str) -> Result<String, Error> {
        loop {
            match block_on(self.client.verdict(game))? {
                Some(verdict) if verdict.status != "pending" => return Ok(verdict.status),
                _ => sleep(POLL),
            }
        }
    }

    fn obey(&self, command: Command) -> Result<Value, Error> {
        let Device { client, ahead, .. } = self;
        let (name, password) = (&*command.username, &*command.password);
        match &*command.r#do {
            "register" => block_on(client.register(name, password))?,
            "login" => block_on(client.login(name, password))?,
            "guest" if command.anew => block_on(client.new_guest())?,
            "guest" => block_on(client.guest())?,
            "claim" => block_on(client.claim(name, password))?,
            "join" => block_on(client.join(name, password))?,
            "logout" => block_on(client.sign_out())?,
            "refresh" => block_on(client.refresh())?,
            "sync" => block_on(client.sync())?,
            "clock" => ahead.store(milliseconds(command.seconds), Ordering::Relaxed),
            "me" => return block_on(client.me()).map(|me| json!({"username": me.username, "guest": me.guest})),
            "verdict" => return self.verdict(&command.game_id).map(|status| json!({"status": status})),
            "event" => return Ok(json!({"data": self.event(&command.name)})),
            "totals" => {
                if client.latest::<serde::de::IgnoredAny>().is_none() {
                    block_on(client.sync())?;
                }
                return Ok(json!(client.totals()));
            }
            "finish" => {
                let game = command.game.expect("a game");
                let Finished { game_id: id, won, score, seconds, draw_mode: draw, replay } = game;
                let replay = replay.map(|replay| replay.get().to_owned());
                client.finish(Game { id, won, score, seconds, draw, replay, ..Game::default() })?;
            }
            other => panic!("{other} is no command"),
        }
        Ok(json!({}))
    }
}

fn say(id: u64, answer: Result<Value, Error>) {
    let line = match answer {
        Ok(ok) => json!({"id": id, "ok": ok}),
        Err(Error { code, status, retry_after, message, .. }) => {
            json!({"id": id, "error": {"code": code.as_str(), "status": status, "retry_after": retry_after, "message": message}})
        }
    };
    let mut out = stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the suite listens");
}

fn main() {
    let mut device: Option<Device> = None;
    for line in stdin().lock().lines() {
        let command: Command = serde_json::from_str(&line.expect("a line")).expect("a command");
        let id = command.id;
        if command.r#do == "open" {
            drop(device.take());
            let opened = Device::open(&command);
            device = opened.as_ref().ok().cloned();
            let signed_in = opened.map(|device| device.client.player().is_some());
            say(id, signed_in.map(|signed_in| json!({"signed_in": signed_in, "can": ["verdict", "event", "keys"]})));
            continue;
        }
        let device = device.clone().expect("an open store");
        spawn(move || say(id, device.obey(command)));
    }
}
