//! One shard: rows in a map, with their indices.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_engine::{decide, evolve, session_view};
use switchward_machine::{TenantId, Time};
use switchward_state::run::{EndComment, FaultCause, RunEvent};
use switchward_state::seal::KeyRing;
use switchward_state::{
    Changes, Command, Decision, Event, Key, Kind, Reply, Row, Scope, View, ViewError, index_keys,
};

use crate::system::{Answer, Broken, ring};

/// The rows of a shard, including index entries.
#[derive(Debug, Clone, Default)]
pub struct Shard {
    rows: BTreeMap<Key, Arc<Row>>,
    decisions: u64,
}

impl Shard {
    /// The number of decisions that have changed it.
    #[must_use]
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// All rows, in the order of their keys.
    pub fn rows(&self) -> impl Iterator<Item = (&Key, &Row)> {
        self.rows.iter().map(|(key, row)| (key, &**row))
    }

    /// The same rows as they are held. A row is replaced and never changed, so the same allocation has the
    /// same content.
    pub fn shared_rows(&self) -> impl Iterator<Item = (&Key, &Arc<Row>)> {
        self.rows.iter()
    }

    /// Returns true if both shards hold the same allocations under the same keys.
    #[must_use]
    pub fn shares_all_rows(&self, other: &Self) -> bool {
        let mut pairs = self.rows.iter().zip(&other.rows);
        self.rows.len() == other.rows.len()
            && pairs.all(|(own, theirs)| own.0 == theirs.0 && Arc::ptr_eq(own.1, theirs.1))
    }

    /// Creates the shard again from rows that were read, and rebuilds the indices from them: index entries among `rows`
    /// are left out.
    #[must_use]
    pub fn restored(&self, rows: impl IntoIterator<Item = (Key, Arc<Row>)>) -> Self {
        let mut restored = Self { rows: BTreeMap::new(), decisions: self.decisions };
        for (key, row) in rows.into_iter().filter(|(key, _)| !key.is(Kind::Index)) {
            restored.index(&key, &row);
            restored.rows.insert(key, row);
        }
        restored
    }

    /// Decides one command and applies the decision, as it would be read from a log. Returns the log's entry too, if there
    /// is a decision.
    pub(super) fn decide(
        &mut self,
        command: &Command,
        now: Time,
    ) -> Result<(Answer, Option<Vec<u8>>), Broken> {
        let mut decided = decide(std::slice::from_ref(command), self, now)?;
        let answer = decided.answers.pop().ok_or_else(|| Broken("a command was not answered".into()))?;
        let Some(decision) = decided.decision else { return Ok((answer, None)) };
        let bytes = decision.encode();
        let read = Decision::decode(&bytes).map_err(|error| Broken(error.0))?;
        if read != decision || read.encode() != bytes {
            return Err(Broken(format!("a decision differs after encoding and decoding: {decision:?}")));
        }
        drains(&read)?;
        let changes = evolve(&read, self)?;
        self.apply(changes);
        self.decisions += 1;
        self.agrees(command, &answer)?;
        Ok((answer, Some(bytes)))
    }

    /// The state that `decide` saw at the end of its turn must be the one that `evolve` makes of its decision.
    fn agrees(&self, command: &Command, answer: &Answer) -> Result<(), Broken> {
        let Scope::Session(id) = command.scope else { return Ok(()) };
        let claimed = match answer {
            Err(rejection) => {
                return Err(Broken(format!("a refusal was recorded in the log: {rejection:?}")));
            }
            Ok(
                Reply::Session { sequence, .. }
                | Reply::Gate { sequence, .. }
                | Reply::Worked { sequence, .. }
                | Reply::Recorded { sequence, .. }
                | Reply::Replied { sequence, .. }
                | Reply::Effect { sequence, .. }
                | Reply::Metered { sequence, .. },
            ) => *sequence,
            Ok(Reply::Authorized(said)) => said.sequence,
            Ok(
                Reply::Limits(_)
                | Reply::PageCode { .. }
                | Reply::Done
                | Reply::Leased { .. }
                | Reply::Tenant(_)
                | Reply::Key(_)
                | Reply::Version { .. }
                | Reply::Definition(_)
                | Reply::Policy(_)
                | Reply::Assistant(_)
                | Reply::Endpoint(_)
                | Reply::Source(_)
                | Reply::Cluster(_)
                | Reply::Level { .. }
                | Reply::Directory(_)
                | Reply::Retention(_)
                | Reply::Removed { .. },
            ) => return Ok(()),
        };
        let stands = session_view(self, command.tenant, id)?.map(|view| view.session.sequence);
        if stands != Some(claimed) {
            return Err(Broken(format!(
                "the reply has the sequence {claimed}, but the rows have {stands:?}"
            )));
        }
        Ok(())
    }

