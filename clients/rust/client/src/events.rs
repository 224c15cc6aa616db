//! Events of the service, and the work in the background.

use crate::client::{Client, Event};
use crate::error::Error;
use crate::journal::Journal;
use crate::messages::Code;
use crate::stream::{Follow, Next, SseParser};
use crate::transport::{Chunk, Chunks, Request, called};
use serde::Deserialize;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

const SILENCE: Duration = Duration::from_secs(60); // the service sends a line every 25 s
const AGAIN: u64 = 60;
const RESTORE: u64 = 3_600;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Data {
    revision: Option<String>,
    own: bool,
    replay_id: String,
    status: String,
    reason: String,
}

impl Client {
    /// Sync after each game and each sign-in, and again after errors; follow the stream while there is a session. Ends
    /// with [`Client::close`]. `boards` names boards whose changes are events too, such as `verified`.
    ///
    /// Spawn this on any executor, or let a [`Background`](crate::Background) run it on a thread.
    pub async fn run(&self, boards: &[&str]) {
        self.run_with(false, boards).await;
    }

    /// The same, and sign in to this device's guest whenever there is no session.
    pub async fn run_with_guest(&self, boards: &[&str]) {
        self.run_with(true, boards).await;
    }

    async fn run_with(&self, guest: bool, boards: &[&str]) {
        let mut syncs = pin!(self.keep_syncing(guest));
        let mut follows = pin!(self.keep_following(boards));
        let mut ended = pin!(self.0.ended.heard());
        poll_fn(|context| {
            if ended.as_mut().poll(context).is_ready() || self.0.closed.load(Ordering::Relaxed) {
                return Poll::Ready(());
            }
            let _ = (syncs.as_mut().poll(context), follows.as_mut().poll(context)); // neither ends
            Poll::Pending
        })
        .await;
    }

    async fn keep_syncing(&self, guest: bool) {
        loop {
            let signed_in = if guest { self.guest().await } else { Ok(()) };
            let done = match signed_in {
                Ok(()) => self.sync().await,
                error => error,
            };
            if let Err(error) = done {
                let seconds = if error.passes() { error.retry_after.max(AGAIN) } else { RESTORE };
                if !error.is(Code::SignedOut) {
                    self.tell(Event::Trouble(error));
                }
                self.0.transport.after(Duration::from_secs(seconds), self.0.work.alarm());
            }
            self.0.work.heard().await;
        }
    }

    async fn keep_following(&self, boards: &[&str]) {
        loop {
            match self.follow(boards).await {
                Err(error) if !error.is(Code::SignedOut) => self.tell(Event::Trouble(error)),
                _ => {}
            }
            self.0.signed.heard().await;
        }
    }

    /// Follow the stream of the session until the service ends it for good: because the player has too many streams, or
    /// with an error.
    pub async fn follow(&self, boards: &[&str]) -> Result<(), Error> {
        let query: Vec<_> = boards.iter().map(|board| format!("board={board}")).collect();
        let path = format!("/api/events?{}", query.join("&"));
        let mut follow = Follow::default();
        loop {
            let session = self.session(None)?;
            let request = self.request("GET", &path, None, Some(session.access_token.clone()));
            let next = match self.listen(Request { timeout: SILENCE, ..request }, &mut follow).await {
                Ok(reason) => follow.ended(&reason),
                Err(error) if error.is(Code::UserNotFound) => {
                    self.end(&session, error.code.as_str())?;
                    return Err(error);
                }
                Err(error) if !error.passes() && !error.is(Code::Unauthorized) => return Err(error),
                Err(error) => follow.refused(&error),
            };
            let pause = match next {
                Next::Stop => return Ok(()),
                Next::Again(pause) => pause,
                Next::Renew(pause) => match self.renew(&session).await {
                    Err(error) if !error.passes() => return Err(error),
                    _ => pause,
                },
            };
            called(|done| self.0.transport.after(pause, done)).await;
        }
    }

    /// Read one stream, and return the reason of its end, or "".
    async fn listen(&self, request: Request, follow: &mut Follow) -> Result<String, Error> {
        let ended = self.read_stream(request, follow).await;
        self.0.following.lock().unwrap().is_open = false;
        ended
    }

    async fn read_stream(&self, request: Request, follow: &mut Follow) -> Result<String, Error> {
        let (chunks, mut parser) = (Chunks::default(), SseParser::default());
        let theirs = chunks.clone();
        self.0.transport.stream(request, Box::new(move |chunk| theirs.put(chunk)));
        let mut has_begun = false;
        loop {
            match chunks.next().await {
                Chunk::Begun(answer) => {
                    self.checked(Ok(answer))?;
                    has_begun = true;
                    self.0.following.lock().unwrap().is_open = true;
                }
                Chunk::End if has_begun => return Ok(String::new()),
                Chunk::End => return Err(Error::network(0, 0, "The stream has not begun.")),
                Chunk::Bytes(bytes) => {
                    for (name, data) in parser.push(&bytes) {
                        let read: Data = serde_json::from_str(&data).unwrap_or_default();
                        self.tell(Event::Stream { name: name.clone(), data });
                        if name == "end" {
                            return Ok(read.reason);
                        }
                        if let Err(error) = self.hear(&name, read).await {
                            self.tell(Event::Trouble(error));
                        }
                    }
                    follow.retry = parser.retry.unwrap_or(follow.retry);
                }
            }
        }
    }

    async fn hear(&self, name: &str, data: Data) -> Result<(), Error> {
        let known = self.0.following.lock().unwrap().revision.clone();
        match name {
            "verdict" => self.judged(&data.replay_id, &data.status),
            "progress" if data.own => self.0.following.lock().unwrap().revision = data.revision,
            "hello" | "progress" if known != data.revision => self.pull().await?,
            _ => {}
        }
        if name == "hello" { self.ask_for_verdicts().await } else { Ok(()) }
    }

    /// Take the newest progress, and send the games that wait.
    pub async fn pull(&self) -> Result<(), Error> {
        let _one = self.0.syncing.lock().await;
        self.session(None)?;
        let name = self.look(Journal::name);
        self.count(&name).await?;
        self.tell(Event::Progress);
        Ok(())
    }

    /// Ask for verdicts whose events may have come before the answers to the uploads, or before the stream.
    pub(crate) async fn ask_for_verdicts(&self) -> Result<(), Error> {
        let awaited = self.0.following.lock().unwrap().awaited.clone(); // not in the loop: a guard would live as long
        for game in awaited {
            match (self.verdict(&game).await, self.replay_of(&game)) {
                (Ok(Some(verdict)), Some(replay)) if verdict.status != "pending" => {
                    self.judged(&replay, &verdict.status)
                }
                (Err(error), _) if error.is(Code::ReplayNotFound) => {
                    self.0.following.lock().unwrap().awaited.remove(&game); // a backup was restored
                }
                (Err(error), _) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Report a verdict once.
    fn judged(&self, replay: &str, status: &str) {
        let game = self.look(|journal| {
            let has = |win: &crate::journal::Win| win.replay.as_deref() == Some(replay);
            journal.mine().iter().find(|entry| entry.win.as_ref().is_some_and(has)).map(|entry| entry.id())
        });
        let is_new = {
            let mut following = self.0.following.lock().unwrap();
            if let Some(game) = &game {
                following.awaited.remove(game);
            }
            following.reported.insert(replay.to_owned(), status.to_owned()).as_deref() != Some(status)
        };
        if is_new {
            self.tell(Event::Verdict { replay: replay.to_owned(), game, status: status.to_owned() });
        }
    }
}
