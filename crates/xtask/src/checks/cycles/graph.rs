//! Cycles of a directed graph.

use std::collections::{BTreeMap, BTreeSet};

/// Groups of nodes that all reach each other, without the groups of one; the largest first.
pub(super) fn cycles<N: Ord + Clone>(edges: &BTreeMap<N, BTreeSet<N>>) -> Vec<Vec<N>> {
    let reach: BTreeMap<&N, BTreeSet<&N>> = edges.keys().map(|node| (node, reached(edges, node))).collect();
    let mut known = BTreeSet::new();
    let mut groups = Vec::new();
    for (node, from_it) in &reach {
        let back = |other: &&N| reach.get(*other).is_some_and(|of_other| of_other.contains(*node));
        let group: Vec<N> =
            from_it.iter().filter(|other| back(other)).map(|other| (*other).clone()).collect();
        if group.len() > 1 && known.insert(group.clone()) {
            groups.push(group);
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    groups
}

/// The nodes that a walk along the edges comes to.
fn reached<'a, N: Ord>(edges: &'a BTreeMap<N, BTreeSet<N>>, from: &N) -> BTreeSet<&'a N> {
    let mut seen = BTreeSet::new();
    let mut next: Vec<&N> = edges.get(from).into_iter().flatten().collect();
    while let Some(node) = next.pop() {
        if seen.insert(node) {
            next.extend(edges.get(node).into_iter().flatten());
        }
    }
    seen
}
