//! Pairs of what two machines have under the same key.

use std::collections::{BTreeMap, VecDeque};

/// Positions in two lists.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pairing {
    /// In both, in the order of the list before.
    pub(super) both: Vec<(usize, usize)>,
    /// Only in the list before.
    pub(super) removed: Vec<usize>,
    /// Only in the list after.
    pub(super) added: Vec<usize>,
}

impl Pairing {
    /// Whether those in both are in another order.
    pub(super) fn is_reordered(&self) -> bool {
        !self.both.is_sorted_by_key(|(_, after)| *after)
    }
}

/// Pairs entries with equal keys, the first with the first. Each pass has the keys of both lists, and pairs what the passes
/// before have left.
pub(super) fn pair<K: Ord>(passes: &[(Vec<K>, Vec<K>)]) -> Pairing {
    let (before, after) = passes.first().map_or((0, 0), |(before, after)| (before.len(), after.len()));
    let mut partner: Vec<Option<usize>> = vec![None; before];
    let mut free = vec![true; after];
    for (before, after) in passes {
        let mut positions: BTreeMap<&K, VecDeque<usize>> = BTreeMap::new();
        for (at, key) in after.iter().enumerate().filter(|(at, _)| free[*at]) {
            positions.entry(key).or_default().push_back(at);
        }
        for (partner, key) in partner.iter_mut().zip(before).filter(|(partner, _)| partner.is_none()) {
            *partner = positions.get_mut(key).and_then(VecDeque::pop_front);
            if let Some(at) = *partner {
                free[at] = false;
            }
        }
    }
    let both = partner.iter().enumerate().filter_map(|(at, partner)| partner.map(|partner| (at, partner)));
    let removed = partner.iter().enumerate().filter(|(_, partner)| partner.is_none());
    let added = free.iter().enumerate().filter(|(_, free)| **free);
    Pairing {
        both: both.collect(),
        removed: removed.map(|(at, _)| at).collect(),
        added: added.map(|(at, _)| at).collect(),
    }
}

/// Pairs the entries of two lists by one key.
pub(super) fn pair_by<T, K: Ord>(
    before: &[T],
    after: &[T],
    key_before: impl Fn(&T) -> K,
    key_after: impl Fn(&T) -> K,
) -> Pairing {
    let keys = (before.iter().map(key_before).collect(), after.iter().map(key_after).collect());
    pair(&[keys])
}
