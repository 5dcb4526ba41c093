use super::{Record, State, gate::Gate, rows::Tables, scan::stored_range};
use crate::{SnapshotFile, Snapshots, StoreError, forms};
use fjall::{Keyspace, Readable};
use std::{mem, ops::Bound};

impl<R: Record> State<R> {
    /// Flushes, and writes the table as it is then, with its applied blob, to a new snapshot file. Later writes are
    /// not delayed and not in it. Waits for a [`Flush`](super::Flush) that has begun, so the caller must not hold
    /// one.
    ///
    /// # Errors
    /// If the state cannot be read or the file cannot be written.
    pub fn export(&self, to: &Snapshots) -> Result<SnapshotFile, StoreError> {
        if let Some(flush) = self.freeze(Gate::enter(&self.0.gate)) {
            flush.run()?;
        }
        let (disk, snapshot) = {
            let tables = self.0.tables.read();
            (tables.disk().clone(), self.0.store.database().snapshot())
        };
        let failed = || StoreError::database("read a state");
        let marker = snapshot.get(&disk, forms::MARKER_KEY).map_err(failed())?;
        let applied = marker.map_or(Ok(None), |marker| forms::parse_marker(&marker))?;
        let mut writer = to.write(self.0.group, applied)?;
        for row in snapshot.range(&disk, stored_range(Bound::Unbounded, Bound::Unbounded)) {
            let (key, stored) = row.into_inner().map_err(failed())?;
            writer.row(&key[1..], &stored)?;
        }
        writer.finish()?.0.publish()
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
        let pass = Gate::enter(&self.0.gate);
        let generation = self.0.tables.read().generation + 1;
        let disk = self.0.store.keyspace(self.0.group, generation)?;
        if let Err(error) = fill(&disk, snapshot) {
            self.0.store.remove(disk)?;
            return Err(error);
        }
        let fresh = Tables::new(disk, generation, snapshot.applied().cloned());
        let old = {
            let mut tables = self.0.tables.write();
            self.0.clean.lock().clear();
            mem::replace(&mut *tables, fresh)
        };
        drop(pass);
        let Some(disk) = old.disk else { return Ok(()) };
        if let Err(error) = self.0.store.remove(disk) {
            tracing::warn!(%error, "failed to remove an old state; it stays on disk until its group is reopened");
        }
        Ok(())
    }
}

/// Puts the rows of a snapshot and its applied blob into an empty keyspace, in one step.
pub(super) fn fill(disk: &Keyspace, snapshot: &SnapshotFile) -> Result<(), StoreError> {
    let failed = || StoreError::database("install a snapshot");
    let mut ingestion = disk.start_ingestion().map_err(failed())?;
    ingestion.write(forms::MARKER_KEY, forms::marker(snapshot.applied())).map_err(failed())?;
    snapshot.visit_rows(|key, stored| ingestion.write(&forms::row_key(key)[..], stored).map_err(failed()))?;
    ingestion.finish().map_err(failed())
}
