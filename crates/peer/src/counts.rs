//! Counts what each of many has at one time, up to a limit.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// How many each has; those that have none are not in it.
pub(crate) struct Counts<K: Ord + Clone>(Arc<Mutex<BTreeMap<K, usize>>>);

impl<K: Ord + Clone> Clone for Counts<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Ord + Clone> Default for Counts<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Ord + Clone> Counts<K> {
    /// Counts one more of `of` until the guard is dropped; `None` if it has `max`.
    pub(crate) fn take(&self, of: K, max: usize) -> Option<Counted<K>> {
        let mut counts = self.0.lock();
        let held = counts.get(&of).copied().unwrap_or_default();
        if held >= max {
            return None;
        }
        counts.insert(of.clone(), held + 1);
        drop(counts);
        Some(Counted { counts: self.clone(), of })
    }
}

/// A guard: its key is counted once less when it is dropped.
pub(crate) struct Counted<K: Ord + Clone> {
    counts: Counts<K>,
    of: K,
}

impl<K: Ord + Clone> Drop for Counted<K> {
    fn drop(&mut self) {
        let mut counts = self.counts.0.lock();
        match counts.get_mut(&self.of) {
            Some(held) if *held > 1 => *held -= 1,
            Some(_) | None => {
                counts.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_own_limit_and_gets_it_back() {
        let counts = Counts::default();
        let held: Vec<_> = (0..2).filter_map(|_| counts.take("a", 2)).collect();
        assert_eq!(held.len(), 2);
        assert!(counts.take("a", 2).is_none());
        assert!(counts.take("b", 2).is_some(), "another one has none");
        drop(held);
        assert!(counts.0.lock().is_empty());
        assert!(counts.take("a", 1).is_some());
    }
}
