//! A client: what it keeps, and its requests.

use crate::error::Error;
use crate::journal::{Entry, Journal, Session, Unreadable};
use crate::messages::Code;
use crate::store::Store;
use crate::text::{http_date, key};
use crate::transport::{Answer, Lost, Request, Transport, called};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Mutex as Lock, Notify};

pub(crate) const TIMEOUT: Duration = Duration::from_secs(45); // the service reads a body for 30 s, and answers within 15 s
const ATTEMPTS: u32 = 3;
const PATIENCE: u64 = 5; // seconds
const PAUSE_MS: u64 = 300;
const RENEWALS: u32 = 2;
const HEARD: usize = 1_000;
const DAY: u64 = 86_400;

/// What has happened since the last look.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// There is a session.
    SignedIn,
    /// There is no session any more: `left` after `sign_out`, else the code of the service's refusal.
    SignedOut(String),
    /// The session has new tokens, as after `SignedIn`: a game that keeps them elsewhere, too, reads them again.
    Tokens,
    /// The progress may have changed.
    Progress,
    /// A verdict on a win. `game` is None if another device has uploaded it, or if the answer to the upload was lost; the
    /// verdict comes again with the game then.
    Verdict {
        /// The id of the replay.
        replay: String,
        /// The id of the game.
        game: Option<String>,
        /// `verified`, `refuted` …
        status: String,
    },
    /// An event of the stream, with the JSON that it came with.
    Stream {
        /// `hello`, `board` …
        name: String,
        /// JSON.
        data: String,
    },
    /// An error of the work in the background, which continues, or one that the game has reported.
    Trouble(Error),
}

pub(crate) struct Kept {
    pub journal: Journal,
    pub store: Box<dyn Store>,
    /// What the store has.
    saved: Vec<u8>,
}

impl Kept {
    fn save(&mut self, value: Vec<u8>) -> Result<(), Error> {
        if self.saved != value {
            self.store.save(&value)?;
            self.saved = value;
        }
        Ok(())
    }
}

/// What the stream has to know.
#[derive(Default)]
pub(crate) struct Following {
    pub revision: Option<String>,
    /// The verdicts that were reported, by replay, with their games.
    pub reported: BTreeMap<String, (String, Option<String>)>,
}

pub(crate) struct Inner {
    url: String,
    pub transport: Box<dyn Transport>,
    kept: Mutex<Kept>,
    events: Mutex<VecDeque<Event>>,
    pub syncing: Lock<()>,
    pub refreshing: Lock<()>,
    pub work: Notify,
    pub signed: Notify,
    /// Wakes what waits for the end of a sync.
    pub synced: Notify,
    /// Whether the last sync has failed, and the service hasn't named a time for the next one.
    pub overdue: AtomicBool,
    /// Whether the service has named a time for the next sync, so that a finished game causes none before.
    pub must_wait: AtomicBool,
    pub following: Mutex<Following>,
    /// When the client last tried what was set aside.
    pub tried: Mutex<Option<Duration>>,
    /// Whether this run has asked the service for the guest's key.
    pub keyed: AtomicBool,
}

/// A device of a player. Clones share everything.
#[derive(Clone)]
pub struct Client(pub(crate) Arc<Inner>);

pub(crate) fn body(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("a body has no maps with other keys than texts")
}

pub(crate) fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, Error> {
    serde_json::from_slice(&answer.body).map_err(|error| Error::network(answer.status, 0, error.to_string()))
}

impl Client {
    /// Open a directory for the service at an address, as most games need it.
    #[cfg(all(feature = "ureq", not(target_arch = "wasm32")))]
    pub fn open(url: &str, directory: impl AsRef<std::path::Path>) -> Result<Client, Error> {
        if !(url.starts_with("https://") || url.starts_with("http://")) {
            return Err(Error::bad_field("the address of the service must begin with https:// or http://"));
        }
        Client::new(url, crate::FileStore::open(directory)?, crate::UreqTransport::default())
    }

