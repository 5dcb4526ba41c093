//! The replies that a session remembers, so that a request that comes again is answered and not carried out again.
//!
//! The newest are listed in the session's row and point into its history. One that is still remembered when the list is
//! full gets a row of its own, which names the reply after it: so each reply is written at most once more, and the
//! oldest is found without a search. What is older than [`REPLIES_KEPT_MS`] is forgotten when others are added, a few
//! with each, so no step does more than a fixed amount of work for it.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::Time;

use crate::limits::{
    REPLIES_BYTES_MAX, REPLIES_BYTES_RESERVED, REPLIES_KEPT_MS, REPLIES_MAX, REPLIES_RESERVED,
};

/// The hash of a request id, see [`RequestId::hash`](crate::RequestId::hash).
type Hash = [u8; 16];

/// The replies of a session, oldest first. A part of its row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Replies {
    /// The newest, at most [`REPLIES_LISTED_MAX`](crate::limits::REPLIES_LISTED_MAX), oldest first.
    #[cbor(n(0), with = "remembered")]
    pub(super) listed: Vec<Remembered>,
    /// Those before them, which have rows of their own.
    #[n(1)]
    pub(super) chained: Option<Chained>,
    /// How many rows of replies the session has.
    #[cbor(n(2), default)]
    pub(super) rows: u32,
    /// How often a sweep has forgotten some of them after the session's end.
    #[cbor(n(3), default)]
    pub(super) sweeps: u32,
    /// Bytes of the rows of replies, as they are stored.
    #[cbor(n(4), default)]
    pub(super) bytes: u64,
}

/// Replies with rows of their own, each of which names the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Chained {
    /// The request id of the oldest.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub first: Hash,
    /// When the oldest was given.
    #[n(1)]
    pub at: Time,
    /// How many they are; at least 1.
    #[n(2)]
    pub count: u32,
}

/// A reply that is listed in its session's row. Stored form: 32 bytes of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// Of the request id.
    pub hash: Hash,
    /// When the reply was given.
    pub at: Time,
    /// The sequence of the first event of what the command did, which is the key of its history; `None` if it did
    /// nothing: then the reply has a row of its own.
    pub sequence: Option<u64>,
}

impl Replies {
    /// The newest, oldest first.
    #[must_use]
    pub fn listed(&self) -> &[Remembered] {
        &self.listed
    }

    /// Those before them; `None` if all are listed.
    #[must_use]
    pub fn chained(&self) -> Option<&Chained> {
        self.chained.as_ref()
    }

    /// How many rows of replies the session has; 0 if it certainly has none.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Bytes of the rows of replies, as they are stored; a part of [`Session::bytes`](super::Session::bytes).
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns true if the rows of replies take all bytes but the reserves.
    pub(super) fn is_long(&self) -> bool {
        self.bytes >= Reserve::None.bytes_max()
    }

    /// How often a sweep has forgotten some of them after the session's end.
    #[must_use]
    pub fn sweeps(&self) -> u32 {
        self.sweeps
    }

    /// Returns true if no reply is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.chained.is_none()
    }

    /// How many are remembered.
    #[must_use]
    pub fn count(&self) -> usize {
        let chained = self.chained.map_or(0, |chained| chained.count);
        self.listed.len().saturating_add(usize::try_from(chained).unwrap_or(usize::MAX))
    }

    /// When the oldest was given.
    #[must_use]
    pub fn oldest(&self) -> Option<Time> {
        self.chained.map(|chained| chained.at).or_else(|| self.listed.first().map(|first| first.at))
    }

    /// How long a command must wait until its reply can be remembered, milliseconds; `None` if it can be remembered now.
    #[must_use]
    pub fn full_for_ms(&self, now: Time, reserve: Reserve) -> Option<u64> {
        let full = self.count() >= reserve.count_max() || self.bytes >= reserve.bytes_max();
        let oldest = self.oldest().filter(|_| full)?;
        REPLIES_KEPT_MS.checked_sub(now.since_ms(oldest)).filter(|left| *left > 0)
    }
}

/// Which of the capacity that is reserved a command may use. Whatever a program sends, the people of a session can stop it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserve {
    /// None of it: a program begins something.
    None,
    /// The reserve for programs that end something, such as work that they hold.
    Ends,
    /// Both that and the reserve for people: those who decide, operators and admins, by whatever way they come.
    People,
}

impl Reserve {
    /// How many reserves the command leaves.
    fn left(self) -> u8 {
        match self {
            Self::None => 2,
            Self::Ends => 1,
            Self::People => 0,
        }
    }

    fn count_max(self) -> usize {
        REPLIES_MAX - usize::from(self.left()) * REPLIES_RESERVED
    }

    fn bytes_max(self) -> u64 {
        REPLIES_BYTES_MAX - u64::from(self.left()) * REPLIES_BYTES_RESERVED
    }
}

/// Listed replies, as one byte string.
mod remembered {
    use minicbor::decode::Error as DecodeError;
    use minicbor::encode::{Error as EncodeError, Write};
    use minicbor::{Decoder, Encoder};
    use switchward_machine::Time;

    use super::Remembered;

    const HASH_BYTES: usize = 16;
    const ENTRY_BYTES: usize = HASH_BYTES + 8 + 8;
    /// Stands for a reply that has a row of its own: no session has that many events.
    const NOT_IN_HISTORY: u64 = u64::MAX;

    pub(crate) fn encode<C, W: Write>(
        list: &[Remembered],
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        let mut bytes = Vec::with_capacity(list.len() * ENTRY_BYTES);
        for entry in list {
            bytes.extend_from_slice(&entry.hash);
            bytes.extend_from_slice(&entry.at.0.to_be_bytes());
            bytes.extend_from_slice(&entry.sequence.unwrap_or(NOT_IN_HISTORY).to_be_bytes());
        }
        e.bytes(&bytes)?.ok()
    }

    pub(crate) fn decode<C>(d: &mut Decoder<'_>, _: &mut C) -> Result<Vec<Remembered>, DecodeError> {
        let (list, rest) = d.bytes()?.as_chunks::<ENTRY_BYTES>();
        if !rest.is_empty() {
            return Err(DecodeError::message("a remembered request id is cut short"));
        }
        Ok(list.iter().map(entry).collect())
    }

    fn entry(bytes: &[u8; ENTRY_BYTES]) -> Remembered {
        let (mut hash, mut at, mut sequence) = ([0; HASH_BYTES], [0; 8], [0; 8]);
        hash.copy_from_slice(&bytes[..HASH_BYTES]);
        at.copy_from_slice(&bytes[HASH_BYTES..HASH_BYTES + 8]);
        sequence.copy_from_slice(&bytes[HASH_BYTES + 8..]);
        let sequence = Some(u64::from_be_bytes(sequence)).filter(|sequence| *sequence != NOT_IN_HISTORY);
        Remembered { hash, at: Time(u64::from_be_bytes(at)), sequence }
    }

    pub(crate) fn cbor_len<C>(list: &[Remembered], ctx: &mut C) -> usize {
        let len = list.len() * ENTRY_BYTES;
        minicbor::CborLen::cbor_len(&len, ctx) + len
    }
}
