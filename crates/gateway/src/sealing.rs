//! Where secrets enter the server: each is sealed before anything of it is written down.

use switchward_engine::{KeyRing, MailKey, Sealed, SecretOf, SourceSecret};
use switchward_machine::TenantId;

use crate::error::{Reason, Refusal};

/// What the tokens of a tenant are made with, drawn and sealed; `None` where the ring has no key.
#[must_use]
pub fn mail_key(ring: &KeyRing, tenant: TenantId) -> Option<Sealed> {
    MailKey(rand::random()).sealed(ring, tenant, rand::random())
}

/// A text that is a secret, sealed for where it belongs; `None` where the ring has no key.
#[must_use]
pub fn text(ring: &KeyRing, of: (TenantId, SecretOf<'_>), text: &str) -> Option<Sealed> {
    ring.seal(rand::random(), of, text.as_bytes())
}

/// The refusal of a secret that nothing can seal.
pub(crate) fn no_ring() -> Refusal {
    let message = "this server has no key ring, so it keeps no secret; whoever runs it makes one with `switchward secrets \
                   create FILE`, and says keys_file";
    Refusal::new(Reason::KeyRingMissing, message)
}

/// Whether this is the newest of these secrets. Sealed once, a secret is never sealed to the same bytes again.
pub(crate) fn is_newest(secrets: &[SourceSecret], sealed: &Sealed) -> bool {
    secrets.first().is_some_and(|newest| newest.sealed == *sealed)
}
