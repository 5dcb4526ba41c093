//! Checkpoint processes: states with questions and answers, and a policy for tools. See
//! `docs/formats-checkpoint.md`.
//!
//! Where the page is silent: every `null` except that of `next` is an absent key; a text may be empty if it is only shown
//! (`question`, `initial_prompt`) but not if it names something; a name of a state or an answer is any text without
//! control characters.

mod answers;
mod graph;
mod idle;
pub(crate) mod mail;
pub(crate) mod policy;
mod process;
mod states;
pub(crate) mod tools;

use crate::Naming;
use crate::row::{Compiler, Row, UseAs, has, no_calls};

/// The names of its definitions.
const NAMING: Naming = Naming::Slug;

/// A document whose states are a map, with one of them as the initial one.
pub(crate) const ROW: Row = Row {
    name: "checkpoint",
    marker: "`initial`, and `states` as a map",
    marker_keys: &["initial", "states"],
    marker_files: &[],
    fits: |root| has(root, "initial") && root.get("states").is_some_and(|it| it.as_map().is_some()),
    compiler: Some(Compiler {
        compile: process::compile,
        calls: no_calls,
        naming: NAMING,
        use_as: UseAs::Process,
    }),
};
