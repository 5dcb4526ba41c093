use super::{Record, RowKey};
use crate::{
    StoreError,
    limits::{KEY_BYTES_MAX, ROW_ORDER_BYTES, ROW_OVERHEAD_BYTES},
};
use bytes::Bytes;
use fjall::Keyspace;
use foldhash::fast::RandomState;
use indexmap::{IndexMap, map::Entry};
use std::{collections::BTreeMap, mem, ops::Bound, sync::Arc};

/// A changed row, `None` if it was removed.
#[derive(Clone)]
pub(super) struct Change<R> {
    pub(super) row: Option<R>,
    /// Its memory in any map, bytes.
    pub(super) bytes: usize,
}

/// Changed rows, with the memory that they take. Each step reads and changes many single rows, which are found by hash:
/// a search in order costs several times as much. Flushes and scans go by the order of the keys.
pub(super) struct Rows<R> {
    /// In the order in which they were first changed. None is taken out, so a position stays as it is.
    changes: IndexMap<RowKey, Change<R>, RandomState>,
    /// The position of each key, in key order.
    order: BTreeMap<RowKey, usize>,
    bytes: usize,
}

impl<R> Default for Rows<R> {
    fn default() -> Self {
        Rows { changes: IndexMap::default(), order: BTreeMap::new(), bytes: 0 }
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
        match self.changes.entry(key) {
            Entry::Occupied(mut known) => self.bytes -= known.insert(change).bytes,
            Entry::Vacant(new) => {
                self.bytes += ROW_ORDER_BYTES;
                self.order.insert(RowKey::from_slice(new.key()), new.index());
                new.insert(change);
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    fn get(&self, key: &[u8]) -> Option<&Change<R>> {
        self.changes.get(key)
    }

    /// All of them in key order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&RowKey, &Change<R>)> {
        self.order.iter().map(move |(key, at)| (key, &self.changes[*at]))
    }

    /// Those between two keys in key order.
    pub(super) fn range<'r>(
        &'r self,
        from: Bound<&'r [u8]>,
        to: Bound<&'r [u8]>,
    ) -> impl Iterator<Item = (&'r RowKey, &'r Change<R>)> {
        self.order.range::<[u8], _>((from, to)).map(move |(key, at)| (key, &self.changes[*at]))
    }
}

/// The rows of a group.
pub(super) struct Tables<R> {
    /// The keyspace on disk; `generation` says which of the group's it is. An error while the database is opened again,
    /// behind the tables' lock, and for good if that fails: nobody may read rows then that are not the last ones.
    pub(super) disk: Result<Keyspace, StoreError>,
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
            disk: Ok(disk),
            generation,
            dirty: Rows::default(),
            flushing: None,
            flushed: applied.clone(),
            failed: Vec::new(),
            applied,
            unflushed: false,
        }
    }

    /// The keyspace on disk.
    ///
    /// # Errors
    /// The database was to be opened again, and that has failed: the process must end.
    pub(super) fn disk(&self) -> Result<&Keyspace, StoreError> {
        self.disk.as_ref().map_err(Clone::clone)
    }

    /// The row in memory that hides what is on disk; `Some(None)` if it was removed.
    pub(super) fn find(&self, key: &[u8]) -> Option<Option<R>> {
        let change = self.layers().find_map(|rows| rows.get(key))?;
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
            if self.dirty.get(key).is_none() {
                self.dirty.insert_change(RowKey::from_slice(key), change.clone());
            }
        }
        self.unflushed = true;
        if !self.failed.contains(&applied) {
            self.failed.push(applied);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of one number, which is its weight, too.
    #[derive(Clone, Debug, PartialEq)]
    struct Number(u8);

    impl Record for Number {
        fn encode(&self, out: &mut Vec<u8>) {
            out.push(self.0);
        }

        fn decode(bytes: &[u8]) -> Result<Self, String> {
            bytes.first().copied().map(Self).ok_or_else(|| "it is empty".to_owned())
        }

        fn weight(&self) -> usize {
            self.0.into()
        }

        fn cache(&self) -> bool {
            true
        }
    }

    /// A row whose key has one byte, without its own weight.
    const ROW_BYTES: usize = ROW_OVERHEAD_BYTES + ROW_ORDER_BYTES + 1;

    #[test]
    fn the_order_of_the_keys_takes_what_is_counted_for_it() {
        let entry = mem::size_of::<(RowKey, usize)>();
        assert!((entry * 4 / 3..=entry * 2).contains(&ROW_ORDER_BYTES), "an entry has {entry} bytes");
    }

    #[test]
    fn rows_have_the_order_of_their_keys_and_their_last_change() {
        let mut rows = Rows::default();
        let key = |name: &str| RowKey::from_slice(name.as_bytes());
        for (name, row) in
            [("c", Some(1)), ("a", Some(2)), ("d", Some(3)), ("b", Some(4)), ("a", Some(5)), ("d", None)]
        {
            rows.insert(key(name), row.map(Number));
        }
        let found = |name: &str| rows.get(name.as_bytes()).map(|change| change.row.clone());
        assert_eq!([found("a"), found("d"), found("e")], [Some(Some(Number(5))), Some(None), None]);
        let names = |(name, change): (&RowKey, &Change<Number>)| (name.to_vec(), change.row.clone());
        let all = [("a", Some(5)), ("b", Some(4)), ("c", Some(1)), ("d", None)];
        let all = all.map(|(name, row)| (name.as_bytes().to_vec(), row.map(Number)));
        assert_eq!(rows.iter().map(names).collect::<Vec<_>>(), all);
        let (from, to) = (Bound::Excluded(&b"a"[..]), Bound::Included(&b"c"[..]));
        assert_eq!(rows.range(from, to).map(names).collect::<Vec<_>>(), all[1..3]);
        let (none, to) = (Bound::Unbounded, Bound::Excluded(&b"b"[..]));
        assert_eq!(rows.range(none, to).map(names).collect::<Vec<_>>(), all[..1]);
        assert_eq!((rows.len(), rows.bytes()), (4, 4 * ROW_BYTES + 5 + 4 + 1));
        assert_eq!(
            rows.get(b"c").unwrap().bytes,
            ROW_OVERHEAD_BYTES + 1 + 1,
            "without the order of the keys"
        );
    }
}
