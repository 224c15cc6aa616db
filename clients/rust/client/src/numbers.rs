//! Numbers as all clients write them: 7.0 is 7, null may be 0, and JavaScript rounds what is above 2^53.

use serde::de::{Deserialize, Deserializer};
use serde_json::Number;

/// A whole number within the type.
pub(crate) trait Whole: Default {
    fn of(number: &Number) -> Self;
}

impl Whole for u64 {
    fn of(number: &Number) -> u64 {
        number.as_u64().unwrap_or_else(|| number.as_f64().unwrap_or_default() as u64)
    }
}

impl Whole for i64 {
    fn of(number: &Number) -> i64 {
        number.as_i64().unwrap_or_else(|| number.as_f64().unwrap_or_default() as i64)
    }
}

/// A number; null counts as 0.
pub(crate) fn whole<'de, T: Whole, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    optional(from).map(Option::unwrap_or_default)
}

/// A number or null.
pub(crate) fn optional<'de, T: Whole, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Ok(Option::deserialize(from)?.as_ref().map(T::of))
}

/// The seconds of a fastest win, which are 0 or 2^64-1 before the first.
pub(crate) fn fastest<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Ok(optional(from)?.filter(|seconds| ![0, u64::MAX].contains(seconds)))
}

#[cfg(test)]
mod tests {
    use crate::Stats;

    #[test]
    fn doubles_are_read_as_whole_numbers() {
        let read = |text: &str| serde_json::from_str::<Stats>(text).unwrap();
        let stats = read(
            r#"{"games_won": 7.0, "lifetime_score": null, "games_lost": -1, "best_single_score": 18446744073709552000,
            "fastest_win_seconds": 95.0, "new": "\ud800"}"#,
        );
        assert_eq!((stats.games_won, stats.lifetime_score, stats.games_lost), (7, 0, 0));
        assert_eq!((stats.best_single_score, stats.fastest_win_seconds), (u64::MAX, Some(95)));
        for never in [
            "18446744073709551615",
            "18446744073709552000",
            "18446744073710000000",
            "1.8446744073709552e19",
            "0",
            "null",
        ] {
            assert_eq!(read(&format!(r#"{{"fastest_win_seconds": {never}}}"#)).fastest_win_seconds, None, "{never}");
        }
    }
}
