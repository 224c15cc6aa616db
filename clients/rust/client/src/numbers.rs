//! Numbers as all clients write them: JavaScript rounds what is above 2^53.

use serde::de::{Deserializer, Error, Visitor};
use std::fmt;

struct Whole;

impl Visitor<'_> for Whole {
    type Value = Option<i128>;

    fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str("a number")
    }
    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Some(value.into()))
    }
    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Some(value.into()))
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Some(value as i128))
    }
    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// A whole number within the type.
pub(crate) trait Integer: Default {
    fn fitted(value: i128) -> Self;
}

impl Integer for u64 {
    fn fitted(value: i128) -> u64 {
        value.clamp(0, u64::MAX.into()) as u64
    }
}

impl Integer for i64 {
    fn fitted(value: i128) -> i64 {
        value.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

/// A number; null counts as 0.
pub(crate) fn whole<'de, T: Integer, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    optional(from).map(Option::unwrap_or_default)
}

/// A number or null.
pub(crate) fn optional<'de, T: Integer, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Ok(from.deserialize_any(Whole)?.map(T::fitted))
}

#[cfg(test)]
mod tests {
    use crate::Stats;

    #[test]
    fn doubles_are_read_as_whole_numbers() {
        let stats: Stats = serde_json::from_str(
            r#"{"fastest_win_seconds": 18446744073709552000, "games_won": 7.0, "lifetime_score": null, "new": "\ud800"}"#,
        )
        .unwrap();
        assert_eq!((stats.fastest_win_seconds, stats.games_won, stats.lifetime_score), (u64::MAX, 7, 0));
    }
}
