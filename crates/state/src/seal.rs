//! Secrets at rest: sealed when they enter the server, opened in memory when they are used.
//!
//! A secret is sealed with XChaCha20-Poly1305 under the current key of a key ring. Its tenant and its owner are bound to
//! it, so that it opens for nothing else, and it names its key, so that older ones can be replaced. Rows, events,
//! snapshots and backups hold what is sealed. Chosen: one ring for all tenants, from outside. Rejected: a key of each
//! tenant's own, sealed under the ring's; it would have to be kept beside what it seals, and tenants are bound to their
//! secrets anyway.

mod ring;

use std::fmt;

use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{Key as CipherKey, KeyInit as _, XChaCha20Poly1305, XNonce};
use minicbor::{CborLen, Decode, Encode};
use switchward_machine::TenantId;
use zeroize::Zeroizing;

pub use ring::{KeyRing, NoRingKey, RingKey, RingKeyId};

/// Bytes of a nonce, which is drawn for each secret.
pub const SEAL_NONCE_BYTES: usize = 24;
/// Bytes that a sealed secret is longer than the secret.
const TAG_BYTES: usize = 16;
/// What this way of sealing is called, in what is bound to a secret.
const FORM: &[u8] = b"switchward.sealed.1";

/// What a secret belongs to: it opens for nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretOf<'a> {
    /// What the tokens of a tenant are made with.
    Mail,
    /// What messages to the endpoint of this name are signed with.
    Endpoint(&'a str),
    /// What the source of webhooks of this name proves itself with.
    Source(&'a str),
}

/// A sealed secret. Stored form.
#[derive(Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Sealed {
    /// The key that it opens with.
    #[n(0)]
    pub key: RingKeyId,
    /// Drawn for it.
    #[cbor(n(1), with = "minicbor::bytes")]
    nonce: [u8; SEAL_NONCE_BYTES],
    /// The secret, encrypted, and the tag over it and all that is bound to it.
    #[cbor(n(2), with = "minicbor::bytes")]
    text: Vec<u8>,
}

/// A sealed secret cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotOpened {
    /// The key ring has not got its key.
    NoKey(RingKeyId),
    /// It is another tenant's or another owner's, or was changed.
    Foreign,
}

impl fmt::Display for NotOpened {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKey(key) => write!(out, "the key ring has no key {key}"),
            Self::Foreign => out.write_str("a sealed secret is not one of where it stands"),
        }
    }
}

impl std::error::Error for NotOpened {}

impl Sealed {
    /// The length of the text that was sealed, bytes.
    #[must_use]
    pub fn secret_bytes(&self) -> usize {
        self.text.len().saturating_sub(TAG_BYTES)
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Sealed({})", self.key)
    }
}

impl KeyRing {
    /// Seals a secret under the current key; `None` if there is none. The nonce must be drawn for it.
    #[must_use]
    pub fn seal(
        &self,
        nonce: [u8; SEAL_NONCE_BYTES],
        tenant: TenantId,
        secret_of: SecretOf<'_>,
        secret: &[u8],
    ) -> Option<Sealed> {
        let key = self.current()?;
        let payload = Payload { msg: secret, aad: &bound(tenant, secret_of) };
        let text = cipher(key).encrypt(&XNonce::from(nonce), payload).ok()?;
        Some(Sealed { key: key.id(), nonce, text })
    }

    /// Opens a secret.
    ///
    /// # Errors
    /// The ring has not got its key, or it is none of this tenant and owner.
    pub fn open(
        &self,
        tenant: TenantId,
        secret_of: SecretOf<'_>,
        sealed: &Sealed,
    ) -> Result<Zeroizing<Vec<u8>>, NotOpened> {
        let key = self.get(sealed.key).ok_or(NotOpened::NoKey(sealed.key))?;
        let payload = Payload { msg: &sealed.text, aad: &bound(tenant, secret_of) };
        let secret = cipher(key).decrypt(&XNonce::from(sealed.nonce), payload);
        secret.map(Zeroizing::new).map_err(|_| NotOpened::Foreign)
    }

    /// Opens a secret that is a text.
    ///
    /// # Errors
    /// As [`KeyRing::open`].
    pub fn open_text(
        &self,
        tenant: TenantId,
        secret_of: SecretOf<'_>,
        sealed: &Sealed,
    ) -> Result<Zeroizing<String>, NotOpened> {
        let bytes = self.open(tenant, secret_of, sealed)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| NotOpened::Foreign)?;
        Ok(Zeroizing::new(text.to_owned()))
    }
}

fn cipher(key: &RingKey) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&CipherKey::from(*key.bytes()))
}

/// What is bound to a secret: the form, the tenant and the owner. No owner's name holds the byte that ends it.
fn bound(tenant: TenantId, secret_of: SecretOf<'_>) -> Vec<u8> {
    let (kind, name) = match secret_of {
        SecretOf::Mail => ("mail", ""),
        SecretOf::Endpoint(name) => ("endpoint", name),
        SecretOf::Source(name) => ("source", name),
    };
    [FORM, &tenant.0.to_be_bytes(), kind.as_bytes(), b"/", name.as_bytes()].concat()
}

#[cfg(test)]
mod tests;
