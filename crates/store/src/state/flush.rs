use super::{
    Record, State,
    gate::{Gate, Pass},
    rows::Rows,
};
use crate::{
    StoreError, forms,
    limits::{INGESTED_TABLES_MAX, ROW_BYTES_MAX},
};
use bytes::Bytes;
use fjall::{Keyspace, PersistMode};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl<R: Record> State<R> {
    /// Freezes all rows of the entries that have ended, to be written by [`Flush::run`] on another thread.
    /// `None` if no entry has ended since the last flush, or if a flush is still under way.
    pub fn begin_flush(&self) -> Option<Flush<R>> {
        self.freeze(Gate::try_enter(&self.0.gate)?)
    }

    /// Flushes the rows of all entries that have ended before the call. Waits for a [`Flush`] that has begun, so the
    /// caller must not hold one.
    ///
    /// # Errors
    /// As of [`Flush::run`].
    pub fn flush(&self) -> Result<(), StoreError> {
        self.freeze(Gate::enter(&self.0.gate)).map_or(Ok(()), Flush::run)
    }

    fn freeze(&self, pass: Pass) -> Option<Flush<R>> {
        let mut flush = self.freeze_inside()?;
        flush._pass = Some(pass);
        Some(flush)
    }

    /// The same for a caller that holds the pass and keeps it until the flush has run.
    pub(super) fn freeze_inside(&self) -> Option<Flush<R>> {
        let mut tables = self.0.tables.write();
        let rows = tables.freeze()?;
        let applied = tables.applied.clone();
        drop(tables);
        Some(Flush { state: self.clone(), rows, applied, finished: false, _pass: None })
    }
}

/// Frozen rows that are still to be written. If it is dropped before it has run, or fails, its rows are dirty again.
/// [`State::export`] and [`State::install`] wait for it.
#[must_use = "rows reach the disk when it runs"]
pub struct Flush<R: Record> {
    state: State<R>,
    rows: Arc<Rows<R>>,
    applied: Option<Bytes>,
    finished: bool,
    _pass: Option<Pass>,
}

impl<R: Record> Flush<R> {
    /// Rows (and removals) to be written.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Writes the rows and their applied blob in one atomic step and hands the rows over to the clean cache. Many
    /// rows become a table, which is synced. Few go through the journal in one batch without a sync; their encoded
    /// size is held in memory.
    ///
    /// # Errors
    /// If a row is over its limit or the disk cannot be written.
    pub fn run(mut self) -> Result<(), StoreError> {
        let inner = &self.state.0;
        let disk = inner.tables.read().disk()?.clone();
        let many = self.rows.bytes() >= inner.ingested_bytes_min;
        let written = if many && disk.l0_table_count() < INGESTED_TABLES_MAX {
            self.ingest(&disk)
        } else {
            self.insert(&disk)
        };
        let (reopening, failed) = (&inner.store.reopening, written.as_ref().err());
        reopening.tried(inner.store.dir.disk(), self.rows.bytes(), failed);
        written?;
        // Until `flushing` is cleared it hides these keys from the cache, which may thus be filled bit by bit.
        inner.clean.lock().begin_epoch();
        for (key, change) in self.rows.iter() {
            inner.clean.lock().settle(key, change);
        }
        let mut tables = inner.tables.write();
        let frozen = tables.written(self.applied.clone());
        drop(tables);
        drop(frozen);
        self.finished = true;
        Ok(())
    }

    /// Writes the rows as a table, after the contents of the write buffer. Through the journal each row would be
    /// written twice.
    fn ingest(&self, disk: &Keyspace) -> Result<(), StoreError> {
        let failed = || StoreError::database("flush rows");
        let mut ingestion = disk.start_ingestion().map_err(failed())?;
        ingestion.write(forms::MARKER_KEY, forms::marker(self.applied.as_ref())).map_err(failed())?;
        let mut stored = Vec::new();
        for (key, change) in self.rows.iter() {
            let key = forms::row_key(key);
            let written = match &change.row {
                Some(row) => {
                    encode(row, &mut stored)?;
                    ingestion.write(&key[..], &stored[..])
                }
                None => ingestion.write_tombstone(&key[..]),
            };
            written.map_err(failed())?;
        }
        ingestion.finish().map_err(failed())?;
        self.state.0.buffered.store(0, Relaxed);
        Ok(())
    }

