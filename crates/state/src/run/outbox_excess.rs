//! What is too much to go out.

use minicbor::{CborLen, Decode, Encode};
use std::fmt;

use crate::limits::{
    EFFECTS_BYTES_MAX, EFFECTS_MAX, EFFECTS_TURN_MAX, MAILS_OF_DAY_MAX, OUTBOX_BYTES_MAX, OUTBOX_MAX,
    TURN_BYTES_MAX,
};

/// The maximum that is exceeded if more goes out. The text of `Display` is for developers, as the message of a rejection;
/// the crate `messages` puts it into words for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum OutboxExcess {
    /// One act has [`EFFECTS_MAX`] effects.
    #[n(0)]
    ActEffects,
    /// The effects of one act have [`EFFECTS_BYTES_MAX`] bytes.
    #[n(1)]
    ActBytes,
    /// One turn has [`EFFECTS_TURN_MAX`] effects.
    #[n(2)]
    TurnEffects,
    /// One turn writes [`TURN_BYTES_MAX`] bytes.
    #[n(3)]
    TurnBytes,
    /// The session has [`OUTBOX_MAX`] effects in its outbox.
    #[n(4)]
    OutboxEffects,
    /// The effects in the session's outbox have [`OUTBOX_BYTES_MAX`] bytes.
    #[n(5)]
    OutboxBytes,
    /// The session sends at most [`MAILS_OF_DAY_MAX`] mails on one day.
    #[n(6)]
    MailsOfDay {
        /// The mails that it has sent on this day.
        #[n(0)]
        sent: u32,
    },
}

impl fmt::Display for OutboxExcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ActEffects => write!(f, "effects of an act: at most {EFFECTS_MAX}"),
            Self::ActBytes => write!(f, "effects of an act: at most {EFFECTS_BYTES_MAX} bytes"),
            Self::TurnEffects => write!(f, "effects of a turn: at most {EFFECTS_TURN_MAX}"),
            Self::TurnBytes => write!(f, "turn: at most {TURN_BYTES_MAX} bytes"),
            Self::OutboxEffects => write!(f, "outbox full: {OUTBOX_MAX} effects"),
            Self::OutboxBytes => write!(f, "outbox full: {OUTBOX_BYTES_MAX} bytes"),
            Self::MailsOfDay { sent } => write!(f, "mails of a day: {sent} sent, at most {MAILS_OF_DAY_MAX}"),
        }
    }
}
