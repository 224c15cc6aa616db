//! Events of the service, and the work in the background.

use crate::client::{Client, Event, Kept};
use crate::error::Error;
use crate::journal::{Entry, Journal};
use crate::messages::Code;
use crate::stream::{Follow, Next, SseParser};
use crate::transport::{Chunk, Request, called, first};
use serde::Deserialize;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;

const SILENCE: Duration = Duration::from_secs(60); // the service sends a line every 25 s
const AGAIN: u64 = 60;
const RESTORE: u64 = 3_600;
const ASKED: usize = 20;

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
    /// Sync after each game and each sign-in, and again after errors; follow the stream while there is a session.
    /// `boards` names boards whose changes are events too, such as `verified`.
    ///
    /// This never ends: spawn it on any executor, and drop it there, or let a [`Background`](crate::Background) run it.
    pub async fn run(&self, boards: &[&str]) {
        self.run_with(false, boards).await;
    }

    /// The same, and sign in to this device's guest whenever there is no session.
    pub async fn run_with_guest(&self, boards: &[&str]) {
        self.run_with(true, boards).await;
    }

    async fn run_with(&self, guest: bool, boards: &[&str]) {
        first(self.keep_syncing(guest), self.keep_following(boards)).await; // neither ends
    }

    async fn keep_syncing(&self, guest: bool) {
        loop {
            self.0.must_wait.store(false, Ordering::Relaxed);
            let signed_in = if guest { self.guest().await } else { Ok(()) };
            let done = match signed_in {
                Ok(()) => self.sync().await,
                error => error,
            };
            let Err(error) = done else {
                self.0.synced.notify_waiters();
                self.0.work.notified().await;
                continue;
            };
            let pause = Duration::from_secs(if error.passes() { error.retry_after.max(AGAIN) } else { RESTORE });
            self.0.overdue.store(error.passes() && error.retry_after == 0, Ordering::Relaxed);
            self.0.must_wait.store(error.retry_after > 0, Ordering::Relaxed);
            if !error.is(Code::SignedOut) {
                self.tell(Event::Trouble(error));
            }
            first(self.0.work.notified(), called(|done| self.0.transport.after(pause, done))).await;
        }
    }

    async fn keep_following(&self, boards: &[&str]) {
        loop {
            match self.follow(boards).await {
                Err(error) if !error.is(Code::SignedOut) => {
                    self.tell(Event::Trouble(error));
                    first(self.0.signed.notified(), self.0.synced.notified()).await; // a suspension may have ended
                }
                _ => self.0.signed.notified().await,
            }
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
        let (sender, mut chunks) = mpsc::unbounded_channel();
        self.0.transport.stream(request, Box::new(move |chunk| sender.send(chunk).is_ok()));
        let (mut parser, mut has_begun) = (SseParser::default(), false); // an answer without events isn't the service's
        loop {
            match chunks.recv().await.unwrap_or(Chunk::End) {
                Chunk::Begun(answer) => {
                    self.checked(Ok(answer))?;
                }
                Chunk::End if has_begun => return Ok(String::new()),
                Chunk::End => return Err(Error::network(0, 0, "The stream has not begun.")),
                Chunk::Bytes(bytes) => {
                    for (name, data) in parser.push(&bytes)? {
                        if name == "hello" {
                            has_begun = true;
                            if self.0.overdue.swap(false, Ordering::Relaxed) {
                                self.0.work.notify_one(); // an outage has ended
                            }
                        }
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
            "progress" if data.own => self.0.following.lock().unwrap().revision = data.revision,
            "hello" | "progress" if known != data.revision => self.pull().await?,
            _ => {}
        }
        if name != "hello" && name != "verdict" {
            return Ok(());
        }
        let _one = self.0.syncing.lock().await; // a verdict may be on an upload that has no answer yet
        if name == "hello" {
            return self.ask_for_verdicts().await;
        }
        self.judged(&data.replay_id, &data.status);
        Ok(())
    }

    /// Take the newest progress, and send the games that wait.
    pub async fn pull(&self) -> Result<(), Error> {
        let _one = self.0.syncing.lock().await;
        self.session(None)?;
        let name = self.look(Journal::name);
        self.count(&name).await?;
        self.tell(Event::Progress);
        self.save()
    }

    /// Ask for verdicts that came while no stream was open.
    async fn ask_for_verdicts(&self) -> Result<(), Error> {
        let newest = |journal: &Journal| journal.mine().iter().rev().filter_map(Entry::pending).take(ASKED).collect();
        for replay in self.look::<Vec<String>>(newest) {
            match self.verdict_on(&replay).await {
                Ok(verdict) if verdict.status == "pending" => {}
                Ok(verdict) => self.judged(&replay, &verdict.status),
                Err(error) if error.is(Code::ReplayNotFound) => _ = self.settle(&replay), // a backup was restored
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Note that a verdict has come, and return the id of the game.
    fn settle(&self, replay: &str) -> Option<String> {
        let mut game = None;
        let _ = self.note(|Kept { journal, .. }| {
            let mut games = journal.players.values_mut().flat_map(|player| &mut player.games);
            game = games.find_map(|entry| {
                entry.win.as_mut().filter(|win| win.replay.as_deref() == Some(replay))?.pending = false;
                Some(entry.id())
            });
        });
        game
    }

    /// Report a verdict, once with the game.
    fn judged(&self, replay: &str, status: &str) {
        let game = self.settle(replay);
        let verdict = (status.to_owned(), game.clone());
        let before = self.0.following.lock().unwrap().reported.insert(replay.to_owned(), verdict.clone());
        if before != Some(verdict) {
            self.tell(Event::Verdict { replay: replay.to_owned(), game, status: status.to_owned() });
        }
    }

    /// Report the verdict on an upload again that came before the answer to the upload.
    pub(crate) fn judged_before(&self, replay: &str) {
        let heard = self.0.following.lock().unwrap().reported.get(replay).cloned();
        if let Some((status, _)) = heard {
            self.judged(replay, &status);
        }
    }
}
