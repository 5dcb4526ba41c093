//! A slot for every vertex, and one for every edge in each layer that it passes.

use std::collections::BTreeSet;

use super::ranks::Ranked;
use super::{Arc, Size, TooLarge};
use crate::limits::SLOTS_MAX;

/// Pixels that an edge keeps free on each side of it.
const PASS: i32 = 9;
/// Pixels between an edge and its label.
pub(super) const BESIDE: i32 = 7;
/// The width of a loop beside its vertex, pixels.
pub(super) const LOOP: i32 = 20;

/// A slot in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    /// The kind of its owner.
    pub(super) of: Of,
    pub(super) layer: usize,
    /// Its extent to the left of its column, pixels.
    pub(super) left: i32,
    /// Its extent to the right of its column, pixels.
    pub(super) right: i32,
    pub(super) height: i32,
}

/// The kind of a slot's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Vertex,
    Edge,
}

/// All slots. Those of the vertices come first and have the vertices' indices.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Layers {
    pub(super) slots: Vec<Slot>,
    /// The slots of each layer, from left to right.
    pub(super) rows: Vec<Vec<usize>>,
    /// The neighbours of each slot in the layer above.
    pub(super) above: Vec<Vec<usize>>,
    /// Those in the layer below.
    pub(super) below: Vec<Vec<usize>>,
    /// The slots of each edge from its upper vertex to its lower one, both included; empty for a loop.
    pub(super) chains: Vec<Vec<usize>>,
    /// The slot of each edge's label.
    pub(super) labels: Vec<Option<usize>>,
    /// The loops to the left of their vertices: the second one of each vertex.
    pub(super) left_loops: BTreeSet<usize>,
    /// The vertices that have a loop to the right.
    looped: BTreeSet<usize>,
}

impl Layers {
    /// # Errors
    /// There are too many slots.
    pub(super) fn of(sizes: &[Size], arcs: &[Arc], ranked: &Ranked) -> Result<Self, TooLarge> {
        let mut layers = Self::default();
        let deepest = ranked.ranks.iter().copied().max().unwrap_or(0);
        layers.rows = vec![Vec::new(); deepest + 1];
        for (at, size) in sizes.iter().enumerate() {
            let half = size.width / 2;
            let of = Of::Vertex;
            layers.push(Slot {
                of,
                layer: ranked.ranks[at],
                left: half,
                right: size.width - half,
                height: size.height,
            });
        }
        for (at, arc) in arcs.iter().enumerate() {
            layers.labels.push(None);
            layers.chains.push(Vec::new());
            if arc.from == arc.to {
                layers.go_round(at, arc);
            } else {
                layers.pass(at, arc, ranked)?;
            }
        }
        Ok(layers)
    }

    /// Reserves the space of a loop beside its vertex.
    fn go_round(&mut self, at: usize, arc: &Arc) {
        let space = LOOP + BESIDE + arc.label.width;
        let slot = &mut self.slots[arc.from];
        slot.height = slot.height.max(arc.label.height);
        if self.looped.insert(arc.from) {
            slot.right += space;
        } else {
            slot.left += space;
            self.left_loops.insert(at);
        }
    }

    /// Gives an edge its slots.
    fn pass(&mut self, at: usize, arc: &Arc, ranked: &Ranked) -> Result<(), TooLarge> {
        let (upper, lower) = ranked.ends(at, arc);
        let (top, bottom) = (ranked.ranks[upper], ranked.ranks[lower]);
        // The label is as close as possible to the vertex that the edge leaves.
        let labelled = if ranked.turned[at] { bottom - 1 } else { top + 1 };
        let mut chain = vec![upper];
        for layer in top + 1..bottom {
            let bare = Slot { of: Of::Edge, layer, left: PASS, right: PASS, height: 0 };
            let slot = if layer == labelled && arc.label.width > 0 {
                self.labels[at] = Some(self.slots.len());
                Slot { right: BESIDE + arc.label.width, height: arc.label.height, ..bare }
            } else {
                bare
            };
            chain.push(self.push(slot));
            if self.slots.len() > SLOTS_MAX {
                return Err(TooLarge::Slots);
            }
        }
        chain.push(lower);
        for pair in chain.windows(2) {
            self.below[pair[0]].push(pair[1]);
            self.above[pair[1]].push(pair[0]);
        }
        self.chains[at] = chain;
        Ok(())
    }

    fn push(&mut self, slot: Slot) -> usize {
        let at = self.slots.len();
        self.slots.push(slot);
        self.rows[slot.layer].push(at);
        self.above.push(Vec::new());
        self.below.push(Vec::new());
        at
    }

    /// The position of each slot in its layer.
    pub(super) fn positions(&self) -> Vec<usize> {
        let mut positions = vec![0; self.slots.len()];
        for row in &self.rows {
            for (position, at) in row.iter().enumerate() {
                positions[*at] = position;
            }
        }
        positions
    }
}
