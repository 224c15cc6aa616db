//! Small formats: times, UUIDs, the claims of a token.

use crate::error::Error;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// A date, as days since 1970.
pub(crate) fn date_of(days: i64) -> String {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let part = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * part + 2) / 5 + 1, if part < 10 { part + 3 } else { part - 9 });
    format!("{:04}-{month:02}-{day:02}", year_of_era + era * 400 + i64::from(month <= 2))
}

/// The days since 1970 of a date like 2026-11-28.
pub(crate) fn days_until(date: &str) -> Option<i64> {
    let mut parts = date.splitn(3, '-').map(str::parse);
    let mut part = || parts.next()?.ok().map(|part: u16| i64::from(part));
    Some(days_of(part()?, part()?, part()?))
}

/// The seconds since 1970 of a date in a header, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn http_date(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let [_, day, month, year, time, "GMT"] = text.split_whitespace().collect::<Vec<_>>()[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let number = |text: &str| text.parse().ok().map(|number: u16| i64::from(number));
    let [hour, minute, second] = time.split(':').map(number).collect::<Option<Vec<_>>>()?[..] else { return None };
    Some(86_400 * days_of(number(year)?, month, number(day)?) + 3_600 * hour + 60 * minute + second)
}

/// RFC 3339 with an offset in minutes, of milliseconds since 1970.
pub(crate) fn rfc3339(millis: i64, offset: i32) -> String {
    let local = millis + i64::from(offset) * 60_000;
    let (days, rest) = (local.div_euclid(86_400_000), local.rem_euclid(86_400_000));
    let (hour, minute, second, milli) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60, rest % 1000);
    let zone = match offset {
        0 => "Z".to_owned(),
        _ => format!("{}{:02}:{:02}", if offset < 0 { '-' } else { '+' }, offset.abs() / 60, offset.abs() % 60),
    };
    format!("{}T{hour:02}:{minute:02}:{second:02}.{milli:03}{zone}", date_of(days))
}

/// A key of 128 random bits.
pub(crate) fn key(bytes: [u8; 16]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A random UUID.
pub(crate) fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = key(bytes);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// A UUID as the service answers it.
pub(crate) fn canonical_uuid(text: &str) -> Option<String> {
    let fits = |(at, letter): (usize, u8)| match at {
        8 | 13 | 18 | 23 => letter == b'-',
        _ => letter.is_ascii_hexdigit(),
    };
    (text.len() == 36 && text.bytes().enumerate().all(fits)).then(|| text.to_ascii_lowercase())
}

/// The account of an access token, and the time of its end.
#[derive(serde::Deserialize)]
pub(crate) struct Claims {
    pub sub: String,
    #[serde(default)]
    pub exp: f64,
}

pub(crate) fn claims_of(token: &str) -> Result<Claims, Error> {
    let claims = token.split('.').nth(1).and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
    let claims = claims.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    claims.ok_or_else(|| Error::network(200, 0, "The answer has no token."))
}

/// The id of the account whose access token this is.
pub(crate) fn account_of(token: &str) -> Result<String, Error> {
    claims_of(token).map(|claims| claims.sub)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_offset_of_the_player() {
        assert_eq!(rfc3339(1_795_867_200_123, 0), "2026-11-28T12:00:00.123Z");
        assert_eq!(rfc3339(1_795_867_200_000, 90), "2026-11-28T13:30:00.000+01:30");
        assert_eq!(rfc3339(951_782_400_000, -480), "2000-02-28T16:00:00.000-08:00");
        assert_eq!(days_until("2000-02-29").map(date_of).as_deref(), Some("2000-02-29"));
    }

    #[test]
    fn dates_of_headers_are_read() {
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        for odd in ["", "120", "Sun, 06 Nov 1994 08:49 GMT", "Sun, 06 Nov 99999 08:49:37 GMT", "Sun, 06 May 1994"] {
            assert_eq!(http_date(odd), None, "{odd}");
        }
    }

    #[test]
    fn odd_dates_are_none() {
        for odd in ["", "2026", "2026-11", "9223372036854775807-01-01", "2026-9223372036854775807-01", "-1-1-1"] {
            assert_eq!(days_until(odd), None, "{odd}");
        }
    }

    #[test]
    fn account_is_read_from_the_token() {
        assert_eq!(account_of("e30.eyJzdWIiOiJhYmMifQ.x").unwrap(), "abc");
        assert!(account_of("<html>").is_err());
    }

    #[test]
    fn uuids_are_canonical() {
        assert_eq!(uuid([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(canonical_uuid(&uuid([0xab; 16]).to_uppercase()), Some(uuid([0xab; 16])));
        assert_eq!(canonical_uuid("../../../../../../../../etc/shadow00"), None);
    }
}
