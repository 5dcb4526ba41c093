//! Identifiers: newtypes with a printed prefix, and the digests and buckets that route them.

use minicbor::{CborLen, Decode, Encode};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

use crate::limits::BUCKETS;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
        #[cbor(transparent)]
        pub struct $name(#[n(0)] pub $int);
    };
}

index!(
    /// Position of a node in [`crate::Machine::nodes`].
    NodeIx, u32);
index!(
    /// Position of an act in [`crate::Node::acts`].
    ActIx, u16);
index!(
    /// Position of an exit in [`crate::Node::exits`].
    ExitIx, u16);
index!(
    /// Position of a gate spec in [`crate::Machine::gates`].
    GateIx, u16);
index!(
    /// Position of a parameter in [`crate::Machine::params`].
    ParamIx, u16);
index!(
    /// Position of a callee in [`crate::Machine::callees`].
    CalleeIx, u16);
index!(
    /// A run inside its session; 1 is the first root run.
    RunId, u32);
index!(
    /// An open item (gate, and later work, wait, timer) inside its session; drawn from the session's `next_id`.
    OpenId, u64);
index!(
    /// A tenant's number, given by the catalogue when the tenant is created. Part of every key.
    TenantId, u32);

/// One of [`BUCKETS`] slices of sessions and ledgers; a shard owns whole buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct Bucket(#[n(0)] u16);

impl Bucket {
    /// The bucket whose number is the first twelve bits of `bytes`.
    #[must_use]
    pub fn of(bytes: [u8; 2]) -> Self {
        Self(u16::from_be_bytes(bytes) >> 4)
    }

    /// The bucket of that number, or nothing at or above [`BUCKETS`].
    #[must_use]
    pub fn new(number: u16) -> Option<Self> {
        (number < BUCKETS).then_some(Self(number))
    }

    /// The number, `0..BUCKETS`.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }
}

/// SHA-256 of some canonical bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct Digest(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 32]);

impl Digest {
    /// The SHA-256 digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of several parts, each with its length, so that no two lists of parts collide.
    #[must_use]
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Writes a text at once; a width that was asked for is ignored.
fn write_ascii(f: &mut fmt::Formatter<'_>, text: &[u8]) -> fmt::Result {
    f.write_str(std::str::from_utf8(text).map_err(|_| fmt::Error)?)
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0u8; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 15)];
        }
        write_ascii(f, &digits)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Digest {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let bytes = text.as_bytes();
        if bytes.len() != 64 {
            return Err(IdError);
        }
        let mut out = [0u8; 32];
        for (slot, pair) in out.iter_mut().zip(bytes.chunks_exact(2)) {
            *slot = hex(pair[0])? << 4 | hex(pair[1])?;
        }
        Ok(Self(out))
    }
}

fn hex(byte: u8) -> Result<u8, IdError> {
    match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        _ => Err(IdError),
    }
}

/// A session: 128 bits, whose first twelve are its bucket. Printed `ses_` and 26 characters of Crockford's base 32.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct SessionId(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 16]);

impl SessionId {
    /// The session of this key in this tenant; the same through every gateway.
    #[must_use]
    pub fn from_key(tenant: TenantId, key: &str) -> Self {
        Self::derive(tenant, b"key", key)
    }

    /// The session that a start with this request id makes in this tenant, if no key is given.
    #[must_use]
    pub fn from_request(tenant: TenantId, request_id: &str) -> Self {
        Self::derive(tenant, b"request", request_id)
    }

    fn derive(tenant: TenantId, kind: &[u8], text: &str) -> Self {
        let digest = Digest::of_parts(&[b"session", &tenant.0.to_be_bytes(), kind, text.as_bytes()]);
        let mut id = [0u8; 16];
        id.copy_from_slice(&digest.0[..16]);
        Self(id)
    }

