use super::{Record, RowKey, State, decode};
use crate::{
    StoreError,
    forms::{self, StoredKey},
    limits::{SCAN_CHUNK_ROWS_MAX, SCAN_CHUNK_ROWS_MIN},
    snapshot::RowsDigest,
};
use fjall::{Iter, Readable, Slice};
use std::{
    collections::BTreeMap,
    ops::{Bound, ControlFlow},
};

/// A row, in memory or on disk.
pub(super) enum RowSource<R> {
    Memory(R),
    Disk(Slice),
}

pub(super) type Step = Result<ControlFlow<()>, StoreError>;
pub(super) type Visit<'a, R> = dyn FnMut(&[u8], RowSource<R>) -> Step + 'a;

/// A stretch of keys at one moment: what changed in memory, and a snapshot of the disk.
pub(super) struct Stretch<R> {
    pub(super) changes: BTreeMap<RowKey, Option<R>>,
    pub(super) disk: Iter,
    /// The last key of the stretch, if the range continues after it.
    pub(super) last: Option<RowKey>,
}

impl<R: Record> State<R> {
    /// Calls `visit` with the rows between two keys in key order, at most `limit`, until it breaks.
    ///
    /// Every row is as it was at some moment during the scan; all are of one moment if there is no concurrent write,
    /// as on the writer's own thread. No lock is held while `visit` runs, so it may read and write the state.
    ///
    /// # Errors
    /// If the disk cannot be read or a row cannot be decoded.
    pub fn scan(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        limit: usize,
        mut visit: impl FnMut(&[u8], &R) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let mut left = limit;
        if left == 0 {
            return Ok(());
        }
        self.visit(from, to, &mut |key, found| {
            let row = match found {
                RowSource::Memory(row) => row,
                RowSource::Disk(stored) => decode(&stored)?,
            };
            left -= 1;
            let step = visit(key, &row);
            Ok(if left == 0 { ControlFlow::Break(()) } else { step })
        })
    }

