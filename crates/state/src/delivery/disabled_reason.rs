//! Why endpoints are disabled.

use minicbor::{CborLen, Decode, Encode};
use std::fmt;

/// Why an endpoint is sent nothing any more, until it is put again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum DisabledReason {
    /// It has answered 410.
    #[n(0)]
    Gone,
    /// It has taken no message for five days.
    #[n(1)]
    Failing,
}

impl DisabledReason {
    /// Returns the word that the API and messages to other endpoints show; it never changes.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Failing => "failing",
        }
    }
}

impl fmt::Display for DisabledReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
