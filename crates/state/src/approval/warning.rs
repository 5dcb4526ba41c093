//! What a reader of an open gate should know about who was notified of it: facts, which the crate `messages` puts into
//! words.

use minicbor::{CborLen, Decode, Encode};

use crate::delivery::MailFull;

/// A problem of an open gate.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Warning {
    /// The gate has no recipients.
    #[n(0)]
    NoRecipients,
    /// All recipients are the requester.
    #[n(1)]
    OnlyRequester {
        /// Their addresses.
        #[n(0)]
        to: Vec<String>,
    },
    /// No mail reaches anybody who may decide.
    #[n(2)]
    Unreachable,
    /// Mails wait for the next hour, because a cap is reached.
    #[n(3)]
    Waiting {
        /// To whom, at most [`WAITING_NAMED_MAX`](crate::limits::WAITING_NAMED_MAX) of them.
        #[n(0)]
        to: Vec<String>,
        /// How many others wait for the same.
        #[n(1)]
        more: usize,
        /// The cap, and the end of the hour.
        #[n(2)]
        full: MailFull,
    },
    /// All who are notified must approve, and nobody is: one approval decides.
    #[n(4)]
    AllOfNobody,
    /// Anybody may decide, and fewer are notified than must approve.
    #[n(5)]
    FewNotified {
        /// How many must approve.
        #[n(0)]
        need: u32,
        /// How many of those who are notified may decide.
        #[n(1)]
        can: usize,
    },
    /// Fewer are asked than the quorum says.
    #[n(6)]
    TooFewRecipients {
        /// The quorum.
        #[n(0)]
        wanted: u32,
        /// How many of those who are asked may decide.
        #[n(1)]
        can: usize,
        /// How many must approve.
        #[n(2)]
        need: usize,
    },
    /// Data or the start names a person who is not in the directory, and so is not asked.
    #[n(7)]
    NotInDirectory {
        /// The name.
        #[n(0)]
        who: String,
    },
    /// People were asked because the directory led to them, and it does not any more: they can no longer decide.
    #[n(9)]
    NoLongerListed {
        /// Their addresses.
        #[n(0)]
        who: Vec<String>,
    },
    /// A bounce that anybody could have sent says that no mail reaches an address.
    #[n(8)]
    UnprovedBounce {
        /// The address.
        #[n(0)]
        to: String,
    },
}
