//! The counters of the bus in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use crate::bus::{Count, Counting};
use crate::limits::COUNTED_IDS_MAX;

/// All counters, by name.
#[derive(Default)]
pub(super) struct Counters {
    known: BTreeMap<String, Ids>,
    /// When each of `known` is forgotten.
    ends: BTreeSet<(Instant, String)>,
    /// The ids in all of them.
    ids: usize,
}

/// The ids in one counter.
struct Ids {
    ids: BTreeSet<String>,
    /// When it is forgotten.
    end: Instant,
}

impl Counters {
    /// Counts an id, and keeps its counters for this long.
    pub(super) fn count(&mut self, count: &Count, now: Instant, kept: Duration) -> Counting {
        while let Some((end, _)) = self.ends.first()
            && *end <= now
        {
            self.forget_first();
        }
        let reached = |name: &str, most: u32| match self.known.get(name) {
            Some(known) => {
                !known.ids.contains(&count.id) && u32::try_from(known.ids.len()).unwrap_or(u32::MAX) >= most
            }
            None => most == 0,
        };
        if let Some(at) = count.counters.iter().position(|it| reached(&it.name, it.most)) {
            return Counting::Reached(at);
        }
        for counter in &count.counters {
            self.add(&counter.name, &count.id, now + kept);
        }
        while self.ids > COUNTED_IDS_MAX && self.forget_first() {}
        Counting::Counted
    }

    /// Removes an id.
    pub(super) fn uncount(&mut self, count: &Count) {
        for counter in &count.counters {
            let Some(known) = self.known.get_mut(&counter.name) else { continue };
            self.ids -= usize::from(known.ids.remove(&count.id));
            if known.ids.is_empty() {
                self.ends.remove(&(known.end, counter.name.clone()));
                self.known.remove(&counter.name);
            }
        }
    }

    fn add(&mut self, name: &str, id: &str, end: Instant) {
        let known = self.known.entry(name.to_owned()).or_insert(Ids { ids: BTreeSet::new(), end });
        self.ids += usize::from(known.ids.insert(id.to_owned()));
        self.ends.remove(&(known.end, name.to_owned()));
        known.end = end;
        self.ends.insert((end, name.to_owned()));
    }

    /// Forgets the counter that ends first. Returns false if there is none.
    fn forget_first(&mut self) -> bool {
        let Some((_, name)) = self.ends.pop_first() else { return false };
        let known = self.known.remove(&name);
        self.ids -= known.map_or(0, |known| known.ids.len());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::Counter;

    const KEPT: Duration = Duration::from_secs(60);

    fn count(id: usize, name: &str) -> Count {
        let counters = vec![Counter { name: name.to_owned(), most: u32::MAX }];
        Count { id: id.to_string(), counters }
    }

    #[test]
    fn what_ends_first_makes_way_when_there_are_too_many_ids() {
        let (mut counters, now) = (Counters::default(), Instant::now());
        for id in 0..10 {
            counters.count(&count(id, "first"), now, KEPT);
        }
        for id in 0..COUNTED_IDS_MAX - 10 {
            counters.count(&count(id, "second"), now + Duration::from_secs(1), KEPT);
        }
        assert_eq!((counters.known.len(), counters.ids), (2, COUNTED_IDS_MAX));
        counters.count(&count(0, "third"), now + Duration::from_secs(1), KEPT);
        assert_eq!(counters.known.keys().collect::<Vec<_>>(), ["second", "third"]);
        assert_eq!((counters.ids, counters.ends.len()), (COUNTED_IDS_MAX - 9, 2));
    }

    #[test]
    fn nothing_is_left_of_what_has_ended_or_is_not_counted_any_more() {
        let (mut counters, now) = (Counters::default(), Instant::now());
        counters.count(&count(1, "a"), now, KEPT);
        counters.count(&count(2, "b"), now, KEPT);
        counters.uncount(&count(2, "b"));
        counters.uncount(&count(2, "b"));
        assert_eq!((counters.ids, counters.ends.len()), (1, 1));
        counters.count(&count(3, "c"), now + KEPT, KEPT);
        assert_eq!(counters.known.keys().collect::<Vec<_>>(), ["c"]);
        assert_eq!((counters.ids, counters.ends.len()), (1, 1));
    }
}
