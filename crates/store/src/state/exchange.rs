use super::{Record, State, gate::Gate, rows::Tables, scan::stored_range, store::StoreInner};
use crate::{
    GroupId, SnapshotFile, Snapshots, StoreError, forms,
    snapshot::{Header, SnapshotWriter},
};
use bytes::Bytes;
use fjall::{Keyspace, Readable};
use std::{
    io::Write,
    mem,
    ops::Bound,
    path::Path,
    sync::{Arc, atomic::Ordering::SeqCst},
};

/// The rows of one state at one moment, with the applied blob that they agree with. Later writes are not delayed by it
/// and not in it; the disk keeps what they replace as long as it exists.
pub struct StateExport {
    group: GroupId,
    applied: Option<Bytes>,
    disk: Keyspace,
    snapshot: fjall::Snapshot,
    store: Arc<StoreInner>,
}

impl StateExport {
    /// The applied blob that the rows agree with.
    pub fn applied(&self) -> Option<&Bytes> {
        self.applied.as_ref()
    }

    /// Returns true if the database must be opened again, which cannot be done while this exists: drop it.
    pub fn must_end(&self) -> bool {
        self.store.reopening.is_wanted()
    }

    /// Writes the rows as a snapshot file, and returns their number. `path` is for error messages.
    ///
    /// # Errors
    /// If the rows cannot be read, `to` cannot be written, or [`StateExport::must_end`] becomes true meanwhile.
    pub fn write(&self, path: &Path, to: &mut dyn Write) -> Result<u64, StoreError> {
        let header = Header { group: self.group, applied: self.applied.clone() };
        Ok(self.rows(SnapshotWriter::new(to, path, &header)?)?.1)
    }

    fn rows<W: Write>(&self, mut writer: SnapshotWriter<W>) -> Result<(W, u64), StoreError> {
        for row in self.snapshot.range(&self.disk, stored_range(Bound::Unbounded, Bound::Unbounded)) {
            if self.must_end() {
                return Err(StoreError::damaged("export", "it was given up: the database is opened again"));
            }
            let (key, stored) = row.into_inner().map_err(StoreError::database("read a state"))?;
            writer.row(&key[1..], &stored)?;
        }
        writer.finish()
    }
}

impl Drop for StateExport {
    fn drop(&mut self) {
        self.store.cuts.fetch_sub(1, SeqCst);
    }
}

impl<R: Record> State<R> {
    /// Flushes, and takes the rows as they are then. Waits for a [`Flush`](super::Flush) that has begun, so the caller
    /// must not hold one.
    ///
    /// # Errors
    /// If the state cannot be read or flushed.
    pub fn begin_export(&self) -> Result<StateExport, StoreError> {
        self.flush()?;
        let (disk, snapshot) = {
            let tables = self.0.tables.read();
            (tables.disk()?.clone(), self.0.store.database()?.snapshot())
        };
        let marker = snapshot.get(&disk, forms::MARKER_KEY).map_err(StoreError::database("read a state"))?;
        let applied = marker.map_or(Ok(None), |marker| forms::parse_marker(&marker))?;
        let store = Arc::clone(&self.0.store);
        store.cuts.fetch_add(1, SeqCst);
        Ok(StateExport { group: self.0.group, applied, disk, snapshot, store })
    }

    /// Writes what [`State::begin_export`] takes to a new snapshot file.
    ///
    /// # Errors
    /// If the state cannot be read or the file cannot be written.
    pub fn export(&self, to: &Snapshots) -> Result<SnapshotFile, StoreError> {
        let export = self.begin_export()?;
        let writer = to.write(export.group, export.applied.clone())?;
        export.rows(writer)?.0.publish()
    }

    /// Replaces the table and the applied blob by a snapshot's, durably. The writer must not write meanwhile.
    ///
    /// After a crash the state is either the old one or the new one: the snapshot goes into a keyspace of its own,
    /// which counts once its tables and its marker are registered, in one step. Waits for a [`Flush`](super::Flush)
    /// that has begun, so the caller must not hold one.
    ///
    /// # Errors
    /// [`StoreError::WrongGroup`]; if the file cannot be read or the state cannot be written. Nothing has changed
    /// then.
    pub fn install(&self, snapshot: &SnapshotFile) -> Result<(), StoreError> {
        let (expected, found) = (self.0.group, snapshot.group());
        if expected != found {
            return Err(StoreError::WrongGroup { expected, found });
        }
        // Held until the old state is removed, because the database is not opened again while its keyspace is held.
        let _pass = Gate::enter(&self.0.gate);
        let generation = self.0.tables.read().generation + 1;
        let disk = self.0.store.keyspace(self.0.group, generation)?;
        if let Err(error) = fill(&disk, snapshot, &|_| true) {
            self.0.store.remove(disk)?;
            return Err(error);
        }
        let fresh = Tables::new(disk, generation, snapshot.applied().cloned());
        let old = {
            let mut tables = self.0.tables.write();
            self.0.clean.lock().clear();
            mem::replace(&mut *tables, fresh)
        };
        let Ok(disk) = old.disk else { return Ok(()) };
        if let Err(error) = self.0.store.remove(disk) {
            tracing::warn!(%error, "failed to remove an old state; it stays on disk until its group is reopened");
        }
        Ok(())
    }
}

/// Puts the rows of a snapshot whose keys `keeps` accepts, and its applied blob, into an empty keyspace, in one step.
pub(super) fn fill(
    disk: &Keyspace,
    snapshot: &SnapshotFile,
    keeps: &dyn Fn(&[u8]) -> bool,
) -> Result<(), StoreError> {
    let failed = || StoreError::database("install a snapshot");
    let mut ingestion = disk.start_ingestion().map_err(failed())?;
    ingestion.write(forms::MARKER_KEY, forms::marker(snapshot.applied())).map_err(failed())?;
    snapshot.visit_rows(|key, stored| {
        if !keeps(key) {
            return Ok(());
        }
        ingestion.write(&forms::row_key(key)[..], stored).map_err(failed())
    })?;
    ingestion.finish().map_err(failed())
}
