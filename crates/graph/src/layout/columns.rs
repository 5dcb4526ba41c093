//! A column for every slot, so that edges run straight down where they can.
//!
//! After Brandes and Köpf, "Fast and Simple Horizontal Coordinate Assignment" (2001): slots above each other are joined to
//! blocks in four ways, to the upper or lower neighbours, leaning left or right; each way is packed, and a slot's column
//! is the mean of the two middle ones.

use std::collections::BTreeSet;

use super::layers::{Layers, Of};

/// Pixels between two slots of a layer.
const GAP: i32 = 22;

/// The column of each slot; the leftmost pixel is 0.
pub(super) fn columns(layers: &Layers) -> Vec<i32> {
    let kept_apart = conflicts(layers);
    let mut ways = Vec::new();
    for upward in [false, true] {
        for mirrored in [false, true] {
            ways.push((mirrored, way(layers, upward, mirrored, &kept_apart)));
        }
    }
    let narrowest = ways.iter().map(|(_, xs)| reach(layers, xs)).min_by_key(|(low, high)| high - low);
    let (low, high) = narrowest.unwrap_or((0, 0));
    for (mirrored, xs) in &mut ways {
        let (mine_low, mine_high) = reach(layers, xs);
        let shift = if *mirrored { high - mine_high } else { low - mine_low };
        xs.iter_mut().for_each(|x| *x += shift);
    }
    let middle = |at: usize| {
        let mut four: Vec<i32> = ways.iter().map(|(_, xs)| xs[at]).collect();
        four.sort_unstable();
        (four[1] + four[2]).div_euclid(2)
    };
    let mut xs: Vec<i32> = (0..layers.slots.len()).map(middle).collect();
    let (low, _) = reach(layers, &xs);
    xs.iter_mut().for_each(|x| *x -= low);
    xs
}

/// The leftmost and the rightmost pixel.
fn reach(layers: &Layers, xs: &[i32]) -> (i32, i32) {
    let both = || layers.slots.iter().zip(xs);
    let low = both().map(|(slot, x)| x - slot.left).min().unwrap_or(0);
    let high = both().map(|(slot, x)| x + slot.right).max().unwrap_or(0);
    (low, high)
}

/// Segments of edges that must not be made straight, because they cross a passing edge: (upper slot, lower slot).
fn conflicts(layers: &Layers) -> BTreeSet<(usize, usize)> {
    let positions = layers.positions();
    let mut found = BTreeSet::new();
    for rows in layers.rows.windows(2) {
        let (upper, lower) = (&rows[0], &rows[1]);
        let mut left = 0;
        let mut scanned = 0;
        for (position, at) in lower.iter().enumerate() {
            let passing = passing_above(layers, *at);
            if passing.is_none() && position + 1 < lower.len() {
                continue;
            }
            let right = passing.map_or(upper.len(), |above| positions[above]);
            for crossing in &lower[scanned..=position] {
                for above in &layers.above[*crossing] {
                    let inner = passing_above(layers, *crossing) == Some(*above);
                    if (positions[*above] < left || positions[*above] > right) && !inner {
                        found.insert((*above, *crossing));
                    }
                }
            }
            scanned = position + 1;
            left = right;
        }
    }
    found
}

/// The slot above, if both are of the same edge.
fn passing_above(layers: &Layers, at: usize) -> Option<usize> {
    let edge = |at: usize| layers.slots[at].of == Of::Edge;
    layers.above[at].first().copied().filter(|above| edge(at) && edge(*above))
}

/// The columns of one of the four ways.
fn way(layers: &Layers, upward: bool, mirrored: bool, kept_apart: &BTreeSet<(usize, usize)>) -> Vec<i32> {
    let mut rows = layers.rows.clone();
    if upward {
        rows.reverse();
    }
    if mirrored {
        rows.iter_mut().for_each(|row| row.reverse());
    }
    let roots = blocks(layers, &rows, upward, kept_apart);
    let mut xs = pack(layers, &rows, mirrored, &roots);
    if mirrored {
        xs.iter_mut().for_each(|x| *x = -*x);
    }
    xs
}

/// The first slot of each slot's block.
fn blocks(
    layers: &Layers,
    rows: &[Vec<usize>],
    upward: bool,
    kept_apart: &BTreeSet<(usize, usize)>,
) -> Vec<usize> {
    let mut positions = vec![0; layers.slots.len()];
    for row in rows {
        for (position, at) in row.iter().enumerate() {
            positions[*at] = position;
        }
    }
    let mut roots: Vec<usize> = (0..layers.slots.len()).collect();
    let mut continued = vec![false; layers.slots.len()];
    for row in rows {
        // Blocks do not cross: the next one begins to the right of this position.
        let mut free = 0;
        for at in row {
            let mut near = if upward { layers.below[*at].clone() } else { layers.above[*at].clone() };
            near.sort_by_key(|near| positions[*near]);
            near.dedup();
            let middle = near.len().saturating_sub(1) / 2..near.len() / 2 + 1;
            for other in near.get(middle).unwrap_or_default() {
                let step = if upward { (*at, *other) } else { (*other, *at) };
                if roots[*at] == *at
                    && !continued[*other]
                    && positions[*other] >= free
                    && !kept_apart.contains(&step)
                {
                    continued[*other] = true;
                    roots[*at] = roots[*other];
                    free = positions[*other] + 1;
                }
            }
        }
    }
    roots
}

/// Packs the blocks to the left, and then moves each as far to the right as its neighbours allow.
fn pack(layers: &Layers, rows: &[Vec<usize>], mirrored: bool, roots: &[usize]) -> Vec<i32> {
    let count = layers.slots.len();
    let mut after: Vec<Vec<(usize, i32)>> = vec![Vec::new(); count];
    let mut missing = vec![0_usize; count];
    for pair in rows.iter().flat_map(|row| row.windows(2)) {
        let (left, right) = (layers.slots[pair[0]], layers.slots[pair[1]]);
        let apart = if mirrored { left.left + right.right } else { left.right + right.left };
        after[roots[pair[0]]].push((roots[pair[1]], apart + GAP));
        missing[roots[pair[1]]] += 1;
    }
    let mut order: Vec<usize> = (0..count).filter(|at| roots[*at] == *at && missing[*at] == 0).collect();
    let mut xs = vec![0; count];
    let mut done = 0;
    while let Some(at) = order.get(done).copied() {
        done += 1;
        for (next, apart) in &after[at] {
            xs[*next] = xs[*next].max(xs[at] + apart);
            missing[*next] -= 1;
            if missing[*next] == 0 {
                order.push(*next);
            }
        }
    }
    for at in order.iter().rev() {
        if let Some(most) = after[*at].iter().map(|(next, apart)| xs[*next] - apart).min() {
            xs[*at] = most;
        }
    }
    (0..count).map(|at| xs[roots[at]]).collect()
}
