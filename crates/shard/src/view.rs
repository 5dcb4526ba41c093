//! The state store's rows for the engine.

use parking_lot::RwLock;
use std::ops::{Bound, ControlFlow};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use switchward_machine::Time;
use switchward_state::seal::KeyRing;
use switchward_state::{Key, Row, View, ViewError};
use switchward_store::{State, StoreError};

use crate::failure::line;
use crate::record::Stored;

/// Readers hold it shared; applying an entry's rows holds it exclusively.
pub(crate) type Whole = RwLock<()>;

/// One shard's rows.
///
/// Entries become visible in order: a reader that has read anything of an entry finds all of its rows. Two reads may
/// still be of two entries; [`StateView::consistent`] is for rows that must agree.
#[derive(Clone)]
pub struct StateView {
    state: State<Stored>,
    whole: Arc<Whole>,
    ring: KeyRing,
    /// Set when the state store fails, which no command can cause.
    unreadable: Arc<AtomicBool>,
}

impl StateView {
    pub(crate) fn new(
        state: State<Stored>,
        whole: Arc<Whole>,
        ring: KeyRing,
        unreadable: Arc<AtomicBool>,
    ) -> Self {
        Self { state, whole, ring, unreadable }
    }

    /// Reads between two entries. Nothing is applied meanwhile, so it should read a few rows and never scan.
    pub fn consistent<T>(&self, read: impl FnOnce(&dyn View) -> T) -> T {
        let _still = self.whole.read();
        read(self)
    }

    /// The first key after one and before another.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn first_between(&self, after: &[u8], before: &[u8]) -> Result<Option<Key>, ViewError> {
        let mut found = Ok(None);
        let each = |bytes: &[u8], _: &Stored| {
            found = Key::from_bytes(bytes).map(Some).ok_or_else(odd_key);
            ControlFlow::Break(())
        };
        let (from, to) = (Bound::Excluded(after), Bound::Excluded(before));
        self.state.scan(from, to, 1, each).map_err(|error| self.unreadable(&error))?;
        found
    }

    /// The time of the last decision; 0 if nothing was decided.
    ///
    /// # Errors
    /// The row cannot be read.
    pub(crate) fn last_decision(&self) -> Result<Time, ViewError> {
        let row = self.row(&Key::clock())?;
        Ok(if let Some(Row::Clock(at)) = row.as_deref() { *at } else { Time(0) })
    }

    /// The time by which a leader whose clock shows `now` looks for what is due. What was due when it was decided is due
    /// now, even if the leader's clock is behind that of an earlier one.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn due_by(&self, now: Time) -> Result<Time, ViewError> {
        self.last_decision().map(|last| now.max(last))
    }

    fn unreadable(&self, error: &StoreError) -> ViewError {
        self.unreadable.store(true, Ordering::Release);
        ViewError(line(error))
    }
}

fn odd_key() -> ViewError {
    ViewError("a stored key is too short".into())
}

impl View for StateView {
    fn row(&self, key: &Key) -> Result<Option<Arc<Row>>, ViewError> {
        let found = self.state.get(key.as_bytes()).map_err(|error| self.unreadable(&error))?;
        Ok(found.map(|stored| stored.0))
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut dyn FnMut(&Key, &Arc<Row>) -> ControlFlow<()>,
    ) -> Result<(), ViewError> {
        let end = after_prefix(prefix);
        let from = after.map_or(Bound::Included(prefix), Bound::Excluded);
        let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut odd = None;
        let each = |bytes: &[u8], stored: &Stored| match Key::from_bytes(bytes) {
            Some(key) => visit(&key, &stored.0),
            None => {
                odd = Some(odd_key());
                ControlFlow::Break(())
            }
        };
        self.state.scan(from, to, usize::MAX, each).map_err(|error| self.unreadable(&error))?;
        odd.map_or(Ok(()), Err)
    }

    fn ring(&self) -> &KeyRing {
        &self.ring
    }
}

/// The first bytes after everything with this prefix.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}
