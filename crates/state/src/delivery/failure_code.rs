//! The codes of deferred effects and dead letters.

use minicbor::data::Type;
use minicbor::decode::Error as DecodeError;
use minicbor::encode::{Error as EncodeError, Write};
use minicbor::{CborLen, Decode, Decoder, Encode, Encoder};
use std::fmt;
use std::str::FromStr;
use switchward_machine::DeliveryReason;

use super::{EventProblem, MailCap};
use crate::limits::FAILURE_CODE_BYTES_MAX;

/// Why an effect is deferred or has become a dead letter. It is shown as its word. It is stored as its word, too, unless it has
/// facts that the word does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureCode {
    /// An attempt failed.
    Attempt(DeliveryReason),
    /// The last attempt to send an event to an endpoint failed, or the event cannot be signed.
    WebhookFailed,
    /// An event for an endpoint cannot be sent at all. Its word is that of [`WebhookFailed`](Self::WebhookFailed).
    Unsendable(EventProblem),
    /// The message is larger than the bus accepts.
    TooLarge,
    /// The server sends no mail.
    MailNotConfigured,
    /// An hourly cap of mails is reached.
    MailCap(MailCap),
    /// A program that delivers effects itself, through the API, has reported it.
    Reported(ReportedCode),
}

/// The code of a program that delivers effects itself: 1 to [`FAILURE_CODE_BYTES_MAX`] lower-case letters, digits and the
/// signs `_`, `.` and `-`. No server writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedCode(String);

impl FailureCode {
    /// The codes that are not those of a reason, a cap or a program.
    const OWN: [Self; 3] = [Self::WebhookFailed, Self::TooLarge, Self::MailNotConfigured];

    /// Returns the word that is stored and shown; it never changes.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Self::Attempt(reason) => reason.code(),
            Self::WebhookFailed | Self::Unsendable(_) => "webhook_failed",
            Self::TooLarge => "too_large",
            Self::MailNotConfigured => "mail.not_configured",
            Self::MailCap(cap) => cap.code(),
            Self::Reported(code) => &code.0,
        }
    }

    /// Returns the code that servers write with this word; `None` if there is none.
    fn known(word: &str) -> Option<Self> {
        let own = Self::OWN.into_iter().find(|code| code.word() == word);
        own.or_else(|| MailCap::of_code(word).map(Self::MailCap))
            .or_else(|| DeliveryReason::from_code(word).map(Self::Attempt))
    }

    /// Returns the cap that is reached; `None` if it is another code.
    #[must_use]
    pub fn mail_cap(&self) -> Option<MailCap> {
        if let Self::MailCap(cap) = self { Some(*cap) } else { None }
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Why a text cannot be the code of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadFailureCode {
    /// It is empty, or has another character.
    Characters,
    /// It is longer than [`FAILURE_CODE_BYTES_MAX`].
    Length,
}

impl fmt::Display for BadFailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Characters => {
                f.write_str("a code is made of lower-case letters, digits and the characters _ . -")
            }
            Self::Length => write!(f, "a code has at most {FAILURE_CODE_BYTES_MAX} bytes"),
        }
    }
}

impl FromStr for FailureCode {
    type Err = BadFailureCode;

    fn from_str(word: &str) -> Result<Self, BadFailureCode> {
        if let Some(known) = Self::known(word) {
            return Ok(known);
        }
        if word.len() > FAILURE_CODE_BYTES_MAX {
            return Err(BadFailureCode::Length);
        }
        let plain = |character: char| {
            character.is_ascii_lowercase() || character.is_ascii_digit() || "_.-".contains(character)
        };
        if word.is_empty() || !word.chars().all(plain) {
            return Err(BadFailureCode::Characters);
        }
        Ok(Self::Reported(ReportedCode(word.to_owned())))
    }
}

impl<C> Encode<C> for FailureCode {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, ctx: &mut C) -> Result<(), EncodeError<W::Error>> {
        if let Self::Unsendable(problem) = self {
            return problem.encode(e, ctx);
        }
        e.str(self.word())?.ok()
    }
}

/// What is stored or sent was checked when it was reported, so each text is a code.
impl<'b, C> Decode<'b, C> for FailureCode {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Self, DecodeError> {
        if d.datatype()? == Type::Array {
            return EventProblem::decode(d, ctx).map(Self::Unsendable);
        }
        let word = d.str()?;
        Ok(Self::known(word).unwrap_or_else(|| Self::Reported(ReportedCode(word.to_owned()))))
    }
}

impl<C> CborLen<C> for FailureCode {
    fn cbor_len(&self, ctx: &mut C) -> usize {
        if let Self::Unsendable(problem) = self { problem.cbor_len(ctx) } else { self.word().cbor_len(ctx) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::delivery::{DisabledReason, EventSubject, PublishedType};

    #[test]
    fn every_code_is_read_from_its_word() {
        let reasons = DeliveryReason::ALL.into_iter().map(FailureCode::Attempt);
        let caps = MailCap::ALL.into_iter().map(FailureCode::MailCap);
        let mut words = BTreeSet::new();
        for code in FailureCode::OWN.into_iter().chain(reasons).chain(caps) {
            assert_eq!(code.word().parse(), Ok(code.clone()));
            assert!(words.insert(code.word().to_owned()), "two codes have the word {code}");
        }
    }

    #[test]
    fn a_code_with_facts_is_stored_with_them() {
        let problems = [
            EventProblem::EndpointDisabled { reason: DisabledReason::Gone },
            EventProblem::NoSession,
            EventProblem::UnknownSubject { kind: PublishedType::DefinitionDeployed, about: None },
            EventProblem::UnknownSubject {
                kind: PublishedType::EndpointDisabled,
                about: Some(EventSubject::OfSession("gate".to_owned())),
            },
        ];
        let unsendable = problems.map(FailureCode::Unsendable);
        let others = [FailureCode::WebhookFailed, FailureCode::MailCap(MailCap::Address)];
        for code in unsendable.into_iter().chain(others) {
            let mut bytes = Vec::new();
            minicbor::encode(&code, &mut bytes).expect("encoding into memory cannot fail");
            assert_eq!(minicbor::len(&code), bytes.len(), "{code:?}");
            assert_eq!(minicbor::decode::<FailureCode>(&bytes).expect("it is a code"), code);
        }
    }

    #[test]
    fn a_program_has_codes_of_its_own_of_a_limited_form() {
        let code: FailureCode = "carrier-pigeon.lost_2".parse().expect("a program may report it");
        assert_eq!(code, FailureCode::Reported(ReportedCode("carrier-pigeon.lost_2".to_owned())));
        let longest = "x".repeat(FAILURE_CODE_BYTES_MAX);
        assert!(longest.parse::<FailureCode>().is_ok());
        assert_eq!((longest + "x").parse::<FailureCode>(), Err(BadFailureCode::Length));
        for text in ["", "Lost", "lost it", "verloren\u{e4}"] {
            assert_eq!(text.parse::<FailureCode>(), Err(BadFailureCode::Characters), "{text:?}");
        }
    }
}
