//! Opening the states' database again: after a write that found no space fjall refuses all further ones.
//!
//! Until there is space again, rows wait in memory and the old database is read from. Nothing is lost: the log has
//! every row that was not written. Rows that were written and not synced may be gone when the database is open again,
//! if the disk has refused them since: the process must end then, and starts from what is there.

use super::{
    Inner, Record, State,
    gate::{Gate, Pass},
    rows::Tables,
};
use crate::{Disk, GroupId, StoreError, disk::Refusals, forms};
use fjall::Keyspace;
use parking_lot::{Mutex, MutexGuard, RwLockWriteGuard};
use std::{
    collections::HashMap,
    error::Error,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// The state that is needed to open the database again.
#[derive(Default)]
pub(super) struct Reopening {
    /// True if the database refuses writes.
    wanted: AtomicBool,
    /// One at a time, and none while a state is opened.
    turn: Mutex<()>,
    states: Mutex<HashMap<GroupId, Weak<dyn Holder>>>,
    /// Of writes of rows, since one has succeeded.
    refusals: Mutex<Refusals>,
    /// True once the disk has refused rows too often although it has space.
    in_vain: AtomicBool,
}

/// A state of any row type.
trait Holder: Send + Sync {
    /// Waits until no flush is under way, and lets none begin.
    fn enter(&self) -> Pass;
    /// Closes the keyspace; readers wait until it is opened again.
    fn close(&self) -> Box<dyn Closed + '_>;
}

/// A state that is closed.
trait Closed {
    fn generation(&self) -> u64;
    fn open(&mut self, disk: Keyspace) -> Result<(), StoreError>;
    /// Leaves the keyspace closed, since the database could not be opened again: who needs it gets this error.
    fn lose(&mut self, error: &StoreError);
}

impl<R: Record> Holder for Inner<R> {
    fn enter(&self) -> Pass {
        Gate::enter(&self.gate)
    }

    fn close(&self) -> Box<dyn Closed + '_> {
        let mut tables = self.tables.write();
        tables.disk = Err(closed());
        Box::new(tables)
    }
}

impl<R: Record> Closed for RwLockWriteGuard<'_, Tables<R>> {
    fn generation(&self) -> u64 {
        self.generation
    }

    fn open(&mut self, disk: Keyspace) -> Result<(), StoreError> {
        let marker = disk.get(forms::MARKER_KEY).map_err(StoreError::database("read a state"))?;
        self.reopened(marker.map_or(Ok(None), |marker| forms::parse_marker(&marker))?)?;
        self.disk = Ok(disk);
        Ok(())
    }

    fn lose(&mut self, error: &StoreError) {
        self.disk = Err(error.clone());
    }
}

/// What stands for something that is closed, while nobody can see it.
pub(super) fn closed() -> StoreError {
    StoreError::database("read the state")(fjall::Error::Poisoned)
}

impl Reopening {
    pub(super) fn add<R: Record>(&self, state: &Arc<Inner<R>>) {
        let holder = Arc::downgrade(state);
        self.states.lock().insert(state.group, holder);
    }

    /// Keeps the database open as long as the result lives. A task that holds keyspaces of a state that is not added yet
    /// and asks for the database would otherwise wait for the reopening, and the reopening for the task.
    pub(super) fn hold_off(&self) -> MutexGuard<'_, ()> {
        self.turn.lock()
    }

    /// Returns true if the database refuses writes and waits to be opened again.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.load(Relaxed)
    }

    /// Takes note of an attempt to write rows of this many bytes, with its error if it has failed.
    pub(super) fn tried(&self, disk: &Disk, bytes: usize, failed: Option<&StoreError>) {
        let mut refusals = self.refusals.lock();
        let Some(error) = failed else {
            *refusals = Refusals::default();
            return;
        };
        if refusals.end(disk, error, bytes as u64) {
            self.in_vain.store(true, Relaxed);
        }
    }

    pub(super) fn remove(&self, group: GroupId) {
        self.states.lock().remove(&group);
    }
}

impl<R: Record> State<R> {
    /// Returns true if a failed flush is due to a full disk. The rows then wait in memory until [`State::recover`]
    /// has opened the database again. Not without an end, if the file system has space for them.
    pub fn waits_for_space(&self, error: &(dyn Error + 'static)) -> bool {
        let reopening = &self.0.store.reopening;
        let waits = !reopening.in_vain.load(Relaxed) && self.0.store.dir.disk().caused(error);
        if waits {
            reopening.wanted.store(true, Relaxed);
        }
        waits
    }

    /// The same for a failed sync: only if the database had given up before, as a sync that failed loses data.
    pub fn gave_up_for_space(&self, error: &(dyn Error + 'static)) -> bool {
        let gave_up = self.0.store.dir.disk().gave_up(error);
        if gave_up {
            self.0.store.reopening.wanted.store(true, Relaxed);
        }
        gave_up
    }

    /// Opens the database of all states again if one of them could not write to it and there is space now. Returns
    /// false if there is none yet.
    ///
    /// # Errors
    /// If it cannot be opened, or lacks rows that were written: the process must end. Who needs the disk gets the
    /// same error from then on.
    pub fn recover(&self) -> Result<bool, StoreError> {
        let store = &self.0.store;
        if !store.reopening.wanted.load(Relaxed) {
            return Ok(true);
        }
        if !store.dir.disk().admits_maintenance() {
            return Ok(false);
        }
        let _turn = store.reopening.turn.lock();
        if !store.reopening.wanted.load(Relaxed) {
            return Ok(true);
        }
        let states: Vec<_> = {
            let states = store.reopening.states.lock();
            states.iter().filter_map(|(group, state)| Some((*group, state.upgrade()?))).collect()
        };
        let passes: Vec<Pass> = states.iter().map(|(_, state)| state.enter()).collect();
        let mut closed: Vec<_> = states.iter().map(|(group, state)| (*group, state.close())).collect();
        let opened = store.reopen().and_then(|()| {
            closed.iter_mut().try_for_each(|(group, state)| {
                let disk = store.keyspace(*group, state.generation())?;
                state.open(disk)
            })
        });
        if let Err(error) = opened {
            // Before the locks are free: who waits for them must not go on with rows that are not the last ones.
            closed.iter_mut().for_each(|(_, state)| state.lose(&error));
            store.lose(&error);
            return Err(error);
        }
        store.reopening.wanted.store(false, Relaxed);
        drop(closed);
        drop(passes);
        // What the disk itself says is logged by who monitors it.
        tracing::info!("the state store was opened again, after a write that found no space");
        Ok(true)
    }
}
