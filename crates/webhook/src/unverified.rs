//! Why a message was refused.

/// Why a message was refused. For logs and for those who configure a source: the sender learns only that it was
/// refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unverified {
    /// A header that this kind of source sends is missing.
    #[error("the header {0} is missing")]
    HeaderMissing(&'static str),
    /// A header occurs twice, is too long, or is malformed.
    #[error("the header {0} is malformed")]
    HeaderMalformed(&'static str),
    /// The timestamp is no whole number of seconds.
    #[error("the timestamp is malformed")]
    TimestampMalformed,
    /// The timestamp is further in the past than [`TOLERANCE`](crate::limits::TOLERANCE).
    #[error("the timestamp is too old")]
    TimestampTooOld,
    /// The timestamp is further in the future than [`TOLERANCE`](crate::limits::TOLERANCE).
    #[error("the timestamp is too new")]
    TimestampTooNew,
    /// No signature or token matches any active secret.
    #[error("no signature matches")]
    SignatureMismatch,
    /// A secret of the source is malformed, or there are none or too many of them.
    #[error("a secret is malformed")]
    SecretMalformed,
    /// The source signs nothing, and that is not allowed here.
    #[error("messages without a signature are not allowed here")]
    UnsignedNotAllowed,
    /// The body is larger than [`IN_BODY_BYTES_MAX`](crate::limits::IN_BODY_BYTES_MAX).
    #[error("the body is too large")]
    BodyTooLarge,
}

impl Unverified {
    /// The reason's stable word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::HeaderMissing(_) => "HEADER_MISSING",
            Self::HeaderMalformed(_) => "HEADER_MALFORMED",
            Self::TimestampMalformed => "TIMESTAMP_MALFORMED",
            Self::TimestampTooOld => "TIMESTAMP_TOO_OLD",
            Self::TimestampTooNew => "TIMESTAMP_TOO_NEW",
            Self::SignatureMismatch => "SIGNATURE_MISMATCH",
            Self::SecretMalformed => "SECRET_MALFORMED",
            Self::UnsignedNotAllowed => "UNSIGNED_NOT_ALLOWED",
            Self::BodyTooLarge => "BODY_TOO_LARGE",
        }
    }
}
