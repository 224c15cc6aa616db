use crate::messages::Code;
use std::fmt;

/// An error of a request or of the store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Error {
    /// The HTTP status; 0 without an answer.
    pub status: u16,
    /// What happened, for programs.
    pub code: Code,
    /// A sentence in English, which may change.
    pub message: String,
    /// Seconds to wait before the next attempt, at most a day; 0 if the answer doesn't say.
    pub retry_after: u64,
    /// To quote in bug reports.
    pub request_id: Option<String>,
    /// The end of a suspension that ends by itself, in RFC 3339.
    pub suspended_until: Option<String>,
}

impl Error {
    pub(crate) fn new(status: u16, code: Code, message: impl Into<String>) -> Error {
        Error { status, code, message: message.into(), retry_after: 0, request_id: None, suspended_until: None }
    }

    pub(crate) fn network(status: u16, retry_after: u64, why: impl Into<String>) -> Error {
        Error { retry_after, ..Error::new(status, Code::Network, why) }
    }

    /// The service has ended the session, or refuses it.
    pub(crate) fn session_ended() -> Error {
        Error::new(401, Code::SignedOut, "Your session has ended. Please sign in again.")
    }

    pub(crate) fn signed_out() -> Error {
        Error::new(0, Code::SignedOut, "You are signed out. Please sign in.")
    }

    pub(crate) fn bad_field(message: impl Into<String>) -> Error {
        Error::new(0, Code::BadField, message)
    }

    pub(crate) fn store(why: impl fmt::Display) -> Error {
        Error::new(0, Code::Storage, format!("The store can't be used: {why}"))
    }

    pub(crate) fn is(&self, code: Code) -> bool {
        self.code == code
    }

    /// Whether the same call may succeed later.
    pub fn passes(&self) -> bool {
        matches!(self.code, Code::Network | Code::Storage | Code::Unavailable)
            || self.status == 429
            || self.status == 408
            || self.status >= 500
    }
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        write!(to, "{} ({} {})", self.message, self.status, self.code.as_str())
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::store(error)
    }
}
