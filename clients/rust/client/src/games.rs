//! Games: each has an id, under which the service counts it once. So requests are repeated until they have an answer.

use crate::client::{Client, Event, Kept, body};
use crate::error::Error;
use crate::journal::{Entry, Journal, Player, Win, today};
use crate::messages::{Achievement, Code, Payload, Stats, VerdictAnswer};
use crate::progress::{shown, unplayed};
use crate::text::{canonical_uuid, date_of};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use solisync_klondike::{Draw, Mode};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::atomic::Ordering;

const BATCH: usize = 100;
const ROUNDS: usize = 3;
const MOST: u32 = i32::MAX as u32;

/// A game that has ended.
#[derive(Clone, Debug, Default)]
pub struct Game {
    /// A UUID, made when the game begins; [`Client::new_id`] makes one.
    pub id: String,
    /// What was played.
    pub mode: Mode,
    /// How many cards the stock gave.
    pub draw: Draw,
    /// Whether it is won.
    pub won: bool,
    /// The points.
    pub score: u32,
    /// How long it took.
    pub seconds: u32,
    /// Whether undo was used.
    pub undone: bool,
    /// The seed of the deal.
    pub seed: Option<u64>,
    /// The date of the daily challenge that was played, such as 2026-11-28.
    pub day: Option<String>,
    /// The JSON object that docs/replays.md describes, to upload if the game is won.
    pub replay: Option<String>,
}

/// The game's own progress, beside its games.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Achievements, which are united with those of the player.
    pub achievements: Vec<Achievement>,
    /// Unlocked card backs.
    pub card_backs: Vec<u64>,
    /// Unlocked backgrounds.
    pub backgrounds: Vec<u64>,
    /// The number of the challenge.
    pub challenge_index: u64,
    /// Fields of your own in the payload. The service keeps them.
    pub more: BTreeMap<String, Box<RawValue>>,
}

#[derive(Deserialize)]
struct Counted {
    counted: bool,
    error: Option<String>,
}

/// An answer with the player's progress.
#[derive(Deserialize)]
struct Merged {
    merged: Box<RawValue>,
    #[serde(default)]
    games: Vec<Counted>,
}

#[derive(Deserialize)]
struct Uploaded {
    id: String,
}

impl Game {
    /// A game of `solisync-klondike` that has ended at the time [`Client::now`], with its record if it is won.
    pub fn of(played: &solisync_klondike::Game, id: String, seconds: u32, now: &str) -> Game {
        Game {
            id,
            mode: played.mode(),
            draw: played.draw(),
            won: played.is_won(),
            score: played.score(),
            seconds,
            undone: played.is_undone(),
            seed: Some(played.seed()),
            day: None,
            replay: played.replay(seconds, now),
        }
    }

