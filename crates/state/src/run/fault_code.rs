//! The kinds of faults inside a run.

use minicbor::{CborLen, Decode, Encode};

/// What kind of fault a run met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum FaultCode {
    /// An operation of the definition, or what it writes.
    #[n(0)]
    Operation,
    /// Nobody can be asked or written to.
    #[n(1)]
    Recipients,
    /// What goes out is too much for one act, one turn, or for what the session has out already.
    #[n(2)]
    OutboxLimit,
    /// A template that cannot be filled in.
    #[n(3)]
    Template,
    /// A guard that cannot be evaluated. It is not retried: the same data give the same fault.
    #[n(4)]
    Guard,
    /// A worker has given up.
    #[n(5)]
    WorkError,
    /// A worker's result is not what was asked for.
    #[n(6)]
    BadResult,
    /// Work was handed out too often, and nobody came back with it.
    #[n(7)]
    LeaseLimit,
    /// A run below has ended otherwise than it should, or cannot begin.
    #[n(8)]
    Child,
}

impl FaultCode {
    /// The code as histories and endings show it, in lower case.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Operation => "operation",
            Self::Recipients => "recipients",
            Self::OutboxLimit => "outbox_limit",
            Self::Template => "template",
            Self::Guard => "guard",
            Self::WorkError => "work_error",
            Self::BadResult => "bad_result",
            Self::LeaseLimit => "lease_limit",
            Self::Child => "child",
        }
    }

    /// Returns true if another attempt may end otherwise.
    #[must_use]
    pub fn is_retryable(self) -> bool {
        self != Self::Guard
    }
}

impl std::fmt::Display for FaultCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}
