//! An order of the slots in each layer, with few crossings.

use super::layers::Layers;
use crate::limits::{IDLE_SWEEPS_MAX, SWAP_ROUNDS_MAX, SWAPPED_SLOTS_MAX, SWEEPS_MAX};

/// The resolution of a position when a mean is taken.
const PARTS: usize = 1 << 10;

/// Orders the slots: first as a search from the start visits them, then by the mean of their neighbours, layer by
/// layer, downward and upward in turn. The best order is kept.
pub(super) fn arrange(layers: &mut Layers, start: usize) {
    meet(layers, start);
    let mut best = (crossings(layers), layers.rows.clone());
    let mut idle = 0;
    for sweep in 0..SWEEPS_MAX {
        if best.0 == 0 || idle == IDLE_SWEEPS_MAX {
            break;
        }
        let down = sweep % 2 == 0;
        pull(layers, down, sweep % 4 >= 2);
        if layers.slots.len() <= SWAPPED_SLOTS_MAX {
            swap(layers);
        }
        let count = crossings(layers);
        idle += 1;
        if count < best.0 {
            best = (count, layers.rows.clone());
            idle = 0;
        }
    }
    layers.rows = best.1;
}

/// Orders the slots as a search visits them.
fn meet(layers: &mut Layers, start: usize) {
    let mut rows = vec![Vec::new(); layers.rows.len()];
    let count = layers.slots.len();
    let mut seen = vec![false; count];
    let roots = std::iter::once(start).filter(|at| *at < count).chain(0..count);
    for root in roots {
        let mut open = vec![root];
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            rows[layers.slots[at].layer].push(at);
            open.extend(layers.below[at].iter().rev());
        }
    }
    layers.rows = rows;
}

/// Sorts each layer by the means of the neighbours in the previous layer. `turned` reverses the order of equal ones.
fn pull(layers: &mut Layers, down: bool, turned: bool) {
    let mut positions = layers.positions();
    let count = layers.rows.len();
    for step in 1..count {
        let layer = if down { step } else { count - 1 - step };
        let near = if down { &layers.above } else { &layers.below };
        let mean = |at: usize| {
            let sum: usize = near[at].iter().map(|near| positions[*near] * PARTS).sum();
            sum.checked_div(near[at].len())
        };
        let row = &mut layers.rows[layer];
        // A slot without neighbours keeps its position, and the others are sorted around it.
        let mut pulled: Vec<(usize, usize)> =
            row.iter().filter_map(|at| mean(*at).map(|mean| (mean, *at))).collect();
        if turned {
            pulled.reverse();
        }
        pulled.sort_by_key(|(mean, _)| *mean);
        let mut pulled = pulled.into_iter();
        for slot in row.iter_mut().filter(|at| !near[**at].is_empty()) {
            if let Some((_, at)) = pulled.next() {
                *slot = at;
            }
        }
        for (position, at) in row.iter().enumerate() {
            positions[*at] = position;
        }
    }
}

/// Swaps neighbours if that saves a crossing.
fn swap(layers: &mut Layers) {
    let mut positions = layers.positions();
    for _ in 0..SWAP_ROUNDS_MAX {
        let mut better = false;
        for row in &mut layers.rows {
            for left in 1..row.len() {
                let (a, b) = (row[left - 1], row[left]);
                let both = [&layers.above, &layers.below];
                let cost = |a: usize, b: usize| -> usize {
                    both.iter().map(|near| between(&near[a], &near[b], &positions)).sum()
                };
                if cost(b, a) < cost(a, b) {
                    row.swap(left - 1, left);
                    positions.swap(a, b);
                    better = true;
                }
            }
        }
        if !better {
            break;
        }
    }
}

/// Crossings of the edges of two neighbours, with the first on the left.
fn between(left: &[usize], right: &[usize], positions: &[usize]) -> usize {
    left.iter().map(|l| right.iter().filter(|r| positions[**r] < positions[*l]).count()).sum()
}

/// All crossings.
pub(super) fn crossings(layers: &Layers) -> usize {
    let positions = layers.positions();
    layers.rows.windows(2).map(|rows| between_rows(layers, &rows[0], rows[1].len(), &positions)).sum()
}

/// Crossings between a layer and the one below it, which has `width` slots: for each edge, from left to right, counts the
/// previous ones that end further to the right, with a Fenwick tree.
fn between_rows(layers: &Layers, row: &[usize], width: usize, positions: &[usize]) -> usize {
    let mut tree = vec![0_usize; width + 1];
    let (mut total, mut known) = (0, 0);
    for at in row {
        let mut ends: Vec<usize> = layers.below[*at].iter().map(|to| positions[*to]).collect();
        ends.sort_unstable();
        for end in &ends {
            let mut left = 0;
            let mut node = end + 1;
            while node > 0 {
                left += tree[node];
                node &= node - 1;
            }
            total += known - left;
        }
        for end in ends {
            known += 1;
            let mut node = end + 1;
            while node <= width {
                tree[node] += 1;
                node += node & node.wrapping_neg();
            }
        }
    }
    total
}
