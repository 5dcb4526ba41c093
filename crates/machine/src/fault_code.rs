//! The kinds of faults inside a run.

use std::fmt;

/// What kind of fault a run met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultCode {
    /// An operation of the definition, or what it writes.
    Operation,
    /// Nobody can be asked or written to.
    Recipients,
    /// What goes out is too much for one act, one turn, or for what the session has out already.
    OutboxLimit,
    /// A template that cannot be filled in.
    Template,
    /// A guard that cannot be evaluated. It is not retried: the same data give the same fault.
    Guard,
    /// A worker has given up.
    WorkError,
    /// A worker's result is not what was asked for.
    BadResult,
    /// Work was handed out too often, and nobody came back with it.
    LeaseLimit,
    /// A run below has ended otherwise than it should, or cannot begin.
    Child,
}

impl FaultCode {
    /// All codes.
    pub const ALL: [Self; 9] = [
        Self::Operation,
        Self::Recipients,
        Self::OutboxLimit,
        Self::Template,
        Self::Guard,
        Self::WorkError,
        Self::BadResult,
        Self::LeaseLimit,
        Self::Child,
    ];

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

    /// Returns the code with this word; `None` if there is none.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.word() == word)
    }

    /// Returns true if another attempt may end otherwise.
    #[must_use]
    pub fn is_retryable(self) -> bool {
        self != Self::Guard
    }
}

impl fmt::Display for FaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_every_code_in_order() {
        for (at, code) in FaultCode::ALL.into_iter().enumerate() {
            assert_eq!(code as usize, at, "{code}");
            assert_eq!(FaultCode::from_word(code.word()), Some(code));
        }
        assert_eq!(FaultCode::Child as usize + 1, FaultCode::ALL.len());
    }
}
