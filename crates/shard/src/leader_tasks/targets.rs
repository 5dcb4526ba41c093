//! The shards that effects are relayed to. A shard that cannot take any for a while leaves the capacity to the others.

use std::collections::{BTreeMap, HashMap};
use switchward_state::Key;
use tokio::time::Instant;

use crate::limits::{RELAY_TARGET_IN_FLIGHT_MAX, RELAY_TARGET_REST, RELAY_TARGETS_MAX};

/// The targets by the numbers of their groups.
#[derive(Debug, Default)]
pub(super) struct Targets {
    /// The targets of effects that were passed over, by the effects' rows.
    passed_over: HashMap<Key, u64>,
    /// The number of effects on their way to each target.
    under_way: BTreeMap<u64, usize>,
    /// Targets that failed to take an effect and have taken none since, with the end of their rest.
    rests: BTreeMap<u64, Instant>,
}

impl Targets {
    /// The target of an effect that was passed over before; `None` if it is not remembered.
    pub(super) fn of(&self, effect: &Key) -> Option<u64> {
        self.passed_over.get(effect).copied()
    }

    /// Remembers the targets of effects that were passed over.
    pub(super) fn pass_over(&mut self, effects: Vec<(Key, u64)>) {
        if self.passed_over.len().saturating_add(effects.len()) > RELAY_TARGETS_MAX {
            self.passed_over.clear();
        }
        self.passed_over.extend(effects);
    }

    /// Returns true if a target may get one more effect besides those under way and `picked` ones: at most
    /// [`RELAY_TARGET_IN_FLIGHT_MAX`]. A target that failed gets none for [`RELAY_TARGET_REST`], and then one at a time
    /// until it takes one.
    pub(super) fn admits(&self, target: u64, picked: usize, now: Instant) -> bool {
        let taken = picked.saturating_add(self.under_way.get(&target).copied().unwrap_or(0));
        match self.rests.get(&target) {
            Some(until) => now >= *until && taken == 0,
            None => taken < RELAY_TARGET_IN_FLIGHT_MAX,
        }
    }

    /// Counts an effect that is under way from now on.
    pub(super) fn begin(&mut self, effect: &Key, target: u64) {
        self.passed_over.remove(effect);
        *self.under_way.entry(target).or_default() += 1;
    }

    /// Counts an effect that is no longer under way.
    pub(super) fn end(&mut self, target: u64) {
        if let Some(count) = self.under_way.get_mut(&target) {
            *count = count.saturating_sub(1);
        }
    }

    /// Notes that a target has answered.
    pub(super) fn answered(&mut self, target: u64) {
        self.rests.remove(&target);
    }

    /// Notes that a target could not take an effect.
    pub(super) fn rest(&mut self, target: u64, now: Instant) {
        self.rests.insert(target, now + RELAY_TARGET_REST);
    }
}
