//! A moment: the rows of one state as they were between two entries.

use super::{
    Record, RowKey, State,
    scan::{RowSource, Step, Stretch, Visit, stored_range},
    store::StoreInner,
};
use crate::{
    GroupId, StoreError, forms,
    limits::ROW_BYTES_MAX,
    snapshot::{Header, RowsDigest, SnapshotWriter},
};
use fjall::{Keyspace, Readable, Snapshot};
use std::{
    collections::BTreeMap,
    io::Write,
    ops::{Bound, ControlFlow},
    path::Path,
    sync::{Arc, atomic::Ordering::SeqCst},
};

/// The rows of one state at one moment. Later writes do not show in it and are not delayed by it; the disk keeps what they
/// replace as long as it exists. If the database must be opened again meanwhile, its rows cannot be read any more: drop it.
pub struct Moment<R: Record> {
    group: GroupId,
    changes: BTreeMap<RowKey, Option<R>>,
    /// An error if the database could not be opened again.
    disk: Result<(Keyspace, Snapshot), StoreError>,
    store: Arc<StoreInner>,
}

impl<R: Record> State<R> {
    /// The rows as they are now. Nothing is read or written: it takes as long as a copy of the changed rows' list. If it is
    /// called on the writer's own thread, the rows are those after the last entry.
    #[must_use]
    pub fn moment(&self) -> Moment<R> {
        let store = Arc::clone(&self.0.store);
        let tables = self.0.tables.read();
        let mut changes: BTreeMap<RowKey, Option<R>> = BTreeMap::new();
        for rows in tables.layers().rev() {
            let all = rows.iter().map(|(key, change)| (RowKey::from_slice(key), change.row.clone()));
            // A map is made of sorted rows faster than they are inserted into it.
            if changes.is_empty() {
                changes = all.collect();
            } else {
                changes.extend(all);
            }
        }
        let disk = tables.disk().and_then(|disk| Ok((disk.clone(), store.database()?.snapshot())));
        store.cuts.fetch_add(1, SeqCst);
        drop(tables);
        Moment { group: self.0.group, changes, disk, store }
    }
}

impl<R: Record> Moment<R> {
    /// The group whose rows these are.
    #[must_use]
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// The digest that [`State::digest`] would have returned then. Reads the whole table.
    ///
    /// # Errors
    /// If the disk cannot be read, or the database must be opened again.
    pub fn digest(&self) -> Result<[u8; 32], StoreError> {
        let mut digest = RowsDigest::default();
        self.visit(&mut |key, found| {
            digest.add_found(key, found)?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(digest.finish())
    }

    /// Writes the rows as a snapshot file that names no position of a log. Returns their number and their digest. `path`
    /// is for error messages.
    ///
    /// # Errors
    /// If the rows cannot be read, `to` cannot be written, or the database must be opened again.
    pub fn write(&self, path: &Path, to: &mut dyn Write) -> Result<(u64, [u8; 32]), StoreError> {
        let header = Header { group: self.group, applied: None };
        let mut writer = SnapshotWriter::new(to, path, &header)?;
        let mut encoded = Vec::new();
        self.visit(&mut |key, found| {
            match found {
                RowSource::Memory(row) => {
                    forms::ROW.begin(&mut encoded);
                    row.encode(&mut encoded);
                    StoreError::check_size("row", encoded.len() - 1, ROW_BYTES_MAX)?;
                    writer.row(key, &encoded)?;
                }
                RowSource::Disk(stored) => writer.row(key, &stored)?,
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let (_, rows, digest) = writer.finish_with_digest()?;
        Ok((rows, digest))
    }

    fn visit(&self, visit: &mut Visit<'_, R>) -> Result<(), StoreError> {
        let (disk, snapshot) = self.disk.as_ref().map_err(Clone::clone)?;
        let disk = snapshot.range(disk, stored_range(Bound::Unbounded, Bound::Unbounded));
        let all = Stretch { changes: self.changes.clone(), disk, last: None };
        let mut whole = |key: &[u8], found: RowSource<R>| -> Step {
            if self.store.reopening.is_wanted() {
                return Err(StoreError::damaged("moment", "it was given up: the database is opened again"));
            }
            visit(key, found)
        };
        all.visit(&mut whole).map(|_| ())
    }
}

impl<R: Record> Drop for Moment<R> {
    fn drop(&mut self) {
        self.store.cuts.fetch_sub(1, SeqCst);
    }
}
