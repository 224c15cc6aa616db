//! A service and a clock that a test makes.
#![allow(dead_code)] // each file of tests needs a part

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use solisync_client::{Answer, Chunk, Client, Done, Event, Game, Lost, Request, Session, Store, Transport};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub const DAY: i64 = 86_400_000;
pub const PATIENCE: Duration = Duration::from_secs(60);

pub type Service = dyn FnMut(&str, Value) -> (u16, Value) + Send;

pub type Each = Box<dyn FnMut(Chunk) -> bool + Send>;

/// A transport whose answers a test makes, as JSON or as text, and whose clock it sets. Pauses have no length, or above
/// `patience` no end.
#[derive(Clone)]
pub struct Scripted {
    pub service: Arc<Mutex<Box<Service>>>,
    pub now: Arc<Mutex<i64>>,
    pub patience: Arc<Mutex<Duration>>,
    pub paused: Arc<Mutex<Vec<Done<()>>>>,
    pub streams: Arc<Mutex<Vec<Each>>>,
}

impl Scripted {
    pub fn new(service: impl FnMut(&str, Value) -> (u16, Value) + Send + 'static) -> Scripted {
        let (service, now) =
            (Arc::new(Mutex::new(Box::new(service) as Box<Service>)), Arc::new(Mutex::new(20_000 * DAY)));
        Scripted {
            service,
            now,
            patience: Arc::new(Mutex::new(Duration::MAX)),
            paused: Arc::default(),
            streams: Arc::default(),
        }
    }

    /// Wait for the next stream, and begin it with the first event.
    pub fn stream(&self) -> Each {
        let mut each = eventually(|| self.streams.lock().unwrap().pop());
        each(Chunk::Begun(Answer { status: 200, headers: vec![], body: vec![] }));
        each(Chunk::Bytes(b"event: hello\ndata: {}\n\n".to_vec()));
        each
    }
}

/// Wait until there is a value.
pub fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let ends = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < ends, "waited in vain");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Wait for an event.
pub fn event<T>(client: &Client, mut wanted: impl FnMut(Event) -> Option<T>) -> T {
    eventually(|| client.next_event().and_then(&mut wanted))
}

impl Transport for Scripted {
    fn send(&self, request: Request, done: Done<Result<Answer, Lost>>) {
        let path = request.url.split_once("//service").unwrap().1;
        let body = request.body.map_or(Value::Null, |body| serde_json::from_slice(&body).unwrap());
        let (status, answer) = (self.service.lock().unwrap())(path, body);
        let code = answer["error"].as_str().map(|code| ("error-code".to_owned(), code.to_owned()));
        let later = answer["retry_after"].as_str().map(|later| ("retry-after".to_owned(), later.to_owned()));
        let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
        done(Ok(Answer { status, headers: code.into_iter().chain(later).collect(), body: text.into_bytes() }));
    }
    fn after(&self, pause: Duration, done: Done<()>) {
        match pause > *self.patience.lock().unwrap() {
            true => self.paused.lock().unwrap().push(done),
            false => done(()),
        }
    }
    fn stream(&self, _request: Request, each: Each) {
        self.streams.lock().unwrap().push(each);
    }
    fn now(&self) -> i64 {
        *self.now.lock().unwrap()
    }
    fn offset(&self) -> i32 {
        -300
    }
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
    fn random(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

/// A store that outlives its clients, and that may be full.
#[derive(Clone, Default)]
pub struct Shared(pub Arc<Mutex<Vec<u8>>>, pub Arc<AtomicBool>);

impl Store for Shared {
    fn load(&mut self) -> io::Result<Option<Vec<u8>>> {
        Ok(Some(self.0.lock().unwrap().clone()))
    }
    fn save(&mut self, value: &[u8]) -> io::Result<()> {
        if self.1.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        *self.0.lock().unwrap() = value.to_vec();
        Ok(())
    }
    fn set_aside(&mut self) -> io::Result<String> {
        unreachable!("each value is whole")
    }
    fn flush(&mut self, done: Done<io::Result<()>>) {
        done(if self.1.load(Ordering::Relaxed) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) });
    }
}

/// What the client sends to `POST /api/games` and `/api/sync/push`, and what the service has counted.
#[derive(Default)]
pub struct Log {
    pub sent: Vec<Vec<String>>,
    pub games: Vec<Value>,
    pub pushed: Vec<Value>,
    pub counted: usize,
}

pub fn tokens() -> Session {
    serde_json::from_value(json!({"access_token": "e30.eyJzdWIiOiJhYmMifQ.x", "refresh_token": "r"})).unwrap()
}