    /// The bucket that the session and all its children live in.
    #[must_use]
    pub fn bucket(self) -> Bucket {
        Bucket::of([self.0[0], self.0[1]])
    }
}

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const SESSION_PREFIX: &str = "ses_";
/// Digits of five bits; the first one holds the top three bits alone.
const SESSION_DIGITS: usize = 26;
/// What [`DIGITS`] has for a byte that is not in the alphabet.
const NO_DIGIT: u8 = u8::MAX;
/// The value of each byte as a digit.
static DIGITS: [u8; 256] = digits();

const fn digits() -> [u8; 256] {
    let mut digits = [NO_DIGIT; 256];
    let mut value = 0u8;
    while value < 32 {
        digits[ALPHABET[value as usize] as usize] = value;
        value += 1;
    }
    digits
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0u8; SESSION_PREFIX.len() + SESSION_DIGITS];
        let (prefix, digits) = text.split_at_mut(SESSION_PREFIX.len());
        prefix.copy_from_slice(SESSION_PREFIX.as_bytes());
        let mut left = u128::from_be_bytes(self.0);
        for digit in digits.iter_mut().rev() {
            *digit = ALPHABET[(left & 31) as usize];
            left >>= 5;
        }
        write_ascii(f, &text)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for SessionId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let digits = text.strip_prefix(SESSION_PREFIX).ok_or(IdError)?.as_bytes();
        if digits.len() != SESSION_DIGITS || digits[0] > b'7' {
            return Err(IdError);
        }
        let mut value = 0u128;
        for byte in digits {
            let five = DIGITS[usize::from(*byte)];
            if five == NO_DIGIT {
                return Err(IdError);
            }
            value = value << 5 | u128::from(five);
        }
        Ok(Self(value.to_be_bytes()))
    }
}

/// The text is no identifier of the kind that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an identifier of this kind")]
pub struct IdError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_printed_and_read_back() {
        let id = SessionId::from_key(TenantId(7), "release-42");
        assert_eq!(id.to_string().len(), 30);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_ne!(id, SessionId::from_key(TenantId(8), "release-42"));
        assert_ne!(id, SessionId::from_request(TenantId(7), "release-42"));
    }

    #[test]
    fn each_bit_of_a_session_id_is_in_its_text() {
        for (bits, text) in [
            (0, "ses_00000000000000000000000000"),
            (1, "ses_00000000000000000000000001"),
            (u128::MAX, "ses_7zzzzzzzzzzzzzzzzzzzzzzzzz"),
            (0x0123_4567_89ab_cdef_0123_4567_89ab_cdef, "ses_014d2pf2dbsqqg28t5cy4tqkff"),
        ] {
            let id = SessionId(u128::to_be_bytes(bits));
            assert_eq!(format!("{id:40}"), text, "it is not padded");
            assert_eq!(text.parse(), Ok(id));
        }
    }

    #[test]
    fn only_the_bytes_of_the_alphabet_are_digits() {
        for byte in 0..=u8::MAX {
            let text = format!("ses_{}{}", "0".repeat(25), char::from(byte));
            let value = ALPHABET.iter().position(|digit| *digit == byte);
            let id = value.map(|value| SessionId((value as u128).to_be_bytes()));
            assert_eq!(text.parse::<SessionId>().ok(), id, "{text}");
        }
    }

    #[test]
    fn foreign_texts_are_no_session_ids() {
        for text in ["", "ses_", "ses_zzzzzzzzzzzzzzzzzzzzzzzzzz", "ses_0000000000000000000000000u", "mch_0"]
        {
            assert_eq!(text.parse::<SessionId>(), Err(IdError), "{text}");
        }
    }

    #[test]
    fn the_bucket_is_the_first_twelve_bits() {
        let mut id = [0u8; 16];
        id[0] = 0xff;
        id[1] = 0xf7;
        assert_eq!(SessionId(id).bucket().number(), BUCKETS - 1);
    }

    #[test]
    fn a_digest_is_printed_and_read_back() {
        let digest = Digest::of(b"abc");
        assert!(digest.to_string().starts_with("ba7816bf"));
        assert_eq!(digest.to_string().parse(), Ok(digest));
    }
}