    /// Use a store and a transport. If the store has a damaged journal, it is set aside, and an event reports it.
    pub fn new(url: &str, store: impl Store + 'static, transport: impl Transport + 'static) -> Result<Client, Error> {
        let mut store: Box<dyn Store> = Box::new(store);
        let saved = store.load()?.unwrap_or_default();
        let read = if saved.is_empty() { Ok(Journal::new()) } else { Journal::read(&saved) };
        let (journal, damage) = match read {
            Ok(journal) => (journal, None),
            Err(Unreadable::Newer(version)) => {
                return Err(Error::store(format!("a newer client has written it (version {version})")));
            }
            Err(Unreadable::Damaged(why)) => (Journal::new(), Some(format!("{why}; kept as {}", store.set_aside()?))),
        };
        let entries = journal.players.values().flat_map(|player| &player.games);
        let not_uploaded = entries.filter(|entry| entry.win.as_ref().is_some_and(|win| win.replay.is_none()));
        store.keep_replays(&not_uploaded.map(Entry::id).collect::<Vec<_>>())?;
        let client = Client(Arc::new(Inner {
            url: url.trim_end_matches('/').to_owned(),
            transport: Box::new(transport),
            kept: Mutex::new(Kept { journal, store, saved }),
            events: Mutex::default(),
            syncing: Lock::default(),
            refreshing: Lock::default(),
            work: Notify::default(),
            signed: Notify::default(),
            synced: Notify::default(),
            overdue: AtomicBool::new(false),
            must_wait: AtomicBool::new(false),
            following: Mutex::default(),
            tried: Mutex::default(),
            keyed: AtomicBool::new(false),
        }));
        if let Some(damage) = damage {
            client.tell(Event::Trouble(Error::store(damage)));
        }
        Ok(client)
    }

    // What is kept

    pub(crate) fn look<T>(&self, at: impl FnOnce(&Journal) -> T) -> T {
        at(&self.0.kept.lock().unwrap().journal)
    }

    /// Change the journal: in the store first.
    pub(crate) fn change<T>(&self, edit: impl FnOnce(&mut Journal) -> T) -> Result<T, Error> {
        let mut kept = self.0.kept.lock().unwrap();
        let mut next = kept.journal.clone();
        let result = edit(&mut next);
        next.tidy(self.0.transport.now());
        kept.save(body(&next))?;
        kept.journal = next;
        Ok(result)
    }

    /// Change the journal, also if the store fails: the next change saves it then.
    pub(crate) fn note(&self, edit: impl FnOnce(&mut Kept)) -> Result<(), Error> {
        let mut kept = self.0.kept.lock().unwrap();
        edit(&mut kept);
        let value = body(&kept.journal);
        kept.save(value)
    }

    /// Save what the store has refused.
    pub(crate) fn save(&self) -> Result<(), Error> {
        self.change(|_| ())
    }

    pub(crate) fn with_store<T>(&self, work: impl FnOnce(&mut dyn Store) -> T) -> T {
        work(self.0.kept.lock().unwrap().store.as_mut())
    }

    // Events

    pub(crate) fn tell(&self, event: Event) {
        if matches!(event, Event::SignedIn) {
            self.0.signed.notify_one();
            self.0.work.notify_one();
        }
        let mut events = self.0.events.lock().unwrap();
        if events.len() == HEARD {
            events.pop_front();
        }
        events.push_back(event);
    }

    /// The next event, without waiting: for a game's loop. The newest 1,000 are kept.
    pub fn next_event(&self) -> Option<Event> {
        self.0.events.lock().unwrap().pop_front()
    }

    /// Add an error of one of the game's own requests to the events, for the place that shows them.
    pub fn report(&self, error: Error) {
        self.tell(Event::Trouble(error));
    }

    // Requests

    pub(crate) fn new_key(&self) -> String {
        let mut random = [0; 16];
        self.0.transport.random(&mut random);
        key(random)
    }

    /// A random UUID, for a game.
    pub fn new_id(&self) -> String {
        let mut random = [0; 16];
        self.0.transport.random(&mut random);
        crate::text::uuid(random)
    }

    /// The player's time, for `recorded_at` of a replay.
    pub fn now(&self) -> String {
        crate::text::rfc3339(self.0.transport.now(), self.0.transport.offset())
    }

    pub(crate) fn request(
        &self,
        method: &'static str,
        path: &str,
        body: Option<Vec<u8>>,
        token: Option<String>,
    ) -> Request {
        Request { method, url: format!("{}{path}", self.0.url), token, body, timeout: TIMEOUT }
    }

