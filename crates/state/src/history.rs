//! The history of a session: what each of its commands did, and what it was answered.

use minicbor::encode::{Error as EncodeError, Write};
use minicbor::{CborLen, Decode, Decoder, Encode, Encoder};
use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;
use switchward_machine::{Digest, Time};

use crate::memory::{InMemory, ROW_BYTES};
use crate::{Actor, Event, Reply, TurnRecord};

/// What one command did to its session, under the sequence of its first event. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct History {
    /// When.
    #[n(0)]
    pub at: Time,
    /// The caller of the command, with its role then.
    #[n(1)]
    pub by: Actor,
    /// Under which request id.
    #[n(2)]
    pub request: Option<String>,
    /// What happened, in order.
    #[n(3)]
    pub events: Vec<Event>,
    /// What the request id was answered with, so that the same request is answered with it again.
    #[n(4)]
    pub answered: Option<Answered>,
}

/// The reply to a request. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Answered {
    /// Of the body that came with the id.
    #[n(0)]
    pub body: Digest,
    /// What the caller was answered with.
    #[n(1)]
    pub reply: Reply,
}

/// [`History`] with borrowed fields, to write: the same bytes.
#[derive(Encode)]
struct Written<'a> {
    #[n(0)]
    at: Time,
    #[n(1)]
    by: &'a Actor,
    #[n(2)]
    request: Option<&'a str>,
    #[n(3)]
    events: &'a [Event],
    #[n(4)]
    answered: Option<WrittenAnswer<'a>>,
}

/// [`Answered`] with borrowed fields.
#[derive(Encode)]
struct WrittenAnswer<'a> {
    #[n(0)]
    body: Digest,
    #[n(1)]
    reply: &'a Reply,
}

/// A part of a history in its row. A command writes it as bytes, and few read it afterwards: its fields are decoded when
/// somebody asks for them.
#[derive(Clone)]
pub struct StoredHistory {
    /// What [`History`] is encoded as; `None` if it was made from the fields.
    bytes: Option<Vec<u8>>,
    fields: OnceLock<Box<History>>,
}

/// The usual length of a part, bytes: enough for most without a second allocation.
const BYTES_USUAL: usize = 512;

impl StoredHistory {
    /// What a turn at this time leaves.
    pub(crate) fn of(turn: &TurnRecord, at: Time) -> Self {
        let request = turn.request.as_ref();
        let written = Written {
            at,
            by: &turn.by,
            request: request.map(|(id, _)| id.as_str()),
            events: &turn.events,
            answered: request.map(|(_, body)| WrittenAnswer { body: *body, reply: &turn.reply }),
        };
        Self { bytes: Some(bytes_of(&written)), fields: OnceLock::new() }
    }

    /// The head of a session's history once this is added. Nothing can be taken out of a history, changed or moved in
    /// it without another head.
    #[must_use]
    pub fn link(&self, head: Digest) -> Digest {
        match &self.bytes {
            Some(bytes) => Digest::of_parts(&[&head.0, bytes]),
            None => Digest::of_parts(&[&head.0, &bytes_of(&**self)]),
        }
    }

    /// How many bytes this has as it is stored.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::try_from(minicbor::len(self)).unwrap_or(u64::MAX)
    }
}

fn bytes_of(history: &impl Encode<()>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BYTES_USUAL);
    minicbor::encode(history, &mut bytes).expect("encoding into memory cannot fail");
    // The usual capacity is not given back: that would move the bytes of nearly every part for little.
    if bytes.capacity() > BYTES_USUAL {
        bytes.shrink_to_fit();
    }
    bytes
}

impl InMemory for StoredHistory {
    fn cached(&self) -> bool {
        false
    }

    fn structure_bytes(&self) -> usize {
        // Bytes with their free capacity, and beside them the fields if somebody reads them before they are on disk.
        let capacity = self.bytes.as_ref().map_or(0, Vec::capacity);
        ROW_BYTES + capacity.max(self.text_bytes())
    }
}

impl From<History> for StoredHistory {
    fn from(history: History) -> Self {
        Self { bytes: None, fields: OnceLock::from(Box::new(history)) }
    }
}

impl Deref for StoredHistory {
    type Target = History;

    fn deref(&self) -> &History {
        self.fields.get_or_init(|| {
            let bytes = self.bytes.as_deref().unwrap_or_default();
            Box::new(minicbor::decode(bytes).expect("these bytes were encoded by this process"))
        })
    }
}

impl PartialEq for StoredHistory {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for StoredHistory {}

impl fmt::Debug for StoredHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<C> Encode<C> for StoredHistory {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, ctx: &mut C) -> Result<(), EncodeError<W::Error>> {
        match &self.bytes {
            Some(bytes) => e.writer_mut().write_all(bytes).map_err(EncodeError::write),
            None => (**self).encode(e, ctx),
        }
    }
}

impl<'b, C> Decode<'b, C> for StoredHistory {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Self, minicbor::decode::Error> {
        History::decode(d, ctx).map(Self::from)
    }
}

impl<C> CborLen<C> for StoredHistory {
    fn cbor_len(&self, ctx: &mut C) -> usize {
        match &self.bytes {
            Some(bytes) => bytes.len(),
            None => (**self).cbor_len(ctx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scope;
    use switchward_machine::TenantId;

    #[test]
    fn a_short_part_weighs_its_free_capacity_and_a_long_one_has_none() {
        for length in [8, 2 * BYTES_USUAL] {
            let turn = TurnRecord {
                tenant: TenantId(1),
                scope: Scope::Shard,
                by: Actor::server(),
                request: Some(("i".repeat(length), Digest([7; 32]))),
                reply: Reply::Done,
                events: Vec::new(),
            };
            let part = StoredHistory::of(&turn, Time(1));
            let bytes = part.bytes.as_ref().unwrap();
            assert_eq!(bytes.capacity(), bytes.len().max(BYTES_USUAL));
            assert!(part.structure_bytes() >= ROW_BYTES + bytes.capacity());
        }
    }
}
