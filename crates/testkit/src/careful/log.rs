//! The log of each shard: a replay of it must build the rows that were built live.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use switchward_engine::evolve;
use switchward_scenario::{Broken, ShardIx};
use switchward_state::{Decision, Event};

use super::{Careful, CarefulMemory};
use crate::{Rows, kind};

/// The entries of every shard's log, in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct Log(BTreeMap<ShardIx, Vec<Arc<[u8]>>>);

impl Log {
    pub(super) fn add(&mut self, at: ShardIx, entry: &[u8]) {
        self.0.entry(at).or_default().push(Arc::from(entry));
    }

    fn decisions(&self, at: ShardIx) -> impl Iterator<Item = Result<Decision, Broken>> {
        let entries = self.0.get(&at).map(Vec::as_slice).unwrap_or_default();
        entries.iter().map(|entry| Decision::decode(entry).map_err(|error| Broken(error.0)))
    }
}

impl Careful {
    /// The kinds of all events that were decided; see [`kind`].
    ///
    /// # Errors
    /// An entry of a log cannot be decoded.
    pub fn kinds(&self) -> Result<BTreeSet<String>, Broken> {
        let mut kinds = BTreeSet::new();
        for at in self.log.0.keys() {
            for decision in self.log.decisions(*at) {
                let decision = decision?;
                let events = decision.turns.iter().flat_map(|turn| &turn.events);
                kinds.extend(events.map(|event: &Event| kind(event)));
            }
        }
        Ok(kinds)
    }
}

/// Builds the rows of every shard from its log, and compares them with those that were built live.
///
/// # Errors
/// A row differs.
pub fn replayed(memory: &CarefulMemory) -> Result<(), Broken> {
    for (at, shard) in memory.shards().iter().enumerate() {
        let mut rows = Rows::default();
        for decision in memory.observer().log.decisions(at) {
            rows.apply(evolve(&decision?, &rows)?);
        }
        let live: Rows = shard.rows().map(|(key, row)| (key.clone(), Arc::new(row.clone()))).collect();
        rows.same(&live, "a replay builds other rows").map_err(Broken)?;
    }
    Ok(())
}
