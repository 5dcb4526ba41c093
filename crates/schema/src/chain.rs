//! How deep subschemas lead into one another: a compiler follows every chain until a subschema comes again.

use crate::graph::{Sub, ordered, reversed};

/// A bound of the longest chain. `parents` has for each subschema the one that it stands in, which comes
/// before it, and `referenced` says which are targets of references.
pub(crate) fn longest(subs: &[Sub], parents: &[Option<usize>], referenced: &[bool]) -> usize {
    let edges: Vec<Vec<usize>> = subs.iter().map(|sub| sub.targets().collect()).collect();
    let back = reversed(&edges);
    // Below: what leads to no loop.
    let mut below = vec![None; subs.len()];
    for node in ordered(&back) {
        below[node] = Some(1 + deepest(&edges[node], &below));
    }
    // Above: what no loop leads to. A node that is both counts as below.
    let mut above = vec![None; subs.len()];
    for node in ordered(&edges) {
        above[node] = Some(1 + deepest(&back[node], &above));
    }
    let is_loop = |node: usize| below[node].is_none() && above[node].is_none();
    // Between them each target of a reference comes once, with what stands in it.
    let mut heights = vec![0_usize; subs.len()];
    let mut between = 0_usize;
    for node in (0..subs.len()).rev().filter(|node| is_loop(*node)) {
        heights[node] += 1;
        let height = heights[node];
        if let Some(parent) = parents[node].filter(|parent| is_loop(*parent)) {
            heights[parent] = heights[parent].max(height);
        }
        if referenced[node] || node == 0 {
            between += height;
        }
    }
    let top = |lengths: &[Option<usize>]| lengths.iter().flatten().copied().max().unwrap_or_default();
    if between == 0 { top(&below) } else { top(&above) + between + top(&below) }
}

fn deepest(nodes: &[usize], lengths: &[Option<usize>]) -> usize {
    nodes.iter().filter_map(|node| lengths[*node]).max().unwrap_or_default()
}
