//! Which way decisions come.

use minicbor::{CborLen, Decode, Encode};

use crate::catalogue::LinkAuth;

/// Which way a decision came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub enum Via {
    /// A call of the API.
    #[default]
    #[n(0)]
    Rpc,
    /// A reply by mail.
    #[n(1)]
    Mail,
    /// The decision page, by its link alone.
    #[n(2)]
    Page,
    /// The decision page, which recognised the person by a code that was mailed to them.
    #[n(170)]
    PageByCode,
    /// The decision page, whose visitor had signed in with an OpenID provider.
    #[n(171)]
    PageByOidc,
    /// A call of the API about somebody's reply, for which the caller vouches: the decision is the caller's own.
    #[n(110)]
    Vouched,
}

impl Via {
    /// The public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Rpc => "rpc",
            Self::Mail => "email",
            Self::Page | Self::PageByCode | Self::PageByOidc => "page",
            Self::Vouched => "vouched",
        }
    }

    /// A decision page that recognised its visitor like this.
    #[must_use]
    pub fn page(by: LinkAuth) -> Self {
        match by {
            LinkAuth::Link => Self::Page,
            LinkAuth::Code => Self::PageByCode,
            LinkAuth::Oidc => Self::PageByOidc,
        }
    }

    /// How the decision page recognised its visitor; `None` if it came another way.
    #[must_use]
    pub fn link_auth(self) -> Option<LinkAuth> {
        match self {
            Self::Rpc | Self::Mail | Self::Vouched => None,
            Self::Page => Some(LinkAuth::Link),
            Self::PageByCode => Some(LinkAuth::Code),
            Self::PageByOidc => Some(LinkAuth::Oidc),
        }
    }

    /// Who vouches for what came this way; empty if nobody has to.
    #[must_use]
    pub fn vouched_by(self, by: &str) -> &str {
        match self {
            Self::Rpc | Self::Mail | Self::Page | Self::PageByCode | Self::PageByOidc => "",
            Self::Vouched => by,
        }
    }
}
