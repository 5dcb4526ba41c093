//! Why a sign-in failed.

use std::fmt;

/// Why a sign-in failed. Contains nothing that the provider or the browser sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Problem {
    /// The provider cannot be reached, or does not work now.
    Unavailable,
    /// The provider refuses the code: it was used, is too old, or belongs to another sign-in.
    CodeRefused,
    /// The ID token is missing or malformed.
    TokenInvalid,
    /// The ID token is another provider's.
    IssuerWrong,
    /// The ID token is for another client, or for others too.
    AudienceWrong,
    /// The ID token belongs to another sign-in.
    NonceWrong,
    /// The ID token has expired.
    TokenExpired,
    /// The ID token is signed with a key that the provider does not publish.
    KeyUnknown,
    /// The ID token has no signature, or a wrong one.
    SignatureWrong,
    /// The ID token names no address.
    AddressMissing,
    /// The provider does not say that it has verified the address.
    AddressUnverified,
}

impl Problem {
    /// The stable code.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Unavailable => "provider_unavailable",
            Self::CodeRefused => "code_refused",
            Self::TokenInvalid => "id_token_invalid",
            Self::IssuerWrong => "issuer_wrong",
            Self::AudienceWrong => "audience_wrong",
            Self::NonceWrong => "nonce_wrong",
            Self::TokenExpired => "id_token_expired",
            Self::KeyUnknown => "key_unknown",
            Self::SignatureWrong => "signature_wrong",
            Self::AddressMissing => "address_missing",
            Self::AddressUnverified => "address_unverified",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Unavailable => "the OpenID provider cannot be used now",
            Self::CodeRefused => "the OpenID provider did not accept the code",
            Self::TokenInvalid => "the OpenID provider returned no readable ID token",
            Self::IssuerWrong => "the ID token is from another provider",
            Self::AudienceWrong => "the ID token is not for this server only",
            Self::NonceWrong => "the ID token belongs to another sign-in",
            Self::TokenExpired => "the ID token has expired",
            Self::KeyUnknown => "the ID token is signed with a key that the OpenID provider does not publish",
            Self::SignatureWrong => "the ID token is not signed by the OpenID provider",
            Self::AddressMissing => "the OpenID provider names no mail address",
            Self::AddressUnverified => "the OpenID provider has not verified the mail address",
        })
    }
}

impl std::error::Error for Problem {}
