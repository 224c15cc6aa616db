//! A stream of events (docs/live.md), without I/O.

use crate::error::Error;
use crate::messages::Code;
use std::time::Duration;

const LONGEST: usize = 1 << 20;

/// Splits bytes into events.
#[derive(Default)]
pub(crate) struct SseParser {
    rest: Vec<u8>,
    name: String,
    data: String,
    /// The last `retry:`.
    pub retry: Option<Duration>,
}

impl SseParser {
    /// The name and data of each event that these bytes complete. An event without an end is an error.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<(String, String)>, Error> {
        let mut events = Vec::new();
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\n', '\r']);
            if line.is_empty() {
                if !self.data.is_empty() {
                    events.push((std::mem::take(&mut self.name), std::mem::take(&mut self.data)));
                }
                (self.name, self.data) = Default::default();
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => self.name = value.to_owned(),
                "data" => self.data.push_str(value),
                "retry" => {
                    let retry = value.parse().ok().map(Duration::from_millis);
                    self.retry = retry.map(|retry| retry.clamp(PAUSE, MOST));
                }
                _ => {}
            }
        }
        if self.rest.len() + self.data.len() > LONGEST {
            return Err(Error::network(200, 0, "An event of the stream is too long."));
        }
        Ok(events)
    }
}

/// What to do after the end of a stream.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    Again(Duration),
    Renew(Duration),
    Stop,
}

const PAUSE: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(60);

/// When to open the next stream.
pub(crate) struct Follow {
    pub retry: Duration,
    wait: Duration,
}

impl Default for Follow {
    fn default() -> Self {
        Follow { retry: PAUSE, wait: Duration::ZERO }
    }
}

impl Follow {
    /// A stream has ended, with the reason of its `end` event or with "".
    pub fn ended(&mut self, reason: &str) -> Next {
        self.wait = Duration::ZERO;
        match reason {
            "" | "stopping" | "slow" => Next::Again(self.retry),
            "token_expired" => Next::Renew(Duration::ZERO),
            "superseded" => Next::Stop,
            _ => Next::Again(PAUSE), // the next request shows the cause
        }
    }

    /// A stream has not begun.
    pub fn refused(&mut self, error: &Error) -> Next {
        self.wait = (self.wait * 2).max(self.retry).min(MOST);
        match error.code {
            Code::Unauthorized => Next::Renew(self.wait),
            _ => Next::Again(self.wait.max(Duration::from_secs(error.retry_after))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_open_again_unless_there_are_too_many() {
        let mut follow = Follow::default();
        let busy = Error { retry_after: 5, ..Error::new(503, Code::Unavailable, "") };
        assert_eq!(follow.ended("slow"), Next::Again(PAUSE));
        assert_eq!(follow.refused(&busy), Next::Again(Duration::from_secs(5)));
        assert_eq!(follow.refused(&Error::network(0, 0, "")), Next::Again(2 * PAUSE));
        assert_eq!(follow.refused(&Error::new(401, Code::Unauthorized, "")), Next::Renew(4 * PAUSE));
        assert_eq!(follow.ended("superseded"), Next::Stop);
    }

    #[test]
    fn events_are_found_in_any_pieces() {
        let mut parser = SseParser::default();
        let text = "retry: 4711\n\nevent: hello\ndata: {\"a\":1}\n\n: beat\n\nevent: end\ndata: {}\n\n";
        let all: Vec<_> = text.as_bytes().chunks(3).flat_map(|bytes| parser.push(bytes).unwrap()).collect();
        assert_eq!(all, [("hello".into(), "{\"a\":1}".into()), ("end".into(), "{}".into())]);
        assert_eq!(parser.retry, Some(Duration::from_millis(4711)));
    }

    #[test]
    fn event_without_an_end_is_an_error() {
        for endless in ["x", "data: x\n"] {
            let mut parser = SseParser::default();
            let bytes = endless.repeat(4096).into_bytes();
            assert!((0..=LONGEST / 4096).any(|_| parser.push(&bytes).is_err()), "{endless}");
        }
    }

    #[test]
    fn retry_is_a_second_at_least() {
        let mut parser = SseParser::default();
        parser.push(b"retry: 0\n\n").unwrap();
        assert_eq!(parser.retry, Some(PAUSE));
        parser.push(b"retry: 18446744073709551615\n\n").unwrap();
        assert_eq!(parser.retry, Some(MOST));
    }
}