    /// The object to send. The seed is a text, because scripts round large numbers.
    fn object(&self, id: &str, ended_at: &str) -> Box<RawValue> {
        let Game { draw, won, undone, .. } = self;
        let (mode, score, seconds) = (self.mode.json(), self.score.min(MOST), self.seconds.min(MOST));
        let seed = self.seed.map_or(String::new(), |seed| format!(r#","seed":"{seed}""#));
        let object = format!(
            r#"{{"game_id":"{id}","mode":{mode},"draw_mode":"Draw{draw:?}","won":{won},"score":{score},"seconds":{seconds},"ended_at":"{ended_at}","undone":{undone}{seed}}}"#
        );
        RawValue::from_string(object).expect("the object is JSON")
    }

    /// The replay with the id of the game instead of its own.
    fn upload(&self, id: &str) -> Result<Option<String>, Error> {
        let Some(replay) = self.replay.as_deref().filter(|_| self.won) else { return Ok(None) };
        let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(replay)
            .map_err(|error| Error::bad_field(format!("replay must be a JSON object: {error}")))?;
        let id = RawValue::from_string(format!(r#""{id}""#)).expect("a UUID in quotes is JSON");
        fields.insert("game_id".to_owned(), id);
        Ok(String::from_utf8(body(&fields)).ok())
    }
}

impl Client {
    /// Store a finished game, which needs no session and no network; `sync` sends it. The same id again changes nothing.
    ///
    /// After an error with the code `storage`, the client keeps the game in memory, and tries again to store it.
    pub fn finish(&self, game: Game) -> Result<(), Error> {
        let id = canonical_uuid(&game.id).ok_or_else(|| Error::bad_field("id must be a UUID"))?;
        let upload = game.upload(&id)?;
        let object = game.object(&id, &self.now());
        let noted = self.note(|Kept { journal, store, .. }| {
            if journal.has(&id) {
                return;
            }
            let is_apart = upload.as_ref().is_some_and(|body| store.save_replay(&id, body).unwrap_or(false));
            let win = upload.map(|body| Win { body: Some(body).filter(|_| !is_apart), ..Win::default() });
            let entry = Entry { game: object, day: game.day, win, ..Entry::default() };
            journal.of(&journal.name()).games.push(entry);
        });
        self.tell(Event::Progress);
        if !self.0.must_wait.load(Ordering::Relaxed) {
            self.0.work.notify_one();
        }
        noted
    }

    /// How many games and replays aren't sent yet.
    pub fn unsent(&self) -> usize {
        let waits = |entry: &&Entry| entry.is_unsent() || entry.waiting().is_some();
        self.look(|journal| journal.mine().iter().filter(waits).count())
    }

    /// The newest progress, with the statistics and days of unsent games.
    pub fn progress(&self) -> Payload {
        self.look(|journal| shown(journal.players.get(&journal.name())))
    }

    /// The player's statistics, with all unsent games.
    pub fn totals(&self) -> Stats {
        self.progress().stats
    }

    /// The newest progress from the service in a type of your own; None before the first sync.
    pub fn latest<P: DeserializeOwned>(&self) -> Option<P> {
        let latest = self.look(|journal| journal.players.get(&journal.name())?.latest.clone());
        serde_json::from_str(latest?.get()).ok()
    }

    /// Send all games, upload all wins, and take the newest progress.
    pub async fn sync(&self) -> Result<(), Error> {
        let _one = self.0.syncing.lock().await;
        let result = self.send().await;
        self.tell(Event::Progress);
        result
    }

    pub(crate) async fn send(&self) -> Result<(), Error> {
        let _ = self.save(); // ids make it safe to send what a full disk refuses; the end reports that
        self.restore().await?;
        self.join_first().await?;
        self.session(None)?;
        let name = self.look(Journal::name);
        self.give_key(&name).await?;
        let now = self.0.transport.now();
        let day = date_of(now.div_euclid(86_400_000));
        let _ = self.note(|kept| kept.journal.of(&name).begin_day(&day, now));
        self.count(&name).await?;
        self.upload(&name).await?;
        self.save()
    }

    /// Send a request with these games whose answer has the player's progress, and take that, also if the store fails.
    pub(crate) async fn take(
        &self,
        name: &str,
        method: &'static str,
        path: &str,
        body: Option<Vec<u8>>,
        sent: &[(String, Box<RawValue>)],
    ) -> Result<(), Error> {
        let (Merged { merged, games }, answer) = self.as_player::<Merged>(Some(name), method, path, body).await?;
        let answers: Vec<_> = sent.iter().map(|(id, _)| id).zip(&games).collect();
        if answers.len() < sent.len() {
            return Err(Error::network(200, 0, "The answer has fewer games than the request."));
        }
        let revision = answer.header("etag").and_then(|etag| etag.split('"').nth(1));
        self.0.following.lock().unwrap().revision = revision.map(str::to_owned);
        let now = self.0.transport.now();
        let _ = self.note(|Kept { journal, .. }| {
            let player = journal.of(name);
            for (id, answer) in &answers {
                if let Some(entry) = player.find(id) {
                    entry.settled.get_or_insert(now);
                    (entry.again, entry.error) = (false, answer.error.clone());
                }
            }
            player.accept(merged, answers.iter().filter(|(_, answer)| answer.counted).count() as u64);
        });
        for (id, _) in answers.iter().filter(|(_, answer)| answer.error.is_some()) {
            self.report(Error::bad_field(format!("the service doesn't count the game {id}")));
        }
        Ok(())
    }

    /// Send the games that the service may not know; without any, pull.
    pub(crate) async fn count(&self, name: &str) -> Result<(), Error> {
        for round in 0..ROUNDS {
            let due = |entry: &&Entry| entry.is_unsent() || entry.again;
            let game = |entry: &Entry| (entry.id(), entry.game.clone());
            let due = |player: &Player| player.games.iter().filter(due).map(game).collect::<Vec<_>>();
            let games = self.look(|journal| journal.players.get(name).map(due)).unwrap_or_default();
            if games.is_empty() && round > 0 {
                break;
            }
            if games.is_empty() {
                return self.take(name, "GET", "/api/sync/pull", None, &[]).await;
            }
            for batch in games.chunks(BATCH) {
                let objects: Vec<_> = batch.iter().map(|(_, object)| object).collect();
                let content = Some(body(&BTreeMap::from([("games", objects)])));
                self.take(name, "POST", "/api/games", content, batch).await.map_err(|error| match error.code {
                    Code::NotFound => Error { code: Code::Unavailable, ..error }, // a node of version 1.1
                    _ => error,
                })?;
            }
        }
        Ok(())
    }

    /// Upload all wins. After `replay_storage_full`, they wait for a day; a win that is refused stops no other.
    async fn upload(&self, name: &str) -> Result<(), Error> {
        let waiting = |entry: &Entry| Some((entry.id(), entry.waiting()?.body.clone()));
        let wins: Vec<_> = self.look(|journal| match journal.players.get(name) {
            Some(player) if !today(self.0.transport.now(), player.full) => {
                player.games.iter().filter_map(waiting).collect()
            }
            _ => Vec::new(),
        });
        let mut refusal = None;
        for (id, inline) in wins {
            let answer = match inline.map_or_else(|| self.with_store(|store| store.replay(&id)), Ok) {
                Ok(body) => {
                    self.as_player::<Uploaded>(Some(name), "POST", "/api/replays", Some(body.into_bytes())).await
                }
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => Err(Error {
                    status: 400,
                    ..Error::bad_field(format!("the replay of the game {id} is lost: {error}"))
                }),
                Err(error) => return Err(error.into()),
            };
            let (replay, refused) = match answer {
                Ok((Uploaded { id }, _)) => (Some(id), None),
                Err(error) if !error.passes() && matches!(error.status, 400 | 413) => (None, Some(error)),
                Err(error) => return Err(error),
            };
            let now = self.0.transport.now();
            let is_full = refused.as_ref().is_some_and(|error| error.is(Code::ReplayStorageFull));
            let _ = self.note(|Kept { journal, .. }| {
                let player = journal.of(name);
                player.full = if is_full { now } else { 0 };
                if let Some(win) = player.find(&id).and_then(|entry| entry.win.as_mut()).filter(|_| !is_full) {
                    (win.refused, win.pending) = (replay.is_none(), replay.is_some());
                    win.body.take_if(|_| replay.is_some());
                    win.replay = replay.clone();
                }
            });
            if let Some(replay) = replay {
                self.judged_before(&replay);
            }
            refusal = refusal.or(refused);
            if is_full {
                break;
            }
        }
        refusal.map_or(Ok(()), Err)
    }

    /// Push the game's own progress, which the service merges with the player's. The same again changes nothing.
    pub async fn push(&self, change: &Change) -> Result<(), Error> {
        let _one = self.0.syncing.lock().await;
        let name = self.look(Journal::name);
        let mut payload = unplayed();
        payload.progress.unlocked_card_backs = change.card_backs.clone();
        payload.progress.unlocked_backgrounds = change.backgrounds.clone();
        payload.progress.challenge_index = change.challenge_index;
        payload.achievements = change.achievements.clone();
        let known: BTreeMap<String, Box<RawValue>> =
            serde_json::from_slice(&body(&payload)).expect("a payload is an object");
        let fields: BTreeMap<_, _> = change.more.clone().into_iter().chain(known).collect();
        self.take(&name, "POST", "/api/sync/push", Some(body(&fields)), &[]).await?;
        self.save()
    }

    /// The verdict on a win; None before its upload.
    pub async fn verdict(&self, game: &str) -> Result<Option<VerdictAnswer>, Error> {
        let replay = |journal: &Journal| journal.mine().iter().find(|entry| entry.id() == game)?.win.clone()?.replay;
        match self.look(replay) {
            Some(replay) => self.verdict_on(&replay).await.map(Some),
            None => Ok(None),
        }
    }

    pub(crate) async fn verdict_on(&self, replay: &str) -> Result<VerdictAnswer, Error> {
        self.get(&format!("/api/replays/{replay}/verdict")).await
    }
}
