//! A layer for every vertex.

use super::Arc;
use crate::limits::BALANCE_PASSES_MAX;

/// Layers between two vertices that an edge joins: one is left free for the labels.
const STEP: usize = 2;

/// The ranks and the reversed edges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ranked {
    /// The layer of each vertex; even.
    pub(super) ranks: Vec<usize>,
    /// True for each edge that is laid out against its direction.
    pub(super) turned: Vec<bool>,
}

impl Ranked {
    /// The upper and the lower vertex of an edge.
    pub(super) fn ends(&self, at: usize, arc: &Arc) -> (usize, usize) {
        if self.turned[at] { (arc.to, arc.from) } else { (arc.from, arc.to) }
    }
}

/// Reverses the edges that close a cycle, then puts every vertex below all vertices that lead to it and as close to its
/// neighbours as that allows.
pub(super) fn rank(count: usize, start: usize, arcs: &[Arc]) -> Ranked {
    let turned = turn(count, start, arcs);
    let mut ranked = Ranked { ranks: vec![0; count], turned };
    let mut below = vec![Vec::new(); count];
    let mut above = vec![Vec::new(); count];
    for (at, arc) in arcs.iter().enumerate().filter(|(_, arc)| arc.from != arc.to) {
        let (upper, lower) = ranked.ends(at, arc);
        below[upper].push(lower);
        above[lower].push(upper);
    }
    let order = topological(&below, &above);
    for at in &order {
        ranked.ranks[*at] = above[*at].iter().map(|up| ranked.ranks[*up] + STEP).max().unwrap_or(0);
    }
    for _ in 0..BALANCE_PASSES_MAX {
        for at in order.iter().rev().chain(&order).filter(|at| **at != start) {
            shorten(*at, &above, &below, &mut ranked.ranks);
        }
    }
    let top = ranked.ranks.iter().copied().min().unwrap_or(0);
    for rank in &mut ranked.ranks {
        *rank -= top;
    }
    ranked
}

/// Moves a vertex to the layer in which the total length of its edges is least.
fn shorten(at: usize, above: &[Vec<usize>], below: &[Vec<usize>], ranks: &mut [usize]) {
    let highest = above[at].iter().map(|up| ranks[*up] + STEP).max();
    let lowest = below[at].iter().map(|down| ranks[*down].saturating_sub(STEP)).min();
    let to = match above[at].len().cmp(&below[at].len()) {
        std::cmp::Ordering::Less => lowest,
        std::cmp::Ordering::Greater => highest,
        std::cmp::Ordering::Equal => None,
    };
    if let Some(to) = to {
        ranks[at] = to.max(highest.unwrap_or(0));
    }
}

/// True for each edge that leads back to a vertex on the search's current path; the other edges have no cycle. The
/// search follows the author's order, from the start and then from each unseen vertex.
fn turn(count: usize, start: usize, arcs: &[Arc]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Never,
        Open,
        Done,
    }
    let mut leaving = vec![Vec::new(); count];
    for (at, arc) in arcs.iter().enumerate() {
        leaving[arc.from].push(at);
    }
    let mut seen = vec![Seen::Never; count];
    let mut turned = vec![false; arcs.len()];
    for root in std::iter::once(start).filter(|at| *at < count).chain(0..count) {
        if seen[root] != Seen::Never {
            continue;
        }
        seen[root] = Seen::Open;
        let mut path = vec![(root, 0)];
        while let Some((at, next)) = path.last_mut() {
            let Some(arc) = leaving[*at].get(*next) else {
                seen[*at] = Seen::Done;
                path.pop();
                continue;
            };
            *next += 1;
            let to = arcs[*arc].to;
            match seen[to] {
                Seen::Never => {
                    seen[to] = Seen::Open;
                    path.push((to, 0));
                }
                Seen::Open => turned[*arc] = true,
                Seen::Done => {}
            }
        }
    }
    turned
}

/// A topological order: every vertex after all those above it.
fn topological(below: &[Vec<usize>], above: &[Vec<usize>]) -> Vec<usize> {
    let mut missing: Vec<usize> = above.iter().map(Vec::len).collect();
    let mut order: Vec<usize> = (0..below.len()).filter(|at| missing[*at] == 0).collect();
    let mut done = 0;
    while let Some(at) = order.get(done).copied() {
        done += 1;
        for down in &below[at] {
            missing[*down] -= 1;
            if missing[*down] == 0 {
                order.push(*down);
            }
        }
    }
    order
}
