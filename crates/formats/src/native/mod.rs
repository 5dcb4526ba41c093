//! Native processes: nodes of ten types, a schema of the data, guards of JSON Logic. See
//! `docs/formats-native.md`.
//!
//! The whole format is read and checked. What the machine cannot express yet is reported at its position,
//! once the rest is right.
//!
//! Where the page is silent: every `null` is an absent key, except for values of the data and in metadata.

mod calls;
mod compile;
mod fan;
mod graph;
mod guards;
mod model;
mod nodes;
mod opened;
mod person;
mod process;
mod reader;
mod routes;
mod schema;
mod texts;
mod vertex;
mod work;

use crate::Naming;
use crate::row::{Compiler, Row, UseAs, has};

/// The names of its definitions.
const NAMING: Naming = Naming::Free;

/// A document with a version of its format, and nodes.
pub(crate) const ROW: Row = Row {
    name: "native",
    marker: "`format_version` and `nodes`",
    marker_keys: &["format_version", "nodes"],
    marker_files: &[],
    fits: |root| has(root, "format_version") && has(root, "nodes"),
    compiler: Some(Compiler {
        compile: compile::compile,
        calls: calls::calls,
        naming: NAMING,
        use_as: UseAs::Process,
    }),
};
