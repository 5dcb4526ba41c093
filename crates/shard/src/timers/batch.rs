//! The payload of the transport: one attempt on timers that are due.

use switchward_state::Key;

use crate::limits::{TIMER_BATCH_BYTES_MAX, TIMER_BATCH_MAX};

/// Stored form. A batch: form byte, shard, term and number (8 bytes each, big-endian), then for each timer the length
/// of its key (2 bytes) and the key.
const BATCH_FORM: u8 = 1;
const HEADER_BYTES: usize = 25;

/// One attempt on timers that are due, identified by shard, term and number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerBatch {
    /// The group of the timers' shard.
    pub shard: u64,
    /// The term of the leader that handed it out.
    pub term: u64,
    /// The number of the batch among those of that leader, from 1.
    pub number: u64,
    /// Entries of the index of what is due; 1 to [`TIMER_BATCH_MAX`].
    pub timers: Vec<Key>,
}

impl TimerBatch {
    /// A unique name of the batch; the same however often it is sent.
    #[must_use]
    pub fn name(&self) -> String {
        format!("timers-{}-{}-{}", self.shard, self.term, self.number)
    }

    /// Encodes the batch for [`decode`](Self::decode).
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES + self.timers.len() * 64);
        out.push(BATCH_FORM);
        for number in [self.shard, self.term, self.number] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        for timer in &self.timers {
            // No key exceeds the length field: an entry holds a row's key, whose parts are limited.
            let length = u16::try_from(timer.as_bytes().len()).unwrap_or(u16::MAX);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(&timer.as_bytes()[..usize::from(length)]);
        }
        out
    }

    /// Decodes a batch; `None` if the bytes are not one.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (header, mut rest) = bytes.split_at_checked(HEADER_BYTES)?;
        let number = |at: usize| header.get(at..at + 8)?.try_into().ok().map(u64::from_be_bytes);
        let mut batch = Self { shard: number(1)?, term: number(9)?, number: number(17)?, timers: Vec::new() };
        if header[0] != BATCH_FORM || rest.len() > 2 * TIMER_BATCH_BYTES_MAX {
            return None;
        }
        while let Some((length, after)) = rest.split_first_chunk::<2>() {
            let (key, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            batch.timers.push(Key::from_bytes(key)?);
            rest = after;
        }
        let whole = rest.is_empty() && (1..=TIMER_BATCH_MAX).contains(&batch.timers.len());
        whole.then_some(batch)
    }
}

#[cfg(test)]
mod tests {
    use switchward_machine::{OpenId, SessionId, TenantId};
    use switchward_state::IndexKey;

    use super::*;

    fn batch(timers: u64) -> TimerBatch {
        let session = SessionId::from_key(TenantId(7), "s");
        let item = |number| Key::item(TenantId(7), session, OpenId(number));
        let timer = |number: u64| {
            let mut entry = IndexKey::due();
            entry.extend_from_slice(&(1_750_064_400_000 + number).to_be_bytes());
            entry.extend_from_slice(item(number).as_bytes());
            Key::from_bytes(&entry).unwrap()
        };
        TimerBatch { shard: 2, term: 258, number: 3, timers: (0..timers).map(timer).collect() }
    }

    #[test]
    fn batches_keep_their_form() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/timer_batch.v1.txt");
        let bytes = batch(2).encode();
        assert_eq!(bytes[0], BATCH_FORM);
        let text = format!("batch {}\n", bytes.escape_ascii());
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        assert_eq!(
            text,
            std::fs::read_to_string(path).unwrap(),
            "servers of two versions must read each other's batches"
        );
        assert_eq!(TimerBatch::decode(&bytes), Some(batch(2)));
        assert_eq!(batch(1).name(), "timers-2-258-3");
    }

    #[test]
    fn what_is_no_batch_is_none() {
        let bytes = batch(2).encode();
        for end in 0..bytes.len() {
            let whole = end == bytes.len() - batch(1).timers[0].as_bytes().len() - 2;
            assert_eq!(TimerBatch::decode(&bytes[..end]).is_some(), whole, "cut at {end}");
        }
        let most = u64::try_from(TIMER_BATCH_MAX).unwrap();
        assert_eq!(TimerBatch::decode(&batch(most).encode()), Some(batch(most)));
        assert_eq!(TimerBatch::decode(&batch(most + 1).encode()), None, "more than a leader hands out");
        let other = [&[2], &bytes[1..]].concat();
        assert_eq!(TimerBatch::decode(&other), None, "another form");
    }
}
