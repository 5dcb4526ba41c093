//! What a reader of an open gate should know about who was notified of it: facts, which the crate `messages` puts into
//! words.

use crate::delivery::MailFull;

/// A problem of an open gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// The gate has no recipients.
    NoRecipients,
    /// All recipients are the requester.
    OnlyRequester {
        /// Their addresses.
        to: Vec<String>,
    },
    /// No mail reaches anybody who may decide.
    Unreachable,
    /// Mails wait for the next hour, because a cap is reached.
    Waiting {
        /// To whom, at most [`WAITING_NAMED_MAX`](crate::limits::WAITING_NAMED_MAX) of them.
        to: Vec<String>,
        /// How many others wait for the same.
        more: usize,
        /// The cap, and the end of the hour.
        full: MailFull,
    },
    /// All who are notified must approve, and nobody is: one approval decides.
    AllOfNobody,
    /// Anybody may decide, and fewer are notified than must approve.
    FewNotified {
        /// How many must approve.
        need: u32,
        /// How many of those who are notified may decide.
        can: usize,
    },
    /// Fewer are asked than the quorum says.
    FewAsked {
        /// The quorum.
        wanted: u32,
        /// How many of those who are asked may decide.
        can: usize,
        /// How many must approve.
        need: usize,
    },
    /// Data or the start names a person who is not in the directory, and so is not asked.
    NotInDirectory {
        /// The name.
        who: String,
    },
    /// A bounce that anybody could have sent says that no mail reaches an address.
    UnprovedBounce {
        /// The address.
        to: String,
    },
}