    fn apply(&mut self, changes: Changes) {
        for (key, row) in changes {
            let before = match row {
                Some(row) => {
                    let before = self.rows.insert(key.clone(), Arc::clone(&row));
                    self.unindex(&key, before.as_deref());
                    self.index(&key, &row);
                    continue;
                }
                None => self.rows.remove(&key),
            };
            self.unindex(&key, before.as_deref());
        }
    }

    fn index(&mut self, key: &Key, row: &Row) {
        for entry in index_keys(key, row) {
            self.rows.insert(entry, Arc::new(Row::Index));
        }
    }

    fn unindex(&mut self, key: &Key, row: Option<&Row>) {
        for entry in row.map(|row| index_keys(key, row)).unwrap_or_default() {
            self.rows.remove(&entry);
        }
    }

    /// The machine of this digest, if the shard has it.
    pub(super) fn machine(
        &self,
        tenant: TenantId,
        digest: switchward_machine::Digest,
    ) -> Option<Arc<switchward_machine::Machine>> {
        match self.rows.get(&Key::machine(tenant, digest)).map(Arc::as_ref) {
            Some(Row::Machine(machine)) => Some(Arc::clone(machine)),
            Some(_) | None => None,
        }
    }

    /// Returns the effect of this key; `None` if it is no longer in the outbox.
    pub(super) fn effect(&self, key: &Key) -> Option<switchward_state::delivery::Effect> {
        match self.rows.get(key).map(Arc::as_ref) {
            Some(Row::Outbox(effect)) => Some(effect.clone()),
            Some(_) | None => None,
        }
    }
}

/// A run that drains without an end reports the nodes of its cycle: the first of them is the last, unless it came to
/// that one for the first time, or there are too many to name.
fn drains(decision: &Decision) -> Result<(), Broken> {
    for event in decision.turns.iter().flat_map(|turn| &turn.events) {
        let Event::Run(RunEvent::Ended { comment: EndComment::Fault(fault), .. }) = event else { continue };
        let FaultCause::Drain { states, more } = &fault.cause else { continue };
        let [first, .., last] = &states[..] else { continue };
        let new = !states[..states.len() - 1].contains(last);
        if first != last && !new && *more == 0 {
            return Err(Broken(format!("an endless drain has the comment {fault:?}")));
        }
    }
    Ok(())
}

impl View for Shard {
    fn row(&self, key: &Key) -> Result<Option<Arc<Row>>, ViewError> {
        Ok(self.rows.get(key).cloned())
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut dyn FnMut(&Key, &Arc<Row>) -> ControlFlow<()>,
    ) -> Result<(), ViewError> {
        let from = after.map_or(prefix, |after| after.max(prefix));
        let from = Key::from_bytes(from).ok_or_else(|| ViewError("the prefix is too short".into()))?;
        for (key, row) in self.rows.range(from..) {
            let bytes = key.as_bytes();
            if !bytes.starts_with(prefix) {
                break;
            }
            if after.is_some_and(|after| bytes <= after) {
                continue;
            }
            if visit(key, row).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn ring(&self) -> &KeyRing {
        ring()
    }
}
