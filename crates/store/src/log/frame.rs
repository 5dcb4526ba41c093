//! The form of a segment file of the log. All numbers are little-endian.
//!
//! ```text
//! head       magic "SWLOG" 0 0 1 (8)  number (8)  salt (8)  checksum of the 24 bytes before (8)
//! batches    as many as were written, without a gap
//! zeros      up to the end of the file
//!
//! batch      the first bytes of the salt (4)  length of the body (4)  sequence (8)
//!            checksum of the 16 bytes before and the body, seeded with the salt (8)  body
//! body       operations, without a gap
//! operation  kind (1)  group (8)  index (8)  length of the bytes (4)
//!            checksum of the 21 bytes before and the bytes, seeded with the salt (8)  bytes
//! ```
//!
//! The salt is random for each segment, so that bytes of a caller never pass for a batch, nor for the beginning of one. The
//! sequence number of a batch is one more than that of the batch before it, across segments. The first batch of a segment
//! begins with the metas of all groups, so that no older segment is needed for them.

use super::{GroupId, LogRecord, Meta};
use crate::StoreError;
use bytes::Bytes;
use std::{ops::RangeInclusive, path::Path};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The last byte is the version of the form.
const SEGMENT_MAGIC: [u8; 8] = *b"SWLOG\0\0\x01";
/// Length of what a batch begins with, bytes.
const MARK_BYTES: usize = 4;
/// Length of a segment's head, before its first batch, bytes.
pub(super) const SEGMENT_HEAD_BYTES: usize = 32;
/// Length of a batch's head, before its body, bytes.
pub(super) const BATCH_HEAD_BYTES: usize = 24;
/// Length of an operation's head, before its bytes, bytes.
pub(crate) const OPERATION_HEAD_BYTES: usize = 29;

const KIND_RECORD: u8 = 16;
const KIND_REMOVE: u8 = 17;

/// What a segment's file begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHead {
    pub(super) number: u64,
    pub(super) salt: u64,
}

impl SegmentHead {
    pub(super) fn encode(self) -> [u8; SEGMENT_HEAD_BYTES] {
        let mut head = [0; SEGMENT_HEAD_BYTES];
        head[..8].copy_from_slice(&SEGMENT_MAGIC);
        head[8..16].copy_from_slice(&self.number.to_le_bytes());
        head[16..24].copy_from_slice(&self.salt.to_le_bytes());
        let checksum = xxh3_64_with_seed(&head[..24], 0);
        head[24..].copy_from_slice(&checksum.to_le_bytes());
        head
    }

    /// Returns `None` unless the bytes begin with a head as it was written.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let head = bytes.first_chunk::<SEGMENT_HEAD_BYTES>()?;
        let found = Self { number: number(&head[8..16]), salt: number(&head[16..24]) };
        (found.encode() == *head).then_some(found)
    }
}

/// The effect of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Meta(Meta, Bytes),
    /// A record, which replaces one with the same index.
    Record {
        index: u64,
        at: At,
    },
    Remove(RangeInclusive<u64>),
}

/// The position of an operation in a segment, with its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    /// Bytes from the beginning of the segment.
    pub(super) offset: u32,
    /// Bytes of the operation without its head.
    pub(super) bytes: u32,
}

/// A batch that is being assembled for a segment.
pub(super) struct BatchBuilder {
    salt: u64,
    /// The offset in the segment at which it begins.
    offset: u64,
    buffer: Vec<u8>,
    changes: Vec<(GroupId, Change)>,
}

impl BatchBuilder {
    /// Begins a batch at an offset of a segment. Reuses the allocation of `buffer`.
    pub(super) fn new(salt: u64, offset: u64, mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        buffer.resize(BATCH_HEAD_BYTES, 0);
        Self { salt, offset, buffer, changes: Vec::new() }
    }

    pub(super) fn meta(&mut self, group: GroupId, slot: Meta, bytes: Bytes) {
        self.push(slot.kind(), group, 0, &bytes);
        self.changes.push((group, Change::Meta(slot, bytes)));
    }

    pub(super) fn record(&mut self, group: GroupId, record: &LogRecord) {
        let at = self.push(KIND_RECORD, group, record.index, &record.bytes);
        self.changes.push((group, Change::Record { index: record.index, at }));
    }

    pub(super) fn remove(&mut self, group: GroupId, indexes: RangeInclusive<u64>) {
        self.push(KIND_REMOVE, group, *indexes.start(), &indexes.end().to_le_bytes());
        self.changes.push((group, Change::Remove(indexes)));
    }

    fn push(&mut self, kind: u8, group: GroupId, index: u64, bytes: &[u8]) -> At {
        let start = self.buffer.len();
        let head = operation_head(kind, group, index, narrow(bytes.len()));
        self.buffer.extend_from_slice(&head);
        self.buffer.extend_from_slice(&operation_checksum(self.salt, &head, bytes).to_le_bytes());
        self.buffer.extend_from_slice(bytes);
        At { offset: narrow(start) + narrow_offset(self.offset), bytes: narrow(bytes.len()) }
    }

