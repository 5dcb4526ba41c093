//! A cut: the rows of several groups as they were at one moment.

use super::{Record, State, flush::Flush, gate::Gate, scan::stored_range, store::StoreInner};
use crate::{
    GroupId, StoreError,
    snapshot::{Header, SnapshotWriter},
};
use fjall::{Keyspace, Readable, Snapshot};
use std::{
    io::Write,
    ops::Bound,
    path::Path,
    sync::{Arc, atomic::Ordering::SeqCst},
};

/// The rows of several groups at one moment. Later writes do not show in it and are not delayed by it; the disk keeps
/// what they replace as long as it exists.
pub struct Cut {
    snapshot: Snapshot,
    groups: Vec<(GroupId, Keyspace)>,
    store: Arc<StoreInner>,
}

impl Cut {
    /// Takes a cut of states of one store. `at_once` must call its argument once, while nothing is applied to any of
    /// them: that takes some microseconds. The rows are written to the disk afterwards.
    ///
    /// # Errors
    /// If there is no state, or the disk cannot be written.
    pub fn take<R: Record>(
        states: &[State<R>],
        at_once: impl FnOnce(&mut dyn FnMut()),
    ) -> Result<Self, StoreError> {
        let none = || StoreError::damaged("cut", "it contains no state");
        let store = Arc::clone(&states.first().ok_or_else(none)?.0.store);
        // Opening the database again waits for all flushes, too.
        let turn = store.reopening.turn();
        let passes: Vec<_> = states.iter().map(|state| Gate::enter(&state.0.gate)).collect();
        let mut frozen: Vec<Option<Flush<R>>> = Vec::with_capacity(states.len());
        at_once(&mut || frozen = states.iter().map(State::freeze_inside).collect());
        frozen.into_iter().flatten().try_for_each(Flush::run)?;
        let snapshot = store.database().snapshot();
        let groups =
            states.iter().map(|state| (state.0.group, state.0.tables.read().disk().clone())).collect();
        drop(passes);
        drop(turn);
        store.cuts.fetch_add(1, SeqCst);
        Ok(Self { snapshot, groups, store })
    }

    /// The groups, in the order of the given states.
    pub fn groups(&self) -> impl Iterator<Item = GroupId> {
        self.groups.iter().map(|(group, _)| *group)
    }

    /// Writes the rows of a group as a snapshot file that names no position of a log, and returns their number.
    /// `path` is for error messages.
    ///
    /// # Errors
    /// If the group is not in the cut, the rows cannot be read, or `to` cannot be written.
    pub fn write(&self, group: GroupId, path: &Path, to: &mut dyn Write) -> Result<u64, StoreError> {
        let none = || StoreError::damaged("cut", format!("it does not contain the group {}", group.0));
        let (_, disk) = self.groups.iter().find(|(known, _)| *known == group).ok_or_else(none)?;
        let mut writer = SnapshotWriter::new(to, path, &Header { group, applied: None })?;
        for row in self.snapshot.range(disk, stored_range(Bound::Unbounded, Bound::Unbounded)) {
            let (key, stored) = row.into_inner().map_err(StoreError::database("read rows"))?;
            writer.row(&key[1..], &stored)?;
        }
        Ok(writer.finish()?.1)
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        self.store.cuts.fetch_sub(1, SeqCst);
    }
}
