//! Why sessions have their status.

use minicbor::decode::Error as DecodeError;
use minicbor::encode::{Error as EncodeError, Write};
use minicbor::{CborLen, Decode, Decoder, Encode, Encoder};
use std::fmt;
use switchward_machine::EndReason;

/// The word of [`StatusReason::Paused`].
const PAUSED: &str = "paused";

/// Why a session has its status, if the status does not say it all. It is stored and shown as its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatusReason {
    /// Somebody has paused it.
    Paused,
    /// Its last run has ended, for this reason.
    Ended(EndReason),
}

impl StatusReason {
    /// Returns the word that is stored and shown, in lower case; it never changes.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Paused => PAUSED,
            Self::Ended(reason) => reason.word(),
        }
    }
}

impl fmt::Display for StatusReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl<C> Encode<C> for StatusReason {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, _: &mut C) -> Result<(), EncodeError<W::Error>> {
        e.str(self.word())?.ok()
    }
}

impl<'b, C> Decode<'b, C> for StatusReason {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, DecodeError> {
        match d.str()? {
            PAUSED => Ok(Self::Paused),
            word => {
                let known = EndReason::from_word(word).map(Self::Ended);
                known.ok_or_else(|| DecodeError::message(format!("{word:?} is no reason of a status")))
            }
        }
    }
}

impl<C> CborLen<C> for StatusReason {
    fn cbor_len(&self, ctx: &mut C) -> usize {
        self.word().cbor_len(ctx)
    }
}
