use super::{Record, RowKey};
use crate::{
    StoreError,
    limits::{KEY_BYTES_MAX, ROW_OVERHEAD_BYTES},
};
use bytes::Bytes;
use fjall::Keyspace;
use std::{
    collections::{BTreeMap, btree_map},
    mem,
    ops::Bound,
    sync::Arc,
};

/// A changed row, `None` if it was removed.
#[derive(Clone)]
pub(super) struct Change<R> {
    pub(super) row: Option<R>,
    pub(super) bytes: usize,
}

/// Changed rows in key order, with the memory that they take.
pub(super) struct Rows<R> {
    map: BTreeMap<RowKey, Change<R>>,
    bytes: usize,
}

impl<R> Default for Rows<R> {
    fn default() -> Self {
        Rows { map: BTreeMap::new(), bytes: 0 }
    }
}

impl<R: Record> Rows<R> {
    pub(super) fn insert(&mut self, key: RowKey, row: Option<R>) {
        assert!(key.len() <= KEY_BYTES_MAX, "a key has {} bytes", key.len());
        let bytes = ROW_OVERHEAD_BYTES + key.len() + row.as_ref().map_or(0, Record::weight);
        self.insert_change(key, Change { row, bytes });
    }

    fn insert_change(&mut self, key: RowKey, change: Change<R>) {
        self.bytes += change.bytes;
        if let Some(old) = self.map.insert(key, change) {
            self.bytes -= old.bytes;
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    pub(super) fn iter(&self) -> btree_map::Iter<'_, RowKey, Change<R>> {
        self.map.iter()
    }

    pub(super) fn range(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
    ) -> btree_map::Range<'_, RowKey, Change<R>> {
        self.map.range::<[u8], _>((from, to))
    }
}

/// The rows of a group.
pub(super) struct Tables<R> {
    /// The keyspace on disk; `generation` says which of the group's it is. `None` only while the database is opened
    /// again, behind the tables' lock.
    pub(super) disk: Option<Keyspace>,
    pub(super) generation: u64,
    pub(super) dirty: Rows<R>,
    pub(super) flushing: Option<Arc<Rows<R>>>,
    /// Agrees with the rows.
    pub(super) applied: Option<Bytes>,
    /// Agrees with the rows on disk.
    pub(super) flushed: Option<Bytes>,
    /// What the rows on disk may agree with instead: a flush that failed may have been written nevertheless.
    failed: Vec<Option<Bytes>>,
    /// True if an entry has ended since the last freeze.
    unflushed: bool,
}

impl<R: Record> Tables<R> {
    pub(super) fn new(disk: Keyspace, generation: u64, applied: Option<Bytes>) -> Self {
        Tables {
            disk: Some(disk),
            generation,
            dirty: Rows::default(),
            flushing: None,
            flushed: applied.clone(),
            failed: Vec::new(),
            applied,
            unflushed: false,
        }
    }

    /// The keyspace on disk, which is absent only while it is reopened under the lock.
    pub(super) fn disk(&self) -> &Keyspace {
        self.disk.as_ref().expect("the keyspace is open while the lock is free")
    }

    /// The row in memory that hides what is on disk; `Some(None)` if it was removed.
    pub(super) fn find(&self, key: &[u8]) -> Option<Option<R>> {
        let change = self.layers().find_map(|rows| rows.map.get(key))?;
        Some(change.row.clone())
    }

    /// The maps in memory; the first that has a key wins.
    pub(super) fn layers(&self) -> impl DoubleEndedIterator<Item = &Rows<R>> {
        [Some(&self.dirty), self.flushing.as_deref()].into_iter().flatten()
    }

    pub(super) fn apply(&mut self, rows: impl IntoIterator<Item = (RowKey, Option<R>)>, applied: Bytes) {
        for (key, row) in rows {
            self.dirty.insert(key, row);
        }
        self.applied = Some(applied);
        self.unflushed = true;
    }

    /// Freezes the dirty rows; `None` if no entry has ended since the last freeze.
    pub(super) fn freeze(&mut self) -> Option<Arc<Rows<R>>> {
        if !mem::take(&mut self.unflushed) {
            return None;
        }
        let rows = Arc::new(mem::take(&mut self.dirty));
        self.flushing = Some(rows.clone());
        Some(rows)
    }

    /// Ends a flush: the rows on disk agree with this. Returns the frozen rows.
    pub(super) fn written(&mut self, applied: Option<Bytes>) -> Option<Arc<Rows<R>>> {
        (self.flushed, self.failed) = (applied, Vec::new());
        self.flushing.take()
    }

    /// Takes note of what the rows on disk agree with after the database was opened again.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if they lack a flush: its rows are no longer in memory.
    pub(super) fn reopened(&mut self, applied: Option<Bytes>) -> Result<(), StoreError> {
        if applied != self.flushed && !self.failed.contains(&applied) {
            return Err(StoreError::damaged("state", "rows that were written are no longer on disk"));
        }
        (self.flushed, self.failed) = (applied, Vec::new());
        Ok(())
    }

    /// Undoes a freeze, whose rows agree with `applied`: rows that are dirty by now are newer.
    pub(super) fn thaw(&mut self, applied: Option<Bytes>) {
        let Some(rows) = self.flushing.take() else { return };
        for (key, change) in rows.iter() {
            if !self.dirty.map.contains_key(key) {
                self.dirty.insert_change(key.clone(), change.clone());
            }
        }
        self.unflushed = true;
        if !self.failed.contains(&applied) {
            self.failed.push(applied);
        }
    }
}
