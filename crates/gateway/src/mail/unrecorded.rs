//! Why a mail that can be read is not recorded in a session.

/// Why a mail that can be read is not recorded in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unrecorded {
    /// No address contains a token that this caller may use.
    NoToken,
    /// A token was not made by this server, or was changed.
    TokenInvalid,
    /// The tenant of the token does not exist.
    NoTenant,
    /// The session of the token has ended.
    SessionEnded,
    /// The session of the token does not exist.
    SessionUnknown,
    /// The session refuses the reply for another reason.
    Refused,
    /// A bounce of a mail that this server does not know.
    BounceOfNothing,
    /// A report that a mail is delayed.
    Delayed,
    /// The sender is empty, as in a bounce, but the mail is not one.
    NullSender,
}

impl Unrecorded {
    /// The stable code of quarantine and logs.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::NoToken => "no_token",
            Self::TokenInvalid => "token_invalid",
            Self::NoTenant => "no_tenant",
            Self::SessionEnded => "session_ended",
            Self::SessionUnknown => "session_unknown",
            Self::Refused => "refused",
            Self::BounceOfNothing => "bounce_of_nothing",
            Self::Delayed => "delayed",
            Self::NullSender => "null_sender",
        }
    }
}
