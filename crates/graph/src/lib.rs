//! Pictures of machines: what leads where, as SVG, as Mermaid and as DOT.
//!
//! A [`Graph`] is read from a compiled machine: a vertex for each node, an edge for the exits between two of them, a
//! mark for each outcome of a run. [`mermaid`] and [`dot`] write it for tools that lay it out; [`svg`] lays it
//! out itself, in layers from top to bottom, with whole numbers only.
//!
//! This crate must never know: a format, a source text, a session, a clock, IO. The same machine gives the same bytes.
//! A picture is a view: no decision reads it. Each bound is in [`limits`].

mod dot;
mod graph;
mod label;
mod layout;
pub mod limits;
mod mermaid;
mod read;
mod svg;
mod text;

pub use dot::dot;
pub use graph::{Edge, EdgeKind, Graph, Kind, Label, Vertex};
pub use layout::TooLarge;
pub use mermaid::mermaid;
pub use svg::svg;