    /// Completes the batch. Returns the bytes to write.
    pub(super) fn finish(&mut self, sequence: u64) -> &[u8] {
        let body = narrow(self.buffer.len() - BATCH_HEAD_BYTES);
        self.buffer[..MARK_BYTES].copy_from_slice(&mark(self.salt));
        self.buffer[4..8].copy_from_slice(&body.to_le_bytes());
        self.buffer[8..16].copy_from_slice(&sequence.to_le_bytes());
        let checksum = batch_checksum(self.salt, &self.buffer);
        self.buffer[16..BATCH_HEAD_BYTES].copy_from_slice(&checksum.to_le_bytes());
        &self.buffer
    }

    /// Its changes, and its buffer.
    pub(super) fn into_parts(self) -> (Vec<(GroupId, Change)>, Vec<u8>) {
        (self.changes, self.buffer)
    }
}

/// A batch as it was read.
pub(super) struct Batch<'a> {
    pub(super) sequence: u64,
    /// Its bytes, with its head.
    bytes: &'a [u8],
    offset: usize,
    salt: u64,
}

impl<'a> Batch<'a> {
    /// Returns the batch at an offset of a segment; `None` if there is none, or it is not as it was written.
    pub(super) fn at(segment: &'a [u8], salt: u64, offset: usize) -> Option<Self> {
        let rest = segment.get(offset..)?;
        let head = rest.first_chunk::<BATCH_HEAD_BYTES>()?;
        if head[..MARK_BYTES] != mark(salt) {
            return None;
        }
        let body = u32::from_le_bytes(head[4..8].try_into().ok()?);
        let bytes = rest.get(..BATCH_HEAD_BYTES + usize::try_from(body).ok()?)?;
        let whole = number(&head[16..]) == batch_checksum(salt, bytes);
        whole.then(|| Self { sequence: number(&head[8..16]), bytes, offset, salt })
    }

    /// Returns the first whole batch after an offset.
    pub(super) fn after(segment: &'a [u8], salt: u64, offset: usize) -> Option<Self> {
        let rest = segment.get(offset + 1..)?;
        let mark = mark(salt);
        let candidates = rest.windows(MARK_BYTES).enumerate().filter(|(_, window)| **window == mark);
        candidates.map(|(at, _)| offset + 1 + at).find_map(|at| Self::at(segment, salt, at))
    }

    /// Its length with its head, bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Its operations; `path` is the segment's.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if they are not what this program writes.
    pub(super) fn changes(&self, path: &Path) -> Result<Vec<(GroupId, Change)>, StoreError> {
        let mut changes = Vec::new();
        let mut start = BATCH_HEAD_BYTES;
        while start < self.bytes.len() {
            let unknown = || {
                let (at, path) = (self.offset + start, path.display());
                StoreError::damaged("log", format!("the operation at byte {at} of {path} is unknown"))
            };
            let (operation, bytes) = Operation::at(&self.bytes[start..], self.salt).ok_or_else(unknown)?;
            let at = At { offset: narrow_offset((self.offset + start) as u64), bytes: narrow(bytes.len()) };
            let change = operation.change(at, bytes).ok_or_else(unknown)?;
            changes.push((operation.group, change));
            start += OPERATION_HEAD_BYTES + bytes.len();
        }
        Ok(changes)
    }
}

/// The head of an operation.
pub(super) struct Operation {
    kind: u8,
    pub(super) group: GroupId,
    pub(super) index: u64,
}

impl Operation {
    /// Returns the operation that the bytes begin with, and its own bytes; `None` if it is not as it was written.
    pub(super) fn at(stored: &[u8], salt: u64) -> Option<(Self, &[u8])> {
        let (head, rest) = stored.split_at_checked(OPERATION_HEAD_BYTES)?;
        let (head, checksum) = head.split_at(OPERATION_HEAD_BYTES - 8);
        let length = u32::from_le_bytes(head[17..21].try_into().ok()?);
        let bytes = rest.get(..usize::try_from(length).ok()?)?;
        if number(checksum) != operation_checksum(salt, head, bytes) {
            return None;
        }
        let group = GroupId(number(&head[1..9]));
        Some((Self { kind: head[0], group, index: number(&head[9..17]) }, bytes))
    }

    pub(super) fn is_record(&self) -> bool {
        self.kind == KIND_RECORD
    }

