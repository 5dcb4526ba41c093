//! Status, and the format's own words for it.

use minicbor::{CborLen, Decode, Encode};

/// What a run or a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum Status {
    /// It has not begun.
    #[n(0)]
    Queued,
    /// It is being moved.
    #[n(1)]
    Running,
    /// Nothing moves without somebody or something outside.
    #[n(2)]
    Waiting,
    /// It was stopped and can be resumed.
    #[n(3)]
    Suspended,
    /// Ended: it reached its goal.
    #[n(4)]
    Completed,
    /// Ended: its definition stopped it.
    #[n(5)]
    Blocked,
    /// Ended: something went wrong.
    #[n(6)]
    Failed,
    /// Ended: somebody stopped it.
    #[n(7)]
    Cancelled,
    /// Ended: another run replaced it.
    #[n(8)]
    Abandoned,
}

impl Status {
    /// Every status, in order.
    pub const ALL: [Self; 9] = [
        Self::Queued,
        Self::Running,
        Self::Waiting,
        Self::Suspended,
        Self::Completed,
        Self::Blocked,
        Self::Failed,
        Self::Cancelled,
        Self::Abandoned,
    ];

    /// Whether nothing more can happen.
    #[must_use]
    pub fn ended(self) -> bool {
        match self {
            Self::Queued | Self::Running | Self::Waiting | Self::Suspended => false,
            Self::Completed | Self::Blocked | Self::Failed | Self::Cancelled | Self::Abandoned => true,
        }
    }

    /// The status's public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Suspended => "suspended",
            Self::Completed => "completed",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Abandoned => "abandoned",
        }
    }
}

/// The format's own words; read by views only.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct StatusWords {
    /// Waiting, with nothing that holds it.
    #[n(0)]
    pub waiting: String,
    /// Waiting for a person at a gate.
    #[n(1)]
    pub at_gate: String,
    /// Not going on until it is resumed.
    #[n(2)]
    pub suspended: String,
}

impl StatusWords {
    /// The format's word for this status without an open gate; every end is called alike in all formats.
    #[must_use]
    pub fn word(&self, status: Status) -> &str {
        match status {
            Status::Waiting => &self.waiting,
            Status::Suspended => &self.suspended,
            Status::Queued
            | Status::Running
            | Status::Completed
            | Status::Blocked
            | Status::Failed
            | Status::Cancelled
            | Status::Abandoned => status.word(),
        }
    }

    /// The format's word for this status with an open gate.
    #[must_use]
    pub fn word_at_gate(&self, status: Status) -> &str {
        if status == Status::Waiting { &self.at_gate } else { self.word(status) }
    }
}
