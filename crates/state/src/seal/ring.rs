//! The key ring: the current key, and older ones that secrets may still be sealed under.

use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::Arc;

use minicbor::{CborLen, Decode, Encode};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

/// What the text of a key begins with.
const PREFIX: &str = "swm_";
/// The length of a key that the cipher requires, bytes.
const KEY_BYTES: usize = 32;
/// Bytes of a key's id.
const ID_BYTES: usize = 8;
/// What the id of a key is made over, before the key.
const ID_OF: &[u8] = b"switchward.ring.key.";

/// What a key of the ring is called: made of the key, so that no other key has it. Stored form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct RingKeyId(#[cbor(with = "minicbor::bytes")] [u8; ID_BYTES]);

/// A key that secrets are sealed under. Its text is `swm_`, its id, `_` and the key, both in hexadecimal digits.
#[derive(Clone)]
pub struct RingKey {
    id: RingKeyId,
    bytes: Zeroizing<[u8; KEY_BYTES]>,
}

/// The keys of a server, the current one first; cheap to clone.
#[derive(Clone, Default)]
pub struct KeyRing(Arc<Vec<RingKey>>);

/// The text is not a key of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRingKey;

impl fmt::Display for NoRingKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "is no key of a ring, or was changed: it is {PREFIX}, 16 hex digits, _, 64 hex digits")
    }
}

impl std::error::Error for NoRingKey {}

impl RingKeyId {
    fn of(key: &[u8; KEY_BYTES]) -> Self {
        let hash = Sha256::new().chain_update(ID_OF).chain_update(key).finalize();
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(&hash[..ID_BYTES]);
        Self(id)
    }
}

impl fmt::Display for RingKeyId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for RingKeyId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl FromStr for RingKeyId {
    type Err = NoRingKey;

    fn from_str(text: &str) -> Result<Self, NoRingKey> {
        Ok(Self(*digits::<ID_BYTES>(text)?))
    }
}

impl RingKey {
    /// The key of these bytes, which must be drawn.
    #[must_use]
    pub fn of(bytes: [u8; KEY_BYTES]) -> Self {
        Self { id: RingKeyId::of(&bytes), bytes: Zeroizing::new(bytes) }
    }

    /// What it is called.
    #[must_use]
    pub fn id(&self) -> RingKeyId {
        self.id
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.bytes
    }

    /// Its text, which is as secret as the key.
    #[must_use]
    pub fn reveal(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(2 * (ID_BYTES + KEY_BYTES) + 8));
        // Writing into a text cannot fail.
        let _ = write!(text, "{PREFIX}{}_", self.id);
        for byte in self.bytes.iter() {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

impl fmt::Debug for RingKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "RingKey({})", self.id)
    }
}

impl FromStr for RingKey {
    type Err = NoRingKey;

    fn from_str(text: &str) -> Result<Self, NoRingKey> {
        let (id, key) = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_')).ok_or(NoRingKey)?;
        let key = Self::of(*digits(key)?);
        if key.id.to_string() == id { Ok(key) } else { Err(NoRingKey) }
    }
}

/// Bytes in hexadecimal digits, in lower case alone.
fn digits<const BYTES: usize>(text: &str) -> Result<Zeroizing<[u8; BYTES]>, NoRingKey> {
    let lower = |digit: &u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(digit);
    if text.len() != 2 * BYTES || !text.as_bytes().iter().all(lower) {
        return Err(NoRingKey);
    }
    let mut bytes = Zeroizing::new([0; BYTES]);
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| NoRingKey)?;
    }
    Ok(bytes)
}

impl KeyRing {
    /// A ring of these keys, the current one first; without any, nothing can be sealed or opened.
    #[must_use]
    pub fn of(keys: Vec<RingKey>) -> Self {
        Self(Arc::new(keys))
    }

    /// The key that secrets are sealed under.
    #[must_use]
    pub fn current(&self) -> Option<&RingKey> {
        self.0.first()
    }

    /// The ids of its keys, the current one first.
    #[must_use]
    pub fn ids(&self) -> Vec<RingKeyId> {
        self.0.iter().map(RingKey::id).collect()
    }

    pub(crate) fn get(&self, id: RingKeyId) -> Option<&RingKey> {
        self.0.iter().find(|key| key.id == id)
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("KeyRing").field(&self.ids()).finish()
    }
}
