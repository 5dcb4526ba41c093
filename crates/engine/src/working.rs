//! Working copies: the rows that a batch has changed, over the rows as they were.

#[cfg(test)]
mod tests;

use foldhash::fast::FixedState;
use indexmap::IndexMap;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_machine::{TenantId, Time};
use switchward_state::catalogue::{ApiKey, Role};
use switchward_state::seal::KeyRing;
use switchward_state::{
    Changes, Decision, IndexKey, Key, Kind, ReadRows, Row, View, ViewError, WriteRows, apply_decision,
    may_be_indexed,
};

/// The kinds of row that a batch keeps when it has read them: each command reads them several times, or all commands do. A
/// session's data, history and open items are not among them: of a thousand commands they would take a gigabyte.
const READ_ONCE: [Kind; 6] =
    [Kind::Clock, Kind::Level, Kind::Machine, Kind::Run, Kind::Session, Kind::Tenancy];

/// How many rows of its own a command usually reads or changes.
const ROWS_USUAL: usize = 4;
/// How many rows all commands of a batch usually share.
const ROWS_SHARED_USUAL: usize = 8;

/// The rows that a decision changes.
///
/// # Errors
/// A row cannot be read, or the decision does not fit the rows; the replica must stop.
pub fn evolve(decision: &Decision, view: &dyn View) -> Result<Changes, ViewError> {
    evolve_with_before(decision, view).map(|(changes, _)| changes)
}

/// The same, with what is known of each of these rows as it was before, in the same order.
///
/// # Errors
/// As [`evolve`].
pub fn evolve_with_before(
    decision: &Decision,
    view: &dyn View,
) -> Result<(Changes, Vec<RowBefore>), ViewError> {
    let mut rows = Working::of_batch(view, decision.turns.len());
    apply_decision(&mut rows, decision)?;
    Ok(rows.into_changes())
}

/// What is known of a changed row as it was before, so that its index entries then can be computed without another read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowBefore {
    /// It was not read, or its kind is in no index.
    NotRead,
    /// It was this; `None` if there was none.
    Read(Option<Arc<Row>>),
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
    /// As it was before the batch, once it is changed.
    before: RowBefore,
}

impl Known {
    /// A row as it is before the batch.
    fn unchanged(row: Option<Arc<Row>>) -> Self {
        Self { row, is_changed: false, before: RowBefore::NotRead }
    }

    /// The batch changes the row, which has this key.
    fn change(&mut self, key: &Key) {
        if !self.is_changed && may_be_indexed(key) {
            self.before = RowBefore::Read(self.row.clone());
        }
        self.is_changed = true;
    }
}

impl<'a> Working<'a> {
    /// Nothing is changed yet. Each read of an unchanged row goes to the rows below.
    pub(crate) fn new(base: &'a dyn View) -> Self {
        Self { base, keeps_reads: false, known: RefCell::default() }
    }

    /// The copies of a batch, whose commands read many of the same rows. The rows below must not change meanwhile: those that
    /// are read again and again, such as the machine's, are read from there once, and kept until the batch ends.
    pub(crate) fn of_batch(base: &'a dyn View, commands: usize) -> Self {
        let rows = commands.saturating_mul(ROWS_USUAL).saturating_add(ROWS_SHARED_USUAL);
        let known = IndexMap::with_capacity_and_hasher(rows, FixedState::default());
        Self { base, keeps_reads: true, known: RefCell::new(known) }
    }

    /// What was changed, and what is known of each of these rows as it was before.
    pub(crate) fn into_changes(self) -> (Changes, Vec<RowBefore>) {
        let known = self.known.into_inner();
        let mut changed: Vec<(Key, Known)> = Vec::with_capacity(known.len());
        changed.extend(known.into_iter().filter(|(_, known)| known.is_changed));
        changed.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        changed.into_iter().map(|(key, known)| ((key, known.row), known.before)).unzip()
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
        let all = self.known.get_mut();
        if let Some(at) = all.get_index_of(&key) {
            let known = &mut all[at];
            known.change(&key);
            known.row = row;
        } else {
            all.insert(key, Known { row, is_changed: true, before: RowBefore::NotRead });
        }
    }
}

impl ReadRows for Working<'_> {
    fn get(&self, key: &Key) -> Result<Option<Arc<Row>>, ViewError> {
        if let Some(known) = self.known.borrow().get(key) {
            return Ok(known.row.clone());
        }
        let row = self.base.row(key)?;
        if self.keeps_reads && READ_ONCE.into_iter().any(|kind| key.is(kind)) {
            self.known.borrow_mut().insert(key.clone(), Known::unchanged(row.clone()));
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
        let all = self.known.get_mut();
        let at = match all.get_index_of(key) {
            Some(at) => at,
            None => all.insert_full(key.clone(), Known::unchanged(self.base.row(key)?)).0,
        };
        let known = &mut all[at];
        known.change(key);
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
