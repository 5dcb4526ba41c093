//! Working copies: the rows that a batch has changed, over the rows as they were.

#[cfg(test)]
mod tests;

use foldhash::fast::FixedState;
use indexmap::IndexMap;
use indexmap::map::Entry;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_machine::{TenantId, Time};
use switchward_state::catalogue::{ApiKey, Role};
use switchward_state::seal::KeyRing;
use switchward_state::{
    Changes, Decision, IndexKey, Key, Kind, ReadRows, Row, View, ViewError, WriteRows, apply_decision,
};

/// The kinds of row that a batch keeps when it has read them: each command reads them several times, or all commands do. A
/// session's data, history and open items are not among them: of a thousand commands they would take a gigabyte.
const READ_ONCE: [Kind; 6] =
    [Kind::Clock, Kind::Level, Kind::Machine, Kind::Run, Kind::Session, Kind::Tenancy];

/// The rows that a decision changes.
///
/// # Errors
/// A row cannot be read, or the decision does not fit the rows; the replica must stop.
pub fn evolve(decision: &Decision, view: &dyn View) -> Result<Changes, ViewError> {
    let mut rows = Working::of_batch(view);
    apply_decision(&mut rows, decision)?;
    Ok(rows.into_changes())
}

/// Changed rows over unchanged ones.
pub(crate) struct Working<'a> {
    base: &'a dyn View,
    /// True if rows of [`READ_ONCE`] are kept when they were read, too.
    keeps_reads: bool,
    known: RefCell<IndexMap<Key, Known, FixedState>>,
}

/// A row as the batch has left it; `None` if there is none.
struct Known {
    row: Option<Arc<Row>>,
    /// False if it is as it was before the batch.
    is_changed: bool,
}

impl<'a> Working<'a> {
    /// Nothing is changed yet. Each read of an unchanged row goes to the rows below.
    pub(crate) fn new(base: &'a dyn View) -> Self {
        Self { base, keeps_reads: false, known: RefCell::default() }
    }

    /// The copies of a batch, whose commands read many of the same rows. The rows below must not change meanwhile: those that
    /// are read again and again, such as the machine's, are read from there once, and kept until the batch ends.
    pub(crate) fn of_batch(base: &'a dyn View) -> Self {
        Self { keeps_reads: true, ..Self::new(base) }
    }

    /// What was changed.
    pub(crate) fn into_changes(self) -> Changes {
        let known = self.known.into_inner().into_iter();
        let mut changes: Changes =
            known.filter(|(_, known)| known.is_changed).map(|(key, known)| (key, known.row)).collect();
        changes.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        changes
    }

    /// Returns true if a key other than that of this id makes somebody an admin of the tenant at this time.
    pub(crate) fn has_other_admin(&self, tenant: TenantId, id: &str, now: Time) -> Result<bool, ViewError> {
        let counts =
            |key: &ApiKey| key.tenant == tenant && key.role == Role::Admin && key.id != id && key.works(now);
        // The index is as it was before the batch: what the batch has changed is looked at here, and passed over there.
        let known = self.known.borrow();
        let changed = |key: &Key| known.get(key).is_some_and(|known| known.is_changed);
        let keys = known.iter().filter(|(key, known)| key.is(Kind::ApiKey) && known.is_changed);
        if keys.flat_map(|(_, known)| &known.row).any(|row| matches!(&**row, Row::ApiKey(key) if counts(key)))
        {
            return Ok(true);
        }
        let (prefix, mut after) = (IndexKey::admins(tenant), None);
        loop {
            let mut next = None;
            self.base.scan(&prefix, after.as_deref(), &mut |entry, _| {
                next = Some(entry.clone());
                ControlFlow::Break(())
            })?;
            let Some(entry) = next else { return Ok(false) };
            let key = Key::api_key(IndexKey::admin_of(&entry).unwrap_or_default());
            if key != Key::api_key(id) && !changed(&key) {
                // The others do not work longer than this one.
                let row = self.base.row(&key)?;
                return Ok(matches!(row.as_deref(), Some(Row::ApiKey(key)) if counts(key)));
            }
            after = Some(entry.as_bytes().to_vec());
        }
    }

    fn change(&mut self, key: Key, row: Option<Arc<Row>>) {
        self.known.get_mut().insert(key, Known { row, is_changed: true });
    }
}

impl ReadRows for Working<'_> {
    fn get(&self, key: &Key) -> Result<Option<Arc<Row>>, ViewError> {
        if let Some(known) = self.known.borrow().get(key) {
            return Ok(known.row.clone());
        }
        let row = self.base.row(key)?;
        if self.keeps_reads && READ_ONCE.into_iter().any(|kind| key.is(kind)) {
            let known = Known { row: row.clone(), is_changed: false };
            self.known.borrow_mut().insert(key.clone(), known);
        }
        Ok(row)
    }

    fn key_ring(&self) -> &KeyRing {
        self.base.ring()
    }

    #[cfg(feature = "planted")]
    fn plants(&self, bug: switchward_state::planted::Bug) -> bool {
        self.base.planted() == Some(bug)
    }
}

impl WriteRows for Working<'_> {
    fn get_mut(&mut self, key: &Key) -> Result<&mut Row, ViewError> {
        let known = match self.known.get_mut().entry(key.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(Known { row: self.base.row(key)?, is_changed: false }),
        };
        known.is_changed = true;
        let row = known.row.as_mut().map(Arc::make_mut);
        row.ok_or_else(|| ViewError(format!("key {key:?} holds no row")))
    }

    fn put(&mut self, key: Key, row: Row) {
        self.change(key, Some(Arc::new(row)));
    }

    fn delete(&mut self, key: Key) {
        self.change(key, None);
    }
}
