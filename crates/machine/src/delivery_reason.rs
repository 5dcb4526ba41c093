//! Why an attempt to deliver something failed: what `delivery` finds out, and what sessions and definitions know of it.

use minicbor::decode::Error as DecodeError;
use minicbor::encode::{Error as EncodeError, Write};
use minicbor::{CborLen, Decode, Decoder, Encode, Encoder};
use std::fmt;

/// Why an attempt failed, with a stable code; a definition may branch on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeliveryReason {
    /// The address cannot be read, is too long, or holds what it may not, such as a user's name.
    UrlInvalid,
    /// Neither http nor https, or http where only https is allowed.
    SchemeRefused,
    /// A port that is not on the list.
    PortRefused,
    /// A host that the tenant's list does not hold.
    HostRefused,
    /// An address that is not on the public network, or a name that resolves to one.
    AddressRefused,
    /// The tenant's rules cannot be determined now.
    RulesUnknown,
    /// A method, a header or a body that may not be sent.
    RequestInvalid,
    /// What would be sent is larger than it may be.
    RequestTooLarge,
    /// The name resolves to no address, or to one that is not on the public network. The code does not say which, as the
    /// author of the address would learn from it which internal names exist.
    NameUnusable,
    /// No connection to the address came about.
    ConnectFailed,
    /// The other side did not prove who it is, or speaks no TLS that is accepted here.
    TlsFailed,
    /// The deadline passed.
    Timeout,
    /// The deadline had passed before the job was begun: nothing was sent.
    NotBegun,
    /// The connection ended, or broke the rules of HTTP, before the answer was complete.
    AnswerBroken,
    /// The answer is larger than it may be.
    AnswerTooLarge,
    /// The answer is compressed although that was not asked for.
    EncodingRefused,
    /// The job has an invalid input.
    JobInvalid,
    /// Nothing is set up for this kind of job.
    NotConfigured,
    /// The receiver of a message answered without success.
    ReceiverRefused,
    /// The receiver is gone for good (HTTP 410).
    ReceiverGone,
    /// The mail cannot be composed: an address is malformed, or a header would have several lines.
    MailInvalid,
    /// The mail server refuses the mail for good.
    MailRejected,
    /// The mail server asks to try again later, or does not accept this server's login.
    MailDeferred,
    /// The model's endpoint does not accept the credential.
    ModelUnauthorized,
    /// The model's endpoint asks to wait.
    ModelLimited,
    /// The model's endpoint has an internal error.
    ModelUnavailable,
    /// The model's endpoint does not accept the question.
    ModelRejected,
    /// The model declined to answer.
    ModelRefused,
    /// The model's answer is not what was asked for.
    ModelAnswerInvalid,
    /// The model's answer was cut off.
    ModelAnswerCut,
}

impl DeliveryReason {
    /// All reasons.
    pub const ALL: [Self; 30] = [
        Self::UrlInvalid,
        Self::SchemeRefused,
        Self::PortRefused,
        Self::HostRefused,
        Self::AddressRefused,
        Self::RulesUnknown,
        Self::RequestInvalid,
        Self::RequestTooLarge,
        Self::NameUnusable,
        Self::ConnectFailed,
        Self::TlsFailed,
        Self::Timeout,
        Self::NotBegun,
        Self::AnswerBroken,
        Self::AnswerTooLarge,
        Self::EncodingRefused,
        Self::JobInvalid,
        Self::NotConfigured,
        Self::ReceiverRefused,
        Self::ReceiverGone,
        Self::MailInvalid,
        Self::MailRejected,
        Self::MailDeferred,
        Self::ModelUnauthorized,
        Self::ModelLimited,
        Self::ModelUnavailable,
        Self::ModelRejected,
        Self::ModelRefused,
        Self::ModelAnswerInvalid,
        Self::ModelAnswerCut,
    ];

    /// Returns the reason with this code; `None` if there is none.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }

