//! Messages and error codes of the OpenAPI document. `make docs` writes this file.
#![allow(missing_docs)] // the reference describes the fields

use crate::numbers::{fastest, optional, whole};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

macro_rules! codes {
    ($($(#[$doc:meta])? $name:ident = $text:literal,)*) => {
        /// What kind of error this is: an `Error-Code` of the service, or one of this crate.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])? $name,)*
            /// A code of a newer service: treat it by its status.
            Other(String),
        }

        impl Code {
            /// The code of this text.
            pub fn of(text: &str) -> Code {
                match text {
                    $($text => Code::$name,)*
                    _ => Code::Other(text.to_owned()),
                }
            }

            /// The text of this code.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Code::$name => $text,)*
                    Code::Other(text) => text,
                }
            }
        }
    };
}

codes! {
    AvatarNotFound = "avatar_not_found",
    AvatarSignature = "avatar_signature",
    AvatarTooLarge = "avatar_too_large",
    AvatarType = "avatar_type",
    BadField = "bad_field",
    BadJson = "bad_json",
    BadQuery = "bad_query",
    BadRequest = "bad_request",
    BatchTooLarge = "batch_too_large",
    BodyTooLarge = "body_too_large",
    ContentEncoding = "content_encoding",
    DayNotFound = "day_not_found",
    DisplayNameCharacters = "display_name_characters",
    DisplayNameEmpty = "display_name_empty",
    DisplayNameLength = "display_name_length",
    EntryNotFound = "entry_not_found",
    Forbidden = "forbidden",
    Guest = "guest",
    GuestGone = "guest_gone",
    GuestUnknown = "guest_unknown",
    GuestsOff = "guests_off",
    HeaderTooLarge = "header_too_large",
    Internal = "internal",
    InvalidCredentials = "invalid_credentials",
    Locked = "locked",
    MethodNotAllowed = "method_not_allowed",
    NotAGuest = "not_a_guest",
    NotFound = "not_found",
    NotPlayable = "not_playable",
    PasswordLength = "password_length",
    PasswordTooLong = "password_too_long",
    PlayerNotFound = "player_not_found",
    RateLimited = "rate_limited",
    ReplayNotFound = "replay_not_found",
    ReplayStorageFull = "replay_storage_full",
    RequestTimeout = "request_timeout",
    SessionNotFound = "session_not_found",
    Suspended = "suspended",
    SyncTooLarge = "sync_too_large",
    SyncTooMany = "sync_too_many",
    TransferEncoding = "transfer_encoding",
    Unauthorized = "unauthorized",
    Unavailable = "unavailable",
    UserIdMismatch = "user_id_mismatch",
    UserNotFound = "user_not_found",
    UsernameCharacters = "username_characters",
    UsernameLength = "username_length",
    UsernameTaken = "username_taken",
    /// No usable answer: none at all, a part of one, or one of another server.
    Network = "network",
    /// The device has no session, or the service has ended it.
    SignedOut = "signed_out",
    /// The store can't be read or written.
    Storage = "storage",
}

/// One achievement; unlocked ones stay unlocked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Achievement {
    pub id: String,
    pub unlocked: bool,
    pub unlock_date: Option<String>,
    pub reward_granted: bool,
}

/// A line of a board: the best verified replay of a player.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BoardEntry {
    #[serde(deserialize_with = "optional")]
    pub rank: Option<i64>,
    pub display_name: String,
    #[serde(deserialize_with = "whole")]
    pub score: i64,
    pub time_seconds: f64,
    #[serde(deserialize_with = "whole")]
    pub moves: i64,
    #[serde(deserialize_with = "whole")]
    pub undos: i64,
    pub mode: String,
    pub draw_mode: String,
    pub deal: Option<String>,
    pub replay_id: String,
    pub received_at: String,
    pub own: bool,
}

/// A page of a board, best first; `next` is the position of the next page.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BoardPage {
    pub entries: Vec<BoardEntry>,
    pub next: Option<String>,
}

/// The deal of one day and its goal.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct DailyChallenge {
    pub date: String,
    #[serde(deserialize_with = "whole")]
    pub seed: u64,
    pub description: String,
    #[serde(deserialize_with = "optional")]
    pub target_score: Option<i64>,
    #[serde(deserialize_with = "optional")]
    pub max_time_secs: Option<i64>,
}

/// A player's own profile.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Me {
    pub id: String,
    pub username: String,
    pub avatar_url: Option<String>,
    pub guest: bool,
}

/// The complete progress of one player, as devices push and pull it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Payload {
    pub user_id: String,
    pub stats: Stats,
    pub achievements: Vec<Achievement>,
    pub progress: Progress,
    pub last_modified: String,
}

/// Experience, daily challenges, weekly goals, and unlocks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Progress {
    #[serde(deserialize_with = "whole")]
    pub total_xp: u64,
    #[serde(deserialize_with = "whole")]
    pub level: u64,
    pub daily_challenge_last_completed: Option<String>,
    #[serde(deserialize_with = "whole")]
    pub daily_challenge_streak: u64,
    #[serde(deserialize_with = "whole")]
    pub daily_challenge_longest_streak: u64,
    pub daily_challenge_history: Vec<String>,
    pub daily_won_later: Vec<String>,
    pub weekly_goal_week_iso: Option<String>,
    pub weekly_goal_progress: BTreeMap<String, u64>,
    pub unlocked_card_backs: Vec<u64>,
    pub unlocked_backgrounds: Vec<u64>,
    #[serde(deserialize_with = "whole")]
    pub challenge_index: u64,
    pub last_modified: String,
}

/// Games and records of a player. Times are in seconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Stats {
    #[serde(deserialize_with = "whole")]
    pub games_played: u64,
    #[serde(deserialize_with = "whole")]
    pub games_won: u64,
    #[serde(deserialize_with = "whole")]
    pub games_lost: u64,
    #[serde(deserialize_with = "whole")]
    pub win_streak_current: u64,
    #[serde(deserialize_with = "whole")]
    pub win_streak_best: u64,
    #[serde(deserialize_with = "whole")]
    pub avg_time_seconds: u64,
    /// None before the first win.
    #[serde(deserialize_with = "fastest")]
    pub fastest_win_seconds: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub lifetime_score: u64,
    #[serde(deserialize_with = "whole")]
    pub best_single_score: u64,
    #[serde(deserialize_with = "whole")]
    pub draw_one_wins: u64,
    #[serde(deserialize_with = "whole")]
    pub draw_three_wins: u64,
    #[serde(deserialize_with = "whole")]
    pub classic_best_score: u64,
    /// None before the first win.
    #[serde(deserialize_with = "fastest")]
    pub classic_fastest_win_seconds: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub zen_best_score: u64,
    /// None before the first win.
    #[serde(deserialize_with = "fastest")]
    pub zen_fastest_win_seconds: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub challenge_best_score: u64,
    /// None before the first win.
    #[serde(deserialize_with = "fastest")]
    pub challenge_fastest_win_seconds: Option<u64>,
    pub last_modified: String,
}

/// The result of a check; all fields but `status` are null before the first check.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct VerdictAnswer {
    pub status: String,
    pub ruleset: Option<String>,
    #[serde(deserialize_with = "optional")]
    pub undos: Option<i64>,
    #[serde(deserialize_with = "optional")]
    pub score: Option<i64>,
    #[serde(deserialize_with = "optional")]
    pub moves: Option<i64>,
    pub reason: Option<String>,
    pub checked_at: Option<String>,
}
