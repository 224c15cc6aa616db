//! What unsent games add to the progress, for the display alone: the service counts them.

use crate::journal::{Entry, Player};
use crate::messages::{Payload, Progress, Stats};
use crate::text::{date_of, days_until};
use serde::Deserialize;
use serde_json::value::RawValue;

const NOBODY: &str = "00000000-0000-0000-0000-000000000000";
const EPOCH: &str = "1970-01-01T00:00:00Z";

/// The fields of a game that the display needs, as any client has written them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Shown {
    mode: Option<Box<RawValue>>,
    draw_mode: String,
    won: bool,
    score: u64,
    seconds: u64,
}

impl Shown {
    fn mode(&self) -> Option<&str> {
        self.mode.as_ref().map(|mode| mode.get())
    }
}

/// The payload of a player who has never played.
pub(crate) fn unplayed() -> Payload {
    let progress = Progress {
        unlocked_card_backs: vec![0],
        unlocked_backgrounds: vec![0],
        last_modified: EPOCH.to_owned(),
        ..Progress::default()
    };
    let stats = Stats { last_modified: EPOCH.to_owned(), ..Stats::default() };
    Payload { user_id: NOBODY.to_owned(), stats, progress, last_modified: EPOCH.to_owned(), ..Payload::default() }
}

/// The newest payload with the games that aren't in it.
pub(crate) fn shown(player: Option<&Player>) -> Payload {
    let latest = player.and_then(|player| player.latest.as_ref());
    let mut payload = latest.and_then(|latest| serde_json::from_str(latest.get()).ok()).unwrap_or_else(unplayed);
    let is_missing = |entry: &&Entry| entry.is_unsent() || (latest.is_none() && entry.again);
    for entry in player.iter().flat_map(|player| &player.games).filter(is_missing) {
        if let Ok(game) = serde_json::from_str::<Shown>(entry.game.get()) {
            count(&mut payload.stats, &game);
            if let Some(day) = entry.day.as_deref().filter(|_| game.won && game.mode() != Some("\"Zen\"")) {
                win_daily(&mut payload.progress, day);
            }
        }
    }
    payload
}

/// Numbers of the service may be the largest of their type.
fn count(stats: &mut Stats, game: &Shown) {
    let add = |number: &mut u64, more| *number = number.saturating_add(more);
    add(&mut stats.games_played, 1);
    if !game.won {
        add(&mut stats.games_lost, 1);
        stats.win_streak_current = 0;
        return;
    }
    let seconds = stats.avg_time_seconds.saturating_mul(stats.games_won).saturating_add(game.seconds);
    add(&mut stats.games_won, 1);
    stats.avg_time_seconds = seconds / stats.games_won;
    add(&mut stats.win_streak_current, 1);
    stats.win_streak_best = stats.win_streak_best.max(stats.win_streak_current);
    add(&mut stats.lifetime_score, game.score);
    stats.best_single_score = stats.best_single_score.max(game.score);
    add(if game.draw_mode == "DrawThree" { &mut stats.draw_three_wins } else { &mut stats.draw_one_wins }, 1);
    let time = Some(game.seconds).filter(|seconds| *seconds > 0);
    let faster = |seconds: &mut Option<u64>| *seconds = seconds.iter().chain(&time).min().copied();
    faster(&mut stats.fastest_win_seconds);
    let (score, seconds) = match game.mode() {
        Some("\"Classic\"") => (&mut stats.classic_best_score, &mut stats.classic_fastest_win_seconds),
        Some("\"Zen\"") => (&mut stats.zen_best_score, &mut stats.zen_fastest_win_seconds),
        Some("\"Challenge\"") => (&mut stats.challenge_best_score, &mut stats.challenge_fastest_win_seconds),
        _ => return,
    };
    *score = (*score).max(game.score);
    faster(seconds);
}

fn win_daily(progress: &mut Progress, day: &str) {
    let history = &mut progress.daily_challenge_history;
    let last = progress.daily_challenge_last_completed.as_deref();
    if last == Some(day) || history.iter().any(|date| date == day) {
        return;
    }
    history.push(day.to_owned());
    history.sort();
    if last.is_some_and(|last| day < last) {
        return; // a late win doesn't end a streak
    }
    let before = days_until(day).map(|days| date_of(days - 1));
    let streak = if before.as_deref() == last { progress.daily_challenge_streak } else { 0 };
    progress.daily_challenge_streak = streak.saturating_add(1);
    progress.daily_challenge_longest_streak =
        progress.daily_challenge_longest_streak.max(progress.daily_challenge_streak);
    progress.daily_challenge_last_completed = Some(day.to_owned());
}
