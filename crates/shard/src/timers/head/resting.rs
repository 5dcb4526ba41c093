//! Entries that are left alone for a while.

use std::collections::{BTreeMap, BTreeSet};
use switchward_state::Key;
use tokio::time::Instant;

use crate::limits::REFUSED_MAX;

/// See the module.
#[derive(Default)]
pub(super) struct Resting {
    until: BTreeMap<Key, Instant>,
    first: BTreeSet<(Instant, Key)>,
}

impl Resting {
    /// Lets an entry rest. Returns false if there is no capacity for it.
    pub(super) fn put(&mut self, entry: Key, until: Instant) -> bool {
        self.remove(&entry);
        if self.until.len() >= REFUSED_MAX {
            return false;
        }
        self.first.insert((until, entry.clone()));
        self.until.insert(entry, until);
        true
    }

    pub(super) fn holds(&self, entry: &Key) -> bool {
        self.until.contains_key(entry)
    }

    pub(super) fn remove(&mut self, entry: &Key) -> bool {
        let Some((entry, until)) = self.until.remove_entry(entry) else { return false };
        self.first.remove(&(until, entry))
    }

    /// Takes out the entries that have rested.
    pub(super) fn wake(&mut self, now: Instant) -> Vec<Key> {
        let mut woken = Vec::new();
        while self.first.first().is_some_and(|(until, _)| *until <= now)
            && let Some((_, entry)) = self.first.pop_first()
        {
            self.until.remove(&entry);
            woken.push(entry);
        }
        woken
    }

    /// When the first of them has rested.
    pub(super) fn first(&self) -> Option<Instant> {
        self.first.first().map(|(until, _)| *until)
    }

    pub(super) fn len(&self) -> usize {
        self.until.len()
    }
}