    fn change(&self, at: At, bytes: &[u8]) -> Option<Change> {
        match self.kind {
            KIND_RECORD => Some(Change::Record { index: self.index, at }),
            KIND_REMOVE => {
                let end = u64::from_le_bytes(bytes.try_into().ok()?);
                Some(Change::Remove(self.index..=end))
            }
            kind => {
                let slot = Meta::ALL.into_iter().find(|slot| slot.kind() == kind)?;
                Some(Change::Meta(slot, Bytes::copy_from_slice(bytes)))
            }
        }
    }
}

impl Meta {
    pub(super) const ALL: [Meta; 3] = [Meta::Vote, Meta::Committed, Meta::Purged];

    /// Its kind in an operation; stored, so never to be changed.
    pub(super) fn kind(self) -> u8 {
        match self {
            Meta::Vote => 0,
            Meta::Committed => 1,
            Meta::Purged => 2,
        }
    }
}

/// The first bytes of a segment's batches: never zeros, which follow the last one.
fn mark(salt: u64) -> [u8; MARK_BYTES] {
    let [first, second, third, fourth, ..] = salt.to_le_bytes();
    [first | 1, second, third, fourth]
}

fn operation_head(kind: u8, group: GroupId, index: u64, bytes: u32) -> [u8; OPERATION_HEAD_BYTES - 8] {
    let mut head = [0; OPERATION_HEAD_BYTES - 8];
    head[0] = kind;
    head[1..9].copy_from_slice(&group.0.to_le_bytes());
    head[9..17].copy_from_slice(&index.to_le_bytes());
    head[17..].copy_from_slice(&bytes.to_le_bytes());
    head
}

fn operation_checksum(salt: u64, head: &[u8], bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, xxh3_64_with_seed(head, salt))
}

fn batch_checksum(salt: u64, batch: &[u8]) -> u64 {
    xxh3_64_with_seed(&batch[BATCH_HEAD_BYTES..], xxh3_64_with_seed(&batch[..16], salt))
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("the caller gives eight bytes"))
}

fn narrow(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a batch is bounded by the limits of the queue and of a record")
}

fn narrow_offset(offset: u64) -> u32 {
    u32::try_from(offset).expect("a segment is bounded by the limits of a batch")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: GroupId = GroupId(7);
    const SALT: u64 = 0x0123_4567_89ab_cdef;

    /// A segment of one batch with an operation of each kind.
    fn segment() -> Vec<u8> {
        let mut segment = SegmentHead { number: 258, salt: SALT }.encode().to_vec();
        let mut batch = BatchBuilder::new(SALT, segment.len() as u64, Vec::new());
        batch.meta(GROUP, Meta::Vote, Bytes::from_static(b"vote"));
        batch.record(GROUP, &LogRecord { index: 258, bytes: Bytes::from_static(b"record") });
        batch.remove(GROUP, 3..=257);
        segment.extend_from_slice(batch.finish(65_537));
        segment
    }

    #[test]
    fn a_segment_is_stored_as_it_always_was() {
        let hex: String = segment().iter().map(|byte| format!("{byte:02x}")).collect();
        let golden = include_str!("../../tests/golden/log_segment.v1.hex");
        assert_eq!(hex, golden.trim(), "a stored form has changed: old data folders could not be read");
    }

    #[test]
    fn a_batch_is_read_as_it_was_written() {
        let segment = segment();
        assert_eq!(SegmentHead::decode(&segment), Some(SegmentHead { number: 258, salt: SALT }));
        let batch = Batch::at(&segment, SALT, SEGMENT_HEAD_BYTES).unwrap();
        assert_eq!((batch.sequence, batch.len()), (65_537, segment.len() - SEGMENT_HEAD_BYTES));
        let at = At { offset: 32 + 24 + 29 + 4, bytes: 6 };
        let expected = [
            (GROUP, Change::Meta(Meta::Vote, Bytes::from_static(b"vote"))),
            (GROUP, Change::Record { index: 258, at }),
            (GROUP, Change::Remove(3..=257)),
        ];
        assert_eq!(batch.changes(Path::new("1.log")).unwrap(), expected);
        let (record, bytes) = Operation::at(&segment[at.offset as usize..], SALT).unwrap();
        assert_eq!((record.is_record(), record.index, bytes), (true, 258, &b"record"[..]));
    }

    #[test]
    fn no_changed_byte_is_read() {
        let whole = segment();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            let head = SegmentHead::decode(&changed);
            assert!(head.is_none() || Batch::at(&changed, SALT, SEGMENT_HEAD_BYTES).is_none(), "byte {at}");
        }
        for length in 0..whole.len() {
            assert!(Batch::at(&whole[..length], SALT, SEGMENT_HEAD_BYTES).is_none(), "{length} bytes");
        }
        assert!(Batch::at(&whole, SALT + 1, SEGMENT_HEAD_BYTES).is_none(), "another salt");
        assert!(Batch::after(&whole, SALT, SEGMENT_HEAD_BYTES).is_none());
        assert!(Batch::after(&whole, SALT, 3).is_some());
    }
}
