//! The kinds of Raft's messages.

/// A kind of message. Its number is what is sent; 1 to 15 are Raft's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Entries of a leader, or the notice that they are committed.
    Append,
    /// A candidate asks for a vote.
    Vote,
    /// A server asks whether it would get a vote.
    PreVote,
    /// A leader hands over to the receiver.
    TransferLeader,
    /// A stream of appends, each of which is answered in order.
    AppendStream,
    /// A stream with a snapshot.
    Snapshot,
    /// A leader's heartbeat: an append without entries, whose answer waits for no disk.
    Heartbeat,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Append,
        Self::Vote,
        Self::PreVote,
        Self::TransferLeader,
        Self::AppendStream,
        Self::Snapshot,
        Self::Heartbeat,
    ];

    /// The number that is sent.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Append => 1,
            Self::Vote => 2,
            Self::PreVote => 3,
            Self::TransferLeader => 4,
            Self::AppendStream => 5,
            Self::Snapshot => 6,
            Self::Heartbeat => 7,
        }
    }

    /// The kind of a number; `None` if it is not one of Raft's.
    pub(super) fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }
}
