//! What a tenant may switch, and the server configuration's values for what the tenant does not set.

use minicbor::{CborLen, Decode, Encode};

use crate::catalogue::Quotas;

#[cfg(doc)]
use crate::limits::BROWSER_KNOWN_MS;

/// A tenant's switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct Settings {
    /// What holds for a call that no rule matches.
    #[n(0)]
    pub default_effect: DefaultEffect,
    /// Whether a session may start with another role than its policy's; it then runs without the policy.
    #[n(1)]
    pub allow_foreign_role: bool,
    /// Where the effect was set; in a tenant's row set by the tenant, or by nobody.
    #[cbor(n(2), default)]
    pub default_set_in: DefaultSetIn,
    /// Whether approvers and escalation contacts that come from data or from the start are asked although the directory
    /// does not hold them.
    #[cbor(n(3), default)]
    pub any_approver_address: bool,
    /// How a decision page recognises the person whose link it is; `None`: as the server's configuration says.
    #[n(4)]
    pub link_auth: Option<LinkAuth>,
    /// How long a browser that recognised somebody stays known, milliseconds; `None`: [`BROWSER_KNOWN_MS`].
    #[n(5)]
    pub browser_known_ms: Option<u64>,
    /// How much it may take of what all tenants share.
    #[cbor(n(6), default, skip_if = "Quotas::is_empty")]
    pub quotas: Quotas,
}

/// How a decision page recognises the person whose link it is, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum LinkAuth {
    /// Everybody with the link is taken for the person that it was made for.
    #[n(0)]
    Link,
    /// A code is mailed to the person.
    #[n(1)]
    Code,
    /// The person signs in with an OpenID provider, whose verified address must be theirs.
    #[n(2)]
    Oidc,
}

impl LinkAuth {
    /// The public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Code => "code",
            Self::Oidc => "oidc",
        }
    }
}

impl Settings {
    /// Fills in the server configuration's value if the tenant sets none.
    #[must_use]
    pub fn or_configured(self, configured: Option<DefaultEffect>) -> Self {
        match (self.default_set_in, configured) {
            (DefaultSetIn::Source, Some(default_effect)) => {
                Self { default_effect, default_set_in: DefaultSetIn::Configuration, ..self }
            }
            (DefaultSetIn::Source, None)
            | (DefaultSetIn::Configuration | DefaultSetIn::Tenant | DefaultSetIn::Document, _) => self,
        }
    }
}

/// Where the effect of a call that no rule matches is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub enum DefaultSetIn {
    /// Nowhere: it is the format's default.
    #[default]
    #[n(0)]
    Source,
    /// In the server's configuration.
    #[n(1)]
    Configuration,
    /// In the tenant's switches.
    #[n(2)]
    Tenant,
    /// In the policy document.
    #[n(3)]
    Document,
}

/// What holds for a call that no rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub enum DefaultEffect {
    /// It is allowed, the format's default.
    #[default]
    #[n(0)]
    Allow,
    /// A person is asked.
    #[n(1)]
    Ask,
    /// It is denied.
    #[n(2)]
    Deny,
}
