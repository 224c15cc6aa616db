//! What a device keeps, in the format of docs/clients.md.

use crate::numbers::{optional, whole};
use crate::text::account_of;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

const VERSION: u32 = 2;
const DAY: i64 = 86_400_000;
const KEPT_DAYS: i64 = 30;
const KEPT_GAMES: usize = 200;
const COUNTING: u64 = 3; // so that one wrong clock ends nothing

/// The tokens of a session.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Valid for a day.
    pub access_token: String,
    /// Valid for 30 days, and for one exchange.
    pub refresh_token: String,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
        to.write_str("Session")
    }
}

/// The account that an answer with tokens names.
#[derive(Clone, Deserialize)]
pub(crate) struct Named {
    pub guest: bool,
}

/// How often the service has refused something: one answer a day counts.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Refusal {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(deserialize_with = "whole")]
    pub since: i64,
    #[serde(deserialize_with = "whole")]
    pub at: i64,
    #[serde(deserialize_with = "whole")]
    pub days: u64,
}

impl Refusal {
    pub fn counted(before: Option<&Refusal>, now: i64, why: Option<&str>) -> Refusal {
        let why = before.and_then(|before| before.why.clone()).or(why.map(str::to_owned));
        match before {
            Some(before) if is_near(now, before.at) => Refusal { why, ..*before },
            Some(before) => Refusal { why, since: before.since, at: now, days: before.days.saturating_add(1) },
            None => Refusal { why, since: now, at: now, days: 1 },
        }
    }

    /// Whether the service has refused for a week.
    pub fn is_final(&self) -> bool {
        self.days >= COUNTING && self.at.saturating_sub(self.since) >= 7 * DAY
    }
}

/// Whether a time, if it isn't 0, is less than a day away.
pub(crate) fn today(now: i64, time: i64) -> bool {
    time != 0 && is_near(now, time)
}

