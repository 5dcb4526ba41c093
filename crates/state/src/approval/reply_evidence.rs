//! What is known of the origin of a reply by mail.

use minicbor::{CborLen, Decode, Encode};

use crate::approval::OriginReason;

/// What the checks of a mail have shown of its origin, for the history. It decides nothing.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ReplyEvidence {
    /// How far the address in `From` is proved.
    #[n(0)]
    pub proof: OriginProof,
    /// Where the mail was checked.
    #[n(1)]
    pub by: CheckedBy,
    /// Signatures of the sender's domain that cover the reply address.
    #[n(2)]
    pub dkim: MailCheck,
    /// Whether the sender's domain sends from the host that handed the mail over.
    #[n(3)]
    pub spf: MailCheck,
    /// What the policy of the sender's domain says.
    #[n(4)]
    pub dmarc: MailCheck,
    /// Whether the mail has text that its reader does not see.
    #[n(5)]
    pub hidden_text: bool,
    /// Why, each reason as often as it applies; may be empty.
    #[n(6)]
    pub reasons: Vec<OriginReason>,
}

/// How far the address in `From` is proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum OriginProof {
    /// A signature covers the reply address.
    #[n(0)]
    Signed,
    /// The sending host proves the domain.
    #[n(1)]
    Aligned,
    /// Nothing proves it.
    #[n(2)]
    NotAligned,
}

/// Where the checks of a mail were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum CheckedBy {
    /// By the server that took the mail in.
    #[n(0)]
    Server,
    /// By the host that handed the mail over.
    #[n(1)]
    TrustedHost,
}

/// The result of one check of a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum MailCheck {
    /// It passed for the sender's domain.
    #[n(0)]
    Pass,
    /// It does not hold, or holds for another domain.
    #[n(1)]
    Fail,
    /// There was nothing to check.
    #[n(2)]
    None,
    /// The DNS did not answer.
    #[n(3)]
    Temporary,
}

impl MailCheck {
    /// Returns the word that histories show, in lower case.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::None => "none",
            Self::Temporary => "temporary",
        }
    }
}

impl ReplyEvidence {
    /// What the words of its reasons hold, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.reasons.iter().map(|reason| reason.word().len()).sum()
    }
}