/// A signed-in client. `refuse` may answer instead of the service.
pub fn client(
    store: impl Store + 'static,
    refuse: fn(&str) -> Option<(u16, &'static str)>,
) -> (Client, Scripted, Arc<Mutex<Log>>) {
    let log = Arc::new(Mutex::new(Log::default()));
    let theirs = log.clone();
    let service = move |path: &str, body: Value| {
        if let Some((status, code)) = refuse(path) {
            return (status, json!({"error": code}));
        }
        let mut log = theirs.lock().unwrap();
        let games = body["games"].as_array().cloned().unwrap_or_default();
        let ids: Vec<String> = games.iter().map(|game| game["game_id"].as_str().unwrap().to_owned()).collect();
        let answers: Vec<_> =
            ids.iter().map(|id| json!({"game_id": id, "counted": true, "error": Value::Null})).collect();
        if path == "/api/sync/push" {
            log.pushed.push(body);
        }
        if !ids.is_empty() {
            log.counted += ids.len();
            log.sent.push(ids);
        }
        log.games.extend(games);
        let merged = json!({"stats": {"games_played": log.counted}});
        (200, json!({"id": "abc", "username": "ann", "games": answers, "merged": merged}))
    };
    let transport = Scripted::new(service);
    let client = Client::new("https://service", store, transport.clone()).unwrap();
    client.adopt(tokens()).unwrap();
    (client, transport, log)
}

/// The answer to a sign-in, with the refresh token `of <account>`. Accounts that begin with a g are guests.
pub fn signed_in(account: &str) -> Value {
    session(account, &format!("of {account}"), 1)
}

/// The answer to a sign-in, with an access token that expires at a time.
pub fn session(account: &str, refresh: &str, expires: i64) -> Value {
    let claims = URL_SAFE_NO_PAD.encode(json!({"sub": account, "exp": expires}).to_string());
    let player = json!({"id": account, "guest": account.starts_with('g')});
    json!({"access_token": format!("e30.{claims}.x"), "refresh_token": refresh, "player": player})
}

/// A service that has the guest `guest` and the player `ann`, unless `refuse` answers; and its requests.
pub fn world(refuse: impl Fn(&str) -> Option<(u16, Value)> + Send + 'static) -> (Scripted, Asked) {
    let asked = Asked::default();
    let theirs = asked.clone();
    let transport = Scripted::new(move |path, body| {
        theirs.0.lock().unwrap().push((path.to_owned(), body.clone()));
        refuse(path).unwrap_or_else(|| match path {
            "/api/auth/guest" => (200, signed_in("guest")),
            "/api/auth/login" => (200, signed_in("ann")),
            "/api/me" => (200, json!({"id": "guest", "username": "guest_a", "guest": true})),
            _ => {
                let games = body["games"].as_array().cloned().unwrap_or_default();
                let answers: Vec<_> = games.iter().map(|_| json!({"counted": true, "error": Value::Null})).collect();
                (200, json!({"id": "abc", "games": answers, "merged": {"stats": {"games_played": 1}}}))
            }
        })
    });
    (transport, asked)
}

/// Requests: paths and bodies.
#[derive(Clone, Default)]
pub struct Asked(Arc<Mutex<Vec<(String, Value)>>>);

impl Asked {
    /// The bodies of the requests of a path since the last call.
    pub fn take(&self, path: &str) -> Vec<Value> {
        let all = std::mem::take(&mut *self.0.lock().unwrap());
        all.into_iter().filter(|(asked, _)| asked == path).map(|(_, body)| body).collect()
    }
}

/// The beginning of a path, and its answer.
type Route = (&'static str, u16, Value);

/// Answers that a test changes.
#[derive(Clone, Default)]
pub struct Answers(Arc<Mutex<Vec<Route>>>);

impl Answers {
    /// Answer paths that begin so with an error code, or as a proxy with a text.
    pub fn set(&self, answers: &[Route]) {
        *self.0.lock().unwrap() = answers.to_vec();
    }

    /// For [`world`].
    pub fn get(&self) -> impl Fn(&str) -> Option<(u16, Value)> + Send + use<> {
        let answers = self.0.clone();
        move |path| {
            let answers = answers.lock().unwrap();
            let (_, status, value) = answers.iter().find(|(start, ..)| path.starts_with(start))?;
            Some((*status, value.clone()))
        }
    }
}

pub fn refused(code: &str) -> Value {
    json!({"error": code})
}

/// A client of a device with this store.
pub fn started(store: impl Store + 'static, transport: &Scripted) -> Client {
    Client::new("https://service", store, transport.clone()).unwrap()
}

pub fn win(number: usize) -> Game {
    let id = format!("00000000-0000-4000-8000-{number:012}");
    Game { id, won: true, score: 5, seconds: 60, replay: Some("{}".to_owned()), ..Game::default() }
}

pub fn finish(client: &Client, number: usize) -> String {
    let id = format!("00000000-0000-4000-8000-{number:012}");
    client.finish(Game { id: id.clone(), won: number > 1, score: 5, seconds: 60, ..Game::default() }).unwrap();
    id
}

pub fn nothing(_: &str) -> Option<(u16, &'static str)> {
    None
}