    pub(crate) fn checked(&self, answer: Result<Answer, Lost>) -> Result<Answer, Error> {
        #[derive(serde::Deserialize)]
        struct Refused {
            error: String,
        }
        let answer = answer.map_err(|Lost(why)| Error::network(0, 0, why))?;
        let seconds = answer.header("retry-after").map_or(0, |text| {
            let now = || answer.header("date").and_then(http_date).unwrap_or(self.0.transport.now() / 1000);
            let until = |date: i64| u64::try_from(date - now()).unwrap_or(0);
            text.trim().parse().unwrap_or_else(|_| http_date(text).map_or(0, until)).min(DAY)
        });
        match (answer.status, answer.header("error-code")) {
            (200, _) => Ok(answer),
            (status, None) => Err(Error::network(status, seconds, "The answer comes from another server.")),
            (status, Some(code)) => Err(Error {
                status,
                code: Code::of(code),
                message: read::<Refused>(&answer).map(|body| body.error).unwrap_or_default(),
                retry_after: seconds,
                request_id: answer.header("x-request-id").map(str::to_owned),
                suspended_until: answer.header("suspended-until").map(str::to_owned),
            }),
        }
    }

    /// Wait until all changes are stored. Only browsers store later than they return. Requests wait for that, too. After
    /// an error, no sign-in goes out.
    pub async fn flush(&self) -> Result<(), Error> {
        Ok(called(|done| self.with_store(|store| store.flush(done))).await?)
    }

    async fn once<T: DeserializeOwned>(&self, request: Request) -> Result<(T, Answer), Error> {
        let flushed = self.flush().await;
        if request.token.is_none() && request.body.is_some() {
            flushed?; // it has a key or a token that works once
        }
        let answer = self.checked(called(|done| self.0.transport.send(request, done)).await)?;
        Ok((read(&answer)?, answer))
    }

    /// Send a request that may be repeated: three times at most, while the pauses are short.
    pub(crate) async fn repeated<T: DeserializeOwned>(&self, request: Request) -> Result<(T, Answer), Error> {
        let mut attempt = 1;
        loop {
            match self.once(request.clone()).await {
                Err(error) if error.passes() && error.retry_after <= PATIENCE && attempt < ATTEMPTS => {
                    let mut random = [0];
                    self.0.transport.random(&mut random);
                    let spread = (128 + u64::from(random[0])) * (PAUSE_MS << (attempt - 1)) / 256;
                    let pause = Duration::from_millis(1000 * error.retry_after + spread);
                    called(|done| self.0.transport.after(pause, done)).await;
                    attempt += 1;
                }
                answer => return answer,
            }
        }
    }

    /// Send a request without a session, and read its JSON.
    pub(crate) async fn post<T: DeserializeOwned>(&self, path: &str, content: &impl Serialize) -> Result<T, Error> {
        Ok(self.repeated(self.request("POST", path, Some(body(content)), None)).await?.0)
    }

    /// Send a request with the session, and with a new one if the service refuses it; only as the account `who`, if given.
    pub(crate) async fn as_player<T: DeserializeOwned>(
        &self,
        who: Option<&str>,
        method: &'static str,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<(T, Answer), Error> {
        let mut renewals = 0;
        loop {
            let session = self.session(who)?;
            let request = self.request(method, path, body.clone(), Some(session.access_token.clone()));
            match self.repeated(request).await {
                Err(error) if error.is(Code::UserNotFound) => {
                    self.end(&session, error.code.as_str())?;
                    return Err(error);
                }
                Err(error) if error.is(Code::Unauthorized) && renewals < RENEWALS => self.renew(&session).await?,
                answer => return answer,
            }
            renewals += 1;
        }
    }

    /// Call any route of the service as the player: `client.call::<BoardPage>("GET", "/api/boards/verified", None)`.
    /// Only requests that may be repeated belong here.
    pub async fn call<T: DeserializeOwned>(
        &self,
        method: &'static str,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<T, Error> {
        Ok(self.as_player(None, method, path, body).await?.0)
    }

    /// Read a route that needs no session: `client.get::<DailyChallenge>("/api/daily-challenge")`.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        Ok(self.repeated(self.request("GET", path, None, None)).await?.0)
    }

    pub(crate) fn session(&self, who: Option<&str>) -> Result<Session, Error> {
        self.look(|journal| match journal.session_of(who) {
            Some(session) => Ok(session.clone()),
            None if journal.player.is_some() => Err(Error::session_ended()),
            None => Err(Error::signed_out()),
        })
    }
}
