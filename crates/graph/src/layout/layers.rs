//! A place for every vertex, and one for every edge in each layer that it passes.

use std::collections::BTreeSet;

use super::ranks::Ranked;
use super::{Arc, Size, TooLarge};
use crate::limits::PLACES_MAX;

/// Pixels that an edge keeps free on each side of it.
const PASS: i32 = 9;
/// Pixels between an edge and its label.
pub(super) const BESIDE: i32 = 7;
/// Pixels beside a vertex that its loop takes.
pub(super) const LOOP: i32 = 20;

/// A place in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The vertex or the edge that it is of.
    pub(super) of: Of,
    pub(super) layer: usize,
    /// What it takes to the left of its column.
    pub(super) left: i32,
    /// What it takes to the right of its column.
    pub(super) right: i32,
    pub(super) height: i32,
}

/// Whose place it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Vertex,
    Edge,
}

/// All places. Those of the vertices come first and have their positions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Layers {
    pub(super) places: Vec<Place>,
    /// The places of each layer, from left to right.
    pub(super) rows: Vec<Vec<usize>>,
    /// The neighbours of a place in the layer above.
    pub(super) above: Vec<Vec<usize>>,
    /// Those in the layer below.
    pub(super) below: Vec<Vec<usize>>,
    /// The places of each edge from its upper vertex to its lower one, both with it; none for a loop.
    pub(super) chains: Vec<Vec<usize>>,
    /// The place of each edge's label.
    pub(super) labels: Vec<Option<usize>>,
    /// The loops to the left of their vertices: each second one of a vertex.
    pub(super) left_loops: BTreeSet<usize>,
    /// The vertices that have a loop to the right.
    looped: BTreeSet<usize>,
}

impl Layers {
    /// # Errors
    /// There are too many places.
    pub(super) fn of(sizes: &[Size], arcs: &[Arc], ranked: &Ranked) -> Result<Self, TooLarge> {
        let mut layers = Self::default();
        let deepest = ranked.ranks.iter().copied().max().unwrap_or(0);
        layers.rows = vec![Vec::new(); deepest + 1];
        for (at, size) in sizes.iter().enumerate() {
            let half = size.width / 2;
            let of = Of::Vertex;
            layers.push(Place {
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

    /// Gives a loop its room beside its vertex.
    fn go_round(&mut self, at: usize, arc: &Arc) {
        let room = LOOP + BESIDE + arc.label.width;
        let place = &mut self.places[arc.from];
        place.height = place.height.max(arc.label.height);
        if self.looped.insert(arc.from) {
            place.right += room;
        } else {
            place.left += room;
            self.left_loops.insert(at);
        }
    }

    /// Gives an edge its places.
    fn pass(&mut self, at: usize, arc: &Arc, ranked: &Ranked) -> Result<(), TooLarge> {
        let (upper, lower) = ranked.ends(at, arc);
        let (top, bottom) = (ranked.ranks[upper], ranked.ranks[lower]);
        // The label stands as near to the vertex that the edge leaves as it can.
        let labelled = if ranked.turned[at] { bottom - 1 } else { top + 1 };
        let mut chain = vec![upper];
        for layer in top + 1..bottom {
            let bare = Place { of: Of::Edge, layer, left: PASS, right: PASS, height: 0 };
            let place = if layer == labelled && arc.label.width > 0 {
                self.labels[at] = Some(self.places.len());
                Place { right: BESIDE + arc.label.width, height: arc.label.height, ..bare }
            } else {
                bare
            };
            chain.push(self.push(place));
            if self.places.len() > PLACES_MAX {
                return Err(TooLarge::Places);
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

    fn push(&mut self, place: Place) -> usize {
        let at = self.places.len();
        self.places.push(place);
        self.rows[place.layer].push(at);
        self.above.push(Vec::new());
        self.below.push(Vec::new());
        at
    }

    /// Where each place stands in its layer.
    pub(super) fn positions(&self) -> Vec<usize> {
        let mut positions = vec![0; self.places.len()];
        for row in &self.rows {
            for (position, at) in row.iter().enumerate() {
                positions[*at] = position;
            }
        }
        positions
    }
}
