use super::{Record, RowKey, rows::Change};
use crate::limits::{ABSENT_KEYS_MAX, ROW_OVERHEAD_BYTES};
use lru::LruCache;

/// Rows in memory that are also on disk; the least recently used ones are evicted first.
///
/// A reader that fetched a row from disk offers it later, when a newer one may have been flushed meanwhile: it passes
/// the epoch in which it began, and every flush begins a new one.
pub(super) struct Clean<R> {
    rows: LruCache<RowKey, Change<R>>,
    /// Keys without a row on disk.
    absent: LruCache<RowKey, ()>,
    bytes: usize,
    bytes_max: usize,
    epoch: u64,
}

impl<R: Record> Clean<R> {
    pub(super) fn new(bytes_max: usize) -> Self {
        let absent = LruCache::new(ABSENT_KEYS_MAX);
        Clean { rows: LruCache::unbounded(), absent, bytes: 0, bytes_max, epoch: 0 }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Refuses what readers that have already begun will offer.
    pub(super) fn begin_epoch(&mut self) {
        self.epoch += 1;
    }

    pub(super) fn clear(&mut self) {
        self.begin_epoch();
        self.rows.clear();
        self.absent.clear();
        self.bytes = 0;
    }

    /// The row if it is cached, `Some(None)` if it is known not to exist.
    pub(super) fn get(&mut self, key: &[u8]) -> Option<Option<R>> {
        if let Some(change) = self.rows.get(key) {
            return Some(change.row.clone());
        }
        self.absent.get(key).map(|()| None)
    }

    /// Records that the disk was read and has no row of the key.
    pub(super) fn offer_absent(&mut self, epoch: u64, key: &[u8]) {
        if epoch == self.epoch {
            self.absent.put(RowKey::from_slice(key), ());
        }
    }

    /// Caches a row that was read from disk.
    pub(super) fn offer(&mut self, epoch: u64, key: &[u8], row: &R) {
        if epoch == self.epoch {
            let bytes = ROW_OVERHEAD_BYTES + key.len() + row.weight();
            self.put(RowKey::from_slice(key), Change { row: Some(row.clone()), bytes });
        }
    }

    /// Caches a row that was flushed.
    pub(super) fn settle(&mut self, key: &RowKey, change: &Change<R>) {
        self.absent.pop(key);
        if change.row.as_ref().is_some_and(Record::cache) {
            // `SmallVec` clones item by item; this copies the bytes at once.
            self.put(RowKey::from_slice(key), change.clone());
        } else if let Some(old) = self.rows.pop(key) {
            self.bytes -= old.bytes;
        }
    }

    fn put(&mut self, key: RowKey, change: Change<R>) {
        self.bytes += change.bytes;
        if let Some(old) = self.rows.put(key, change) {
            self.bytes -= old.bytes;
        }
        while self.bytes > self.bytes_max
            && let Some((_, old)) = self.rows.pop_lru()
        {
            self.bytes -= old.bytes;
        }
    }
}
