//! What an approval of a call meets that has no capacity for it.

use minicbor::{CborLen, Decode, Encode};
use std::fmt;
use switchward_machine::Micros;

/// The cap or limit that leaves no capacity for a call. The text of `Display` is for developers, as the message of a
/// rejection; the crate `messages` puts it into words for people.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Shortage {
    /// As many calls of the session are approved and not yet made as may be.
    #[n(0)]
    Grants {
        /// How many may be.
        #[n(0)]
        most: u32,
    },
    /// The session's money is used or reserved.
    #[n(1)]
    Money {
        /// What is used or reserved.
        #[n(0)]
        used: Micros,
        /// The cap.
        #[n(1)]
        most: Micros,
        /// The policy document that sets the cap; `None` if it is the definition's own.
        #[n(2)]
        layer: Option<String>,
    },
    /// The session has sent as many mails as it may.
    #[n(2)]
    Mails {
        /// How many it has sent.
        #[n(0)]
        sent: u64,
        /// The cap.
        #[n(1)]
        most: u64,
        /// The policy document that sets the cap; `None` if it is the definition's own.
        #[n(2)]
        layer: Option<String>,
    },
    /// A limit in a ledger is full.
    #[n(3)]
    Limit {
        /// The limit's rule, with the layers that set it.
        #[n(0)]
        capability: String,
    },
}

impl Shortage {
    /// The size of its texts, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Grants { .. } => 0,
            Self::Money { layer, .. } | Self::Mails { layer, .. } => layer.as_ref().map_or(0, String::len),
            Self::Limit { capability } => capability.len(),
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layer = match self {
            Self::Grants { most } => {
                write!(f, "grants that are not used: at most {most}")?;
                None
            }
            Self::Money { used, most, layer } => {
                write!(f, "money: {used} of {most} USD used or reserved")?;
                layer.as_ref()
            }
            Self::Mails { sent, most, layer } => {
                write!(f, "mails: {sent} of {most} sent")?;
                layer.as_ref()
            }
            Self::Limit { capability } => {
                write!(f, "limit full: {capability}")?;
                None
            }
        };
        layer.map_or(Ok(()), |layer| write!(f, ", cap of {layer}"))
    }
}