fn is_near(now: i64, time: i64) -> bool {
    now.saturating_sub(time).saturating_abs() < DAY
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Signing {
    pub path: String,
    pub username: String,
    pub key: String,
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Guest {
    pub key: String,
    pub id: Option<String>,
    pub from: Option<String>,
    pub had: bool,
    pub refused: Option<Refusal>,
    pub gone: bool,
    pub left: bool,
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Joining {
    pub from: String,
    pub token: String,
    pub key: Option<String>,
    #[serde(deserialize_with = "whole")]
    pub refused: i64,
}

/// The upload of a won game.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Win {
    pub body: Option<String>,
    pub replay: Option<String>,
    pub pending: bool,
    pub refused: bool,
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Entry {
    /// As it is sent. The npm package may have written it.
    pub game: Box<RawValue>,
    pub day: Option<String>,
    #[serde(deserialize_with = "optional")]
    pub settled: Option<i64>,
    pub again: bool,
    pub error: Option<String>,
    pub win: Option<Win>,
}

impl Entry {
    pub fn id(&self) -> String {
        #[derive(Deserialize)]
        struct Id {
            game_id: String,
        }
        serde_json::from_str::<Id>(self.game.get()).map(|id| id.game_id).unwrap_or_default()
    }

    pub fn is_unsent(&self) -> bool {
        self.settled.is_none() && self.error.is_none()
    }

    /// The uploaded replay whose verdict hasn't come.
    pub fn pending(&self) -> Option<String> {
        self.win.as_ref().filter(|win| win.pending)?.replay.clone()
    }

    /// The upload that waits.
    pub fn waiting(&self) -> Option<&Win> {
        self.win.as_ref().filter(|win| win.replay.is_none() && !win.refused)
    }
}

/// The games of an account.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Player {
    pub latest: Option<Box<RawValue>>,
    #[serde(deserialize_with = "whole")]
    pub played: u64,
    pub day: Option<String>,
    #[serde(deserialize_with = "whole")]
    pub full: i64,
    pub games: Vec<Entry>,
}

impl Player {
    fn send_again(&mut self, which: impl Fn(i64) -> bool) {
        for entry in self.games.iter_mut().filter(|entry| entry.error.is_none()) {
            entry.again |= entry.settled.is_some_and(&which);
        }
    }

    /// Once a day, send the games of the last two days again: the service may have lost its last seconds.
    pub fn begin_day(&mut self, day: &str, now: i64) {
        if self.day.as_deref() != Some(day) {
            self.day = Some(day.to_owned());
            self.send_again(|settled| settled >= now - 2 * DAY);
        }
    }

    /// Take a payload of the service, with this many new games. If the service has lost some, send all again.
    pub fn accept(&mut self, latest: Box<RawValue>, new: u64) {
        #[derive(Deserialize)]
        struct Stats {
            games_played: u64,
        }
        #[derive(Deserialize)]
        struct Payload {
            stats: Stats,
        }
        if let Ok(Payload { stats: Stats { games_played } }) = serde_json::from_str(latest.get()) {
            if games_played < self.played.saturating_add(new) {
                self.send_again(|_| true);
            }
            self.played = games_played;
        }
        self.latest = Some(latest);
    }

    pub fn find(&mut self, game: &str) -> Option<&mut Entry> {
        self.games.iter_mut().find(|entry| entry.id() == game)
    }
}

/// Everything that a device keeps.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Journal {
    pub version: u32,
    pub player: Option<String>,
    pub is_guest: Option<bool>,
    pub session: Option<Session>,
    pub retry_key: Option<String>,
    pub signing: Option<Signing>,
    pub refused: Option<Refusal>,
    pub guest: Option<Guest>,
    pub joining: Option<Joining>,
    pub players: BTreeMap<String, Player>,
}

/// Why a journal can't be used.
pub(crate) enum Unreadable {
    Damaged(String),
    Newer(u32),
}

impl Journal {
    pub fn new() -> Journal {
        Journal { version: VERSION, ..Journal::default() }
    }

    pub fn read(bytes: &[u8]) -> Result<Journal, Unreadable> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let damaged = |error: serde_json::Error| Unreadable::Damaged(error.to_string());
        match serde_json::from_slice(bytes).map_err(damaged)? {
            Version { version } if version > VERSION => Err(Unreadable::Newer(version)),
            _ => serde_json::from_slice(bytes).map_err(damaged),
        }
    }

    /// The account whose games are shown; "" before the first sign-in.
    pub fn name(&self) -> String {
        self.player.clone().unwrap_or_default()
    }

    pub fn of(&mut self, name: &str) -> &mut Player {
        self.players.entry(name.to_owned()).or_default()
    }

    pub fn has(&self, game: &str) -> bool {
        self.players.values().flat_map(|player| &player.games).any(|entry| entry.id() == game)
    }

    /// The games to show and to upload.
    pub fn mine(&self) -> &[Entry] {
        self.players.get(self.player.as_deref().unwrap_or_default()).map_or(&[], |player| &player.games)
    }

    /// Move games to another account: those that aren't settled, or all.
    pub fn move_games(&mut self, from: &str, to: &str, all: bool) {
        if from == to {
            return;
        }
        let Some(old) = self.players.get_mut(from) else { return };
        let (moved, kept) = std::mem::take(&mut old.games).into_iter().partition(|entry| all || entry.is_unsent());
        old.games = kept;
        self.of(to).games.extend::<Vec<Entry>>(moved);
        if all {
            self.players.remove(from);
        }
    }

    /// Begin a session.
    pub fn sign_in(&mut self, session: Session, account: &str, named: Option<&Named>) {
        if self.player.as_deref() != Some(account) {
            self.give_up_join(account);
        }
        self.move_games("", account, true);
        self.of(account).send_again(|_| true);
        self.player = Some(account.to_owned());
        self.is_guest = named.map(|named| named.guest);
        (self.session, self.retry_key, self.signing, self.refused) = (Some(session), None, None, None);
    }

    /// Give up the join of a player, who sends the guest's games instead. If the account is this guest, the games stay.
    pub fn give_up_join(&mut self, account: &str) {
        if let Some(joining) = self.joining.take().filter(|joining| joining.from != account) {
            let player = self.name();
            self.move_games(&joining.from, &player, true);
        }
    }

    /// Note that the guest is a player's now. Its key stays.
    pub fn leave_guest(&mut self) {
        self.is_guest = Some(false);
        if let Some(guest) = self.guest.as_mut().filter(|guest| guest.id == self.player) {
            guest.left = true;
        }
    }

    /// Whether the service knows the key of this guest.
    pub fn has_key_of(&self, account: &str) -> bool {
        self.guest.as_ref().is_some_and(|guest| guest.had && guest.id.as_deref() == Some(account))
    }

    /// Whether this is still the session.
    pub fn has_session(&self, session: &Session) -> bool {
        self.session.as_ref().is_some_and(|mine| mine.refresh_token == session.refresh_token)
    }

    /// The session, unless it is set aside.
    pub fn usable(&self) -> Option<&Session> {
        self.session.as_ref().filter(|_| self.refused.is_none())
    }

    /// The session, if it belongs to this account.
    pub fn session_of(&self, account: Option<&str>) -> Option<&Session> {
        self.usable().filter(|session| {
            account.is_none_or(|account| account_of(&session.access_token).is_ok_and(|of| of == account))
        })
    }

    /// Remove what is old or empty.
    pub fn tidy(&mut self, now: i64) {
        for player in self.players.values_mut() {
            let mut rest = player.games.len();
            player.games.retain(|entry| {
                rest -= 1;
                let settled = entry.settled.or(entry.error.as_ref().map(|_| 0));
                let settled = settled.filter(|_| entry.waiting().is_none() && !entry.again);
                rest < KEPT_GAMES || settled.is_none_or(|settled| settled > now - KEPT_DAYS * DAY)
            });
        }
        self.players.retain(|_, player| player.latest.is_some() || !player.games.is_empty());
    }
}
