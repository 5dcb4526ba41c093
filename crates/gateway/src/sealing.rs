//! The entry point of secrets: each is sealed before anything of it is stored.

use switchward_machine::TenantId;
use switchward_state::approval::MailKey;
use switchward_state::seal::{KeyRing, Sealed, SecretOf};

use crate::error::{Reason, Refusal};

/// Draws and seals the key for the tokens of a tenant; `None` if the ring has no key.
#[must_use]
pub fn mail_key(ring: &KeyRing, tenant: TenantId) -> Option<Sealed> {
    MailKey(rand::random()).sealed(ring, tenant, rand::random())
}

/// Seals a secret text for its purpose; `None` if the ring has no key.
#[must_use]
pub fn text(ring: &KeyRing, tenant: TenantId, secret_of: SecretOf<'_>, text: &str) -> Option<Sealed> {
    ring.seal(rand::random(), tenant, secret_of, text.as_bytes())
}

/// The refusal of a secret that cannot be sealed, because there is no key ring.
pub(crate) fn no_ring() -> Refusal {
    let message = "this server has no key ring and stores no secrets; its operator creates one with `switchward \
                   secrets create FILE` and sets keys_file";
    Refusal::new(Reason::KeyRingMissing, message)
}