    /// Writes the rows as one batch.
    fn insert(&self, disk: &Keyspace) -> Result<(), StoreError> {
        let inner = &self.state.0;
        // The buffer is written with the batch, so that a later sync needs no more space.
        let mut batch = inner.store.database()?.batch().durability(Some(PersistMode::Buffer));
        let (mut written, mut stored) = (0, Vec::new());
        batch.insert(disk, forms::MARKER_KEY, forms::marker(self.applied.as_ref()));
        for (key, change) in self.rows.iter() {
            let key = forms::row_key(key);
            match &change.row {
                Some(row) => {
                    encode(row, &mut stored)?;
                    written += key.len() + stored.len();
                    batch.insert(disk, &key[..], &stored[..]);
                }
                None => batch.remove(disk, &key[..]),
            }
        }
        batch.commit().map_err(StoreError::database("flush rows"))?;
        inner.buffered.fetch_add(written, Relaxed);
        Ok(())
    }
}

/// Writes the stored form of a row into `stored`, in place of what was there.
fn encode<R: Record>(row: &R, stored: &mut Vec<u8>) -> Result<(), StoreError> {
    forms::ROW.begin(stored);
    row.encode(stored);
    StoreError::check_size("row", stored.len() - 1, ROW_BYTES_MAX)
}

impl<R: Record> Drop for Flush<R> {
    fn drop(&mut self) {
        if !self.finished {
            self.state.0.tables.write().thaw(self.applied.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::empty::Empty;
    use crate::{
        DataDir, GroupId, RowKey, StateOptions, StateStore, files::failed, limits::SPACE_REFUSALS_MAX,
    };
    use std::{
        fs::File,
        io,
        ops::{Bound, ControlFlow},
    };

    /// Applies an entry and freezes its row.
    fn frozen(state: &State<Empty>, name: &'static str) -> Flush<Empty> {
        state.apply([(RowKey::from_slice(name.as_bytes()), Some(Empty))], name);
        state.begin_flush().unwrap()
    }

    /// Opens the database again, as if a write had found no space.
    fn reopen(state: &State<Empty>) -> Result<bool, StoreError> {
        assert!(state.waits_for_space(&io::Error::from(io::ErrorKind::StorageFull)));
        state.recover()
    }

    #[test]
    fn rows_wait_for_a_disk_that_is_full_and_not_for_one_that_only_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let dir = DataDir::open(folder.path()).unwrap();
        let state: State<Empty> =
            StateStore::open(&dir).unwrap().group(GroupId(1), &StateOptions::default()).unwrap();
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let refused = failed("write", folder.path())(io::Error::from(io::ErrorKind::StorageFull));
        let tried = |error| state.0.store.reopening.tried(dir.disk(), 0, error);
        for _ in 0..2 {
            for _ in 1..SPACE_REFUSALS_MAX {
                tried(Some(&refused));
                assert!(state.waits_for_space(&full));
            }
            tried(None);
        }
        for _ in 1..SPACE_REFUSALS_MAX {
            tried(Some(&refused));
        }
        assert!(state.waits_for_space(&full));
        tried(Some(&refused));
        assert!(!state.waits_for_space(&full));
    }

    #[test]
    fn a_database_that_is_opened_again_has_all_that_was_written_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let dir = DataDir::open(folder.path()).unwrap();
        let state: State<Empty> =
            StateStore::open(&dir).unwrap().group(GroupId(1), &StateOptions::default()).unwrap();
        assert!(reopen(&state).unwrap(), "before the first flush");
        frozen(&state, "one").run().unwrap();
        assert!(reopen(&state).unwrap());

        let failed = frozen(&state, "two");
        let disk = state.0.tables.read().disk().unwrap().clone();
        failed.insert(&disk).unwrap();
        drop((failed, disk));
        assert!(reopen(&state).unwrap(), "a flush was written although it failed");
        assert_eq!(state.persist().unwrap().unwrap(), "two");

        let journal = File::options().write(true).open(dir.state().join("0.jnl")).unwrap();
        // The database has cut off the zeros at its end.
        let length = journal.metadata().unwrap().len();
        frozen(&state, "three").run().unwrap();
        journal.set_len(length).unwrap();
        let lost = "rows that were written are no longer on disk";
        let error = reopen(&state).unwrap_err().to_string();
        assert!(error.contains(lost), "{error}");
        // Nobody goes on with the rows that are left.
        state.0.clean.lock().clear();
        let read = state.get(b"one").map(|_| ());
        let scanned = state.scan(Bound::Unbounded, Bound::Unbounded, 1, |_, _| ControlFlow::Break(()));
        let written = state.moment().digest().map(|_| ());
        state.apply([(RowKey::from_slice(b"four"), Some(Empty))], "four");
        for left in [read, scanned, written, state.flush(), state.persist().map(|_| ())] {
            let error = left.unwrap_err().to_string();
            assert!(error.contains(lost), "{error}");
        }
    }
}
