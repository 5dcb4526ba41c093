//! A picture's geometry: vertices in layers from top to bottom, edges that pass between them.
//!
//! Five steps, each in a file: [`ranks`] reverses edges that close a cycle and gives every vertex a layer, [`layers`] gives
//! every edge a slot in each layer that it passes, [`order`] looks for an order with few crossings, [`columns`] gives
//! every slot its column, [`route`] draws the lines. Every second layer holds only labels, so that a label has its own
//! slot. Whole pixels, y downward.

mod columns;
mod layers;
mod order;
mod ranks;
mod route;

use crate::limits::{EDGES_MAX, SLOTS_MAX, VERTICES_MAX};

/// A size in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Size {
    pub(crate) width: i32,
    pub(crate) height: i32,
}

/// An edge to be laid out. A vertex has two loops at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arc {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// The size of its label; zero if it has none.
    pub(crate) label: Size,
}

/// A point in the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Point {
    pub(crate) x: i32,
    pub(crate) y: i32,
}

/// A laid out edge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Route {
    /// From the vertex that it leaves to the one that it leads to. Between two points of the same x it is straight,
    /// between others a curve that leaves and arrives upright. A loop has its two ends alone, and its label on its own side.
    pub(crate) points: Vec<Point>,
    /// The left upper corner of its label.
    pub(crate) label: Point,
}

/// A laid out graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) size: Size,
    /// The left upper corner of each vertex.
    pub(crate) corners: Vec<Point>,
    /// By edge.
    pub(crate) routes: Vec<Route>,
}

/// A graph that is too large to be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// Too many vertices.
    #[error("the graph has {0} states and ends, and at most {VERTICES_MAX} are drawn")]
    Vertices(usize),
    /// Too many edges.
    #[error("the graph has {0} edges, and at most {EDGES_MAX} are drawn")]
    Edges(usize),
    /// Edges that pass too many layers.
    #[error("the edges pass other states more than {SLOTS_MAX} times, which is the most that is drawn")]
    Slots,
}

/// Lays out vertices of these sizes, the one at `start` on top.
///
/// # Errors
/// The graph exceeds a limit.
pub(crate) fn lay_out(sizes: &[Size], start: usize, arcs: &[Arc]) -> Result<Layout, TooLarge> {
    if sizes.len() > VERTICES_MAX {
        return Err(TooLarge::Vertices(sizes.len()));
    }
    if arcs.len() > EDGES_MAX {
        return Err(TooLarge::Edges(arcs.len()));
    }
    let ranked = ranks::rank(sizes.len(), start, arcs);
    let mut layers = layers::Layers::of(sizes, arcs, &ranked)?;
    order::arrange(&mut layers, start);
    let columns = columns::columns(&layers);
    Ok(route::draw(sizes, arcs, &ranked, &layers, &columns))
}

#[cfg(test)]
mod tests;
