//! Why runs end.

use minicbor::decode::Error as DecodeError;
use minicbor::encode::{Error as EncodeError, Write};
use minicbor::{CborLen, Decode, Decoder, Encode, Encoder};
use std::fmt;

use crate::FaultCode;

/// Why a run has ended, if its outcome does not say it all. What exactly has happened is in the comment on the end. It is
/// stored and shown as its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndReason {
    /// The run has left a node through a port that no exit leads from.
    PortUnconnected,
    /// The run has entered too many nodes without anything from outside.
    DrainLimit,
    /// The body of a node has ended, and none of its exits can be taken.
    NoTransition,
    /// A fault that the node neither tries again nor handles.
    Fault(FaultCode),
}

/// The reasons that are no faults.
const OWN: [EndReason; 3] = [EndReason::PortUnconnected, EndReason::DrainLimit, EndReason::NoTransition];

impl EndReason {
    /// Returns the word that is stored and shown, in lower case; it never changes.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::PortUnconnected => "port_unconnected",
            Self::DrainLimit => "drain_limit",
            Self::NoTransition => "no_transition",
            Self::Fault(code) => code.word(),
        }
    }

    /// Returns the reason with this word; `None` if there is none.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        let own = OWN.into_iter().find(|reason| reason.word() == word);
        own.or_else(|| FaultCode::from_word(word).map(Self::Fault))
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl<C> Encode<C> for EndReason {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, _: &mut C) -> Result<(), EncodeError<W::Error>> {
        e.str(self.word())?.ok()
    }
}

impl<'b, C> Decode<'b, C> for EndReason {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, DecodeError> {
        let word = d.str()?;
        Self::from_word(word).ok_or_else(|| DecodeError::message(format!("{word:?} is no reason of an end")))
    }
}

impl<C> CborLen<C> for EndReason {
    fn cbor_len(&self, ctx: &mut C) -> usize {
        self.word().cbor_len(ctx)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_reason_is_read_from_its_word() {
        let faults = FaultCode::ALL.into_iter().map(EndReason::Fault);
        let mut words = BTreeSet::new();
        for reason in OWN.into_iter().chain(faults) {
            let mut bytes = Vec::new();
            minicbor::encode(reason, &mut bytes).expect("encoding into memory cannot fail");
            assert_eq!(minicbor::len(reason), bytes.len(), "{reason}");
            assert_eq!(minicbor::decode::<EndReason>(&bytes).expect("it is a reason"), reason);
            assert!(words.insert(reason.word()), "two reasons have the word {reason}");
        }
        let mut bytes = Vec::new();
        minicbor::encode("no", &mut bytes).expect("encoding into memory cannot fail");
        assert!(minicbor::decode::<EndReason>(&bytes).is_err());
    }
}
