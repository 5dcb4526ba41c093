//! Why something that should have gone out did not come to a good end.

use std::fmt;
use std::time::Duration;

/// Why something has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failed {
    /// Its stable word.
    pub reason: Reason,
    /// What happened, in words for the author of the request. It never holds an address that a name leads to, what was
    /// sent, or a credential.
    pub message: String,
    /// How long to wait before another try, where the other side said so.
    pub retry_after: Option<Duration>,
}

impl Failed {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), retry_after: None }
    }
}

/// Stable words for what went wrong; a definition may branch on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The address cannot be read, is too long, or holds what it may not, such as a user's name.
    UrlInvalid,
    /// Neither http nor https, or http where only https is allowed.
    SchemeRefused,
    /// A port that is not on the list.
    PortRefused,
    /// A host that the tenant's list does not hold.
    HostRefused,
    /// An address that is not on the public network, or that a name leads to one.
    AddressRefused,
    /// What the tenant may ask cannot be told now.
    RulesUnknown,
    /// A method, a header or a body that may not be sent.
    RequestInvalid,
    /// What would be sent is larger than it may be.
    RequestTooLarge,
    /// The name leads to no address, or to one that is not on the public network. Which of both is not told: whoever writes
    /// addresses would learn from it what names there are inside.
    NameUnusable,
    /// No connection came about.
    ConnectFailed,
    /// The other side did not prove who it is, or speaks no TLS that is accepted here.
    TlsFailed,
    /// The deadline passed.
    Timeout,
    /// The deadline had passed before it was begun: nothing went out.
    NotBegun,
    /// The connection ended, or what came is not HTTP, before the answer was whole.
    AnswerBroken,
    /// The answer is larger than it may be.
    AnswerTooLarge,
    /// The answer is compressed although that was not asked for.
    EncodingRefused,
    /// The errand asks for something that is not known here, or its parts do not fit.
    ErrandInvalid,
    /// Nothing is set up for this kind of errand.
    NotConfigured,
    /// The receiver of a message answered with something else than a success.
    ReceiverRefused,
    /// The receiver says that nobody is there any more.
    ReceiverGone,
    /// A mail that cannot be written: an address is none, or a header would have several lines.
    MailInvalid,
    /// The mail server refuses the mail for good.
    MailRejected,
    /// The mail server asks to come again.
    MailDeferred,
    /// The model's endpoint does not accept the credential.
    ModelUnauthorized,
    /// The model's endpoint asks to wait.
    ModelLimited,
    /// The model's endpoint has trouble of its own.
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

impl Reason {
    /// The word that is stored and shown; it never changes.
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
            Self::ErrandInvalid => "errand_invalid",
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

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.code())
    }
}
