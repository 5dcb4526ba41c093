//! Sources of webhooks that come in.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Digest, TenantId, Time};
use zeroize::Zeroizing;

use crate::delivery::WebhookSourceKind;
use crate::seal::{KeyRing, Sealed, SecretOf};

#[cfg(doc)]
use crate::limits::MESSAGE_KNOWN_MS;

/// A source of webhooks: who may send, and which event of which session a message is. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct WebhookSource {
    /// Its name; never changes.
    #[n(0)]
    pub name: String,
    /// How it is authenticated; never changes.
    #[n(1)]
    pub kind: WebhookSourceKind,
    /// The secrets that it is verified with: the current one first, then the one before it while that is still valid.
    #[n(2)]
    pub secrets: Vec<SourceSecret>,
    /// Which event of which session a message is.
    #[n(3)]
    pub correlation: Correlation,
    /// How often it was changed.
    #[n(4)]
    pub revision: u64,
    /// When it was made.
    #[n(5)]
    pub created: Time,
    /// When it was last changed.
    #[n(6)]
    pub updated: Time,
}

/// A secret of a source or of an endpoint: a text, which codes are made with.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct SourceSecret {
    /// The secret, sealed for its owner.
    #[n(0)]
    pub sealed: Sealed,
    /// When it stops to be good; `None` if it is the current one.
    #[n(1)]
    pub until: Option<Time>,
}

/// Those of these secrets that are valid at this time, in their order, opened. One that cannot be opened is left out.
pub(crate) fn good(
    secrets: &[SourceSecret],
    ring: &KeyRing,
    tenant: TenantId,
    secret_of: SecretOf<'_>,
    now: Time,
) -> Vec<Zeroizing<String>> {
    let good = secrets.iter().filter(|secret| secret.until.is_none_or(|until| now < until));
    good.filter_map(|secret| ring.open_text(tenant, secret_of, &secret.sealed).ok()).collect()
}

/// Which event of which session a message is.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Correlation {
    /// The session's id or business key.
    #[n(0)]
    pub session: TextSource,
    /// The key of the event that is recorded.
    #[n(1)]
    pub event_key: TextSource,
    /// A JSON pointer to what the event brings; empty for the whole body.
    #[n(2)]
    pub data: String,
    /// How long a message is known again by what it signs, milliseconds, if its sender signs no time; `None`:
    /// [`MESSAGE_KNOWN_MS`].
    #[n(3)]
    pub known_ms: Option<u64>,
}

/// Where a text comes from.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum TextSource {
    /// The same in every message.
    #[n(0)]
    Fixed(#[n(0)] String),
    /// What a JSON pointer leads to in the body.
    #[n(1)]
    Pointer(#[n(0)] String),
}

impl WebhookSource {
    /// The secrets that are valid at this time, opened. One that cannot be opened is left out.
    #[must_use]
    pub fn good_secrets(&self, ring: &KeyRing, tenant: TenantId, now: Time) -> Vec<Zeroizing<String>> {
        good(&self.secrets, ring, tenant, SecretOf::Source(&self.name), now)
    }

    /// Its secrets, sealed, each with what it belongs to.
    pub fn sealed(&self) -> impl Iterator<Item = (SecretOf<'_>, &Sealed)> {
        self.secrets.iter().map(|secret| (SecretOf::Source(&self.name), &secret.sealed))
    }

    /// Stands for the source as it is now: 16 hexadecimal digits, others after every change. Reveals nothing of its
    /// secrets.
    #[must_use]
    pub fn etag(&self) -> String {
        let (revision, created) = (self.revision.to_be_bytes(), self.created.0.to_be_bytes());
        let digest = Digest::of_parts(&[self.name.as_bytes(), &revision, &created]);
        digest.0[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