    /// SHA-256 over all rows in key order (lengths, keys, encodings): equal on replicas that have applied the same
    /// entries, and after a replay. Only meaningful without concurrent writes. Reads the whole table.
    ///
    /// # Errors
    /// If the disk cannot be read.
    pub fn digest(&self) -> Result<[u8; 32], StoreError> {
        let mut digest = RowsDigest::default();
        self.visit(Bound::Unbounded, Bound::Unbounded, &mut |key, found| {
            digest.add_found(key, found)?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(digest.finish())
    }

    fn visit(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        visit: &mut Visit<'_, R>,
    ) -> Result<(), StoreError> {
        let mut cursor: Bound<RowKey> = from.map(RowKey::from);
        // Most scans break early: the first stretch is short, and each further one twice as long.
        let mut rows_max = SCAN_CHUNK_ROWS_MIN;
        while !is_empty(cursor.as_ref().map(|key| &**key), to) {
            let stretch = self.stretch(cursor.as_ref().map(|key| &**key), to, rows_max)?;
            rows_max = rows_max.saturating_mul(2).min(SCAN_CHUNK_ROWS_MAX);
            let next = stretch.last.clone();
            if stretch.visit(visit)?.is_break() {
                return Ok(());
            }
            let Some(last) = next else { return Ok(()) };
            cursor = Bound::Excluded(last);
        }
        Ok(())
    }

    fn stretch(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        rows_max: usize,
    ) -> Result<Stretch<R>, StoreError> {
        let tables = self.0.tables.read();
        let mut changes: BTreeMap<RowKey, Option<R>> = BTreeMap::new();
        for rows in tables.layers().rev() {
            let first = rows.range(from, to).take(rows_max);
            // `SmallVec` clones item by item; this copies the bytes at once.
            let first = first.map(|(key, change)| (RowKey::from_slice(key), change.row.clone()));
            // A map is made of sorted rows faster than they are inserted into it.
            if changes.is_empty() {
                changes = first.collect();
            } else {
                changes.extend(first);
            }
        }
        let last = changes.keys().nth(rows_max - 1).cloned();
        if let Some(last) = &last {
            // After this key, a layer that was cut short may lack keys.
            changes.retain(|key, _| key <= last);
        }
        let to = last.as_deref().map_or(to, Bound::Included);
        let (keyspace, snapshot) = (tables.disk()?.clone(), self.0.store.database()?.snapshot());
        // A range may wait for a sync of the database, and writers would wait for the tables.
        drop(tables);
        let disk = snapshot.range(&keyspace, stored_range(from, to));
        Ok(Stretch { changes, disk, last })
    }
}

impl RowsDigest {
    /// Adds a row.
    ///
    /// # Errors
    /// If its stored form is not one of this program.
    pub(super) fn add_found<R: Record>(&mut self, key: &[u8], found: RowSource<R>) -> Result<(), StoreError> {
        match found {
            RowSource::Memory(row) => {
                let mut encoded = std::mem::take(&mut self.buffer);
                encoded.clear();
                row.encode(&mut encoded);
                self.add(key, &encoded);
                self.buffer = encoded;
            }
            RowSource::Disk(stored) => self.add(key, forms::ROW.open(&stored)?),
        }
        Ok(())
    }
}

impl<R: Record> Stretch<R> {
    /// Merges the changes into the rows on disk: a change hides the row of its key.
    pub(super) fn visit(self, visit: &mut Visit<'_, R>) -> Step {
        let mut changes = self.changes.into_iter().peekable();
        for stored in self.disk {
            let (stored_key, stored) = stored.into_inner().map_err(StoreError::database("read rows"))?;
            let key = &stored_key[1..];
            while let Some((before, change)) = changes.next_if(|(changed, _)| &**changed < key) {
                if let Some(row) = change
                    && visit(&before, RowSource::Memory(row))?.is_break()
                {
                    return Ok(ControlFlow::Break(()));
                }
            }
            let found = match changes.next_if(|(changed, _)| &**changed == key) {
                Some((_, change)) => change.map(RowSource::Memory),
                None => Some(RowSource::Disk(stored)),
            };
            if let Some(found) = found
                && visit(key, found)?.is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        for (key, change) in changes {
            if let Some(row) = change
                && visit(&key, RowSource::Memory(row))?.is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn is_empty(from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    match (from, to) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => {
            from >= to
        }
    }
}

/// The same range among the stored keys of rows.
pub(super) fn stored_range(from: Bound<&[u8]>, to: Bound<&[u8]>) -> (Bound<StoredKey>, Bound<StoredKey>) {
    let from = match from {
        Bound::Unbounded => Bound::Included(StoredKey::from_slice(&[forms::ROW_KEY])),
        Bound::Included(_) | Bound::Excluded(_) => from.map(forms::row_key),
    };
    let to = match to {
        Bound::Unbounded => Bound::Excluded(StoredKey::from_slice(&[forms::ROW_KEY + 1])),
        Bound::Included(_) | Bound::Excluded(_) => to.map(forms::row_key),
    };
    (from, to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::empty::Empty;
    use crate::{DataDir, GroupId, StateOptions, StateStore};
    use fjall::AbstractTree as _;
    use std::{fs, path::Path, sync::mpsc::channel, thread, time::Duration};

    /// Returns true if a thread waits whose file in `/proc` this is.
    fn waits(stat: &Path) -> bool {
        let stat = fs::read_to_string(stat).unwrap();
        // The state follows the name, which is in brackets.
        stat.rsplit(") ").next().is_some_and(|state| state.starts_with('S'))
    }

    /// Reads while the database's list of tables is locked, as it is while a new table is synced. Returns true if rows
    /// can be written nevertheless.
    fn admits_writes(read: fn(&State<Empty>)) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let store = StateStore::open(&DataDir::open(folder.path()).unwrap()).unwrap();
        let state: State<Empty> = store.group(GroupId(1), &StateOptions::default()).unwrap();
        let disk = state.0.tables.read().disk().unwrap().clone();
        let list = disk.tree.get_version_history_lock();
        let ((begun, begins), reader) = (channel(), state.clone());
        let reading = thread::spawn(move || {
            let own = fs::read_link("/proc/thread-self").unwrap();
            begun.send(Path::new("/proc").join(own).join("stat")).unwrap();
            read(&reader);
        });
        let stat = begins.recv().unwrap();
        while !waits(&stat) {
            thread::yield_now();
        }
        let admitted = state.0.tables.try_write_for(Duration::from_secs(10)).is_some();
        drop(list);
        reading.join().unwrap();
        admitted
    }

    #[test]
    fn a_scan_that_waits_for_the_disk_holds_up_no_writer() {
        assert!(admits_writes(|state| {
            let scanned = state.scan(Bound::Unbounded, Bound::Unbounded, 1, |_, _| ControlFlow::Continue(()));
            scanned.unwrap();
        }));
    }

    #[test]
    fn a_count_of_rows_that_waits_for_the_disk_holds_up_no_writer() {
        assert!(admits_writes(|state| assert_eq!(state.rows_on_disk(), 0)));
    }
}
