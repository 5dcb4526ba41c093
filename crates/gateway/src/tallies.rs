//! Counts what each of many has at one time, up to a limit.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// How much each has; those that have nothing are not in it.
pub(crate) struct Tallies<K>(Arc<Mutex<HashMap<K, usize>>>);

impl<K> Clone for Tallies<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> Default for Tallies<K> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(HashMap::new())))
    }
}

impl<K: Eq + Hash + Clone> Tallies<K> {
    /// Adds this much to what `of` has until the guard is dropped; `None` if it then had more than `most`.
    pub(crate) fn add(&self, of: K, amount: usize, most: usize) -> Option<Tallied<K>> {
        let mut tallied = Tallied { tallies: self.clone(), of, amount: 0 };
        (tallied.grow(amount) <= most).then_some(tallied)
    }

    /// Begins with nothing.
    pub(crate) fn begin(&self, of: K) -> Tallied<K> {
        Tallied { tallies: self.clone(), of, amount: 0 }
    }
}

/// What is counted, until this is dropped.
pub(crate) struct Tallied<K: Eq + Hash + Clone> {
    tallies: Tallies<K>,
    of: K,
    amount: usize,
}

impl<K: Eq + Hash + Clone> Tallied<K> {
    /// Adds more. Returns how much its owner has.
    pub(crate) fn grow(&mut self, amount: usize) -> usize {
        if amount == 0 {
            return self.tallies.0.lock().get(&self.of).copied().unwrap_or_default();
        }
        self.amount += amount;
        let mut tallies = self.tallies.0.lock();
        let held = tallies.entry(self.of.clone()).or_default();
        *held += amount;
        *held
    }
}

impl<K: Eq + Hash + Clone> Drop for Tallied<K> {
    fn drop(&mut self) {
        let mut tallies = self.tallies.0.lock();
        match tallies.get_mut(&self.of) {
            Some(held) if *held > self.amount => *held -= self.amount,
            Some(_) if self.amount > 0 => {
                tallies.remove(&self.of);
            }
            Some(_) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_own_limit_and_gets_it_back() {
        let tallies = Tallies::default();
        let held: Vec<_> = (0..2).filter_map(|_| tallies.add("a", 2, 4)).collect();
        assert_eq!(held.len(), 2);
        assert!(tallies.add("a", 1, 4).is_none());
        assert!(tallies.add("b", 4, 4).is_some());
        let mut grown = tallies.begin("a");
        assert_eq!((grown.grow(0), grown.grow(3)), (4, 7));
        drop(held);
        assert!(tallies.add("a", 1, 4).is_some(), "three are left");
        drop(grown);
        assert!(tallies.0.lock().is_empty());
    }
}