    /// Returns true if another attempt at the same job would fail in the same way.
    #[must_use]
    pub fn is_permanent(self) -> bool {
        match self {
            Self::UrlInvalid
            | Self::SchemeRefused
            | Self::HostRefused
            | Self::RequestInvalid
            | Self::RequestTooLarge
            | Self::JobInvalid
            | Self::ReceiverGone
            | Self::MailInvalid
            | Self::MailRejected => true,
            Self::PortRefused
            | Self::AddressRefused
            | Self::RulesUnknown
            | Self::NameUnusable
            | Self::ConnectFailed
            | Self::TlsFailed
            | Self::Timeout
            | Self::NotBegun
            | Self::AnswerBroken
            | Self::AnswerTooLarge
            | Self::EncodingRefused
            | Self::NotConfigured
            | Self::ReceiverRefused
            | Self::MailDeferred
            | Self::ModelUnauthorized
            | Self::ModelLimited
            | Self::ModelUnavailable
            | Self::ModelRejected
            | Self::ModelRefused
            | Self::ModelAnswerInvalid
            | Self::ModelAnswerCut => false,
        }
    }

    /// The code that is stored and shown; it never changes.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::UrlInvalid => "url_invalid",
            Self::SchemeRefused => "scheme_refused",
            Self::PortRefused => "port_refused",
            Self::HostRefused => "host_refused",
            Self::AddressRefused => "address_refused",
            Self::RulesUnknown => "rules_unknown",
            Self::RequestInvalid => "request_invalid",
            Self::RequestTooLarge => "request_too_large",
            Self::NameUnusable => "name_unusable",
            Self::ConnectFailed => "connect_failed",
            Self::TlsFailed => "tls_failed",
            Self::Timeout => "timeout",
            Self::NotBegun => "not_begun",
            Self::AnswerBroken => "answer_broken",
            Self::AnswerTooLarge => "answer_too_large",
            Self::EncodingRefused => "encoding_refused",
            Self::JobInvalid => "job_invalid",
            Self::NotConfigured => "not_configured",
            Self::ReceiverRefused => "receiver_refused",
            Self::ReceiverGone => "receiver_gone",
            Self::MailInvalid => "mail_invalid",
            Self::MailRejected => "mail_rejected",
            Self::MailDeferred => "mail_deferred",
            Self::ModelUnauthorized => "model_unauthorized",
            Self::ModelLimited => "model_limited",
            Self::ModelUnavailable => "model_unavailable",
            Self::ModelRejected => "model_rejected",
            Self::ModelRefused => "model_refused",
            Self::ModelAnswerInvalid => "model_answer_invalid",
            Self::ModelAnswerCut => "model_answer_cut",
        }
    }
}

impl fmt::Display for DeliveryReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.code())
    }
}

/// It is stored as its code.
impl<C> Encode<C> for DeliveryReason {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, _: &mut C) -> Result<(), EncodeError<W::Error>> {
        e.str(self.code())?.ok()
    }
}

impl<'b, C> Decode<'b, C> for DeliveryReason {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, DecodeError> {
        Self::from_code(d.str()?).ok_or_else(|| DecodeError::message("the reason of a delivery is unknown"))
    }
}

impl<C> CborLen<C> for DeliveryReason {
    fn cbor_len(&self, ctx: &mut C) -> usize {
        self.code().cbor_len(ctx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_every_reason_in_order() {
        for (at, reason) in DeliveryReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at, "{reason}");
            assert_eq!(DeliveryReason::from_code(reason.code()), Some(reason));
            let bytes = minicbor::to_vec(reason).expect("encoding into memory cannot fail");
            assert_eq!(minicbor::len(reason), bytes.len());
            assert_eq!(minicbor::decode::<DeliveryReason>(&bytes).expect("it is a reason"), reason);
        }
        assert_eq!(DeliveryReason::ALL.len(), DeliveryReason::ModelAnswerCut as usize + 1);
        assert_eq!(DeliveryReason::from_code("lost"), None);
    }
}
