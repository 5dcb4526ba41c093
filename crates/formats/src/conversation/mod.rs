//! Conversation workflows: states of ten types, transitions with guards or ports, gathered data. See
//! `docs/formats-conversation.md` and `docs/formats-conversation-operations.md`.
//!
//! The whole format is read and checked. What the machine cannot express yet is reported at its position, together with
//! any other faults there.
//!
//! Where the page is silent: every `null` is an absent key, except for values of the data; a state's name is any text
//! without control characters; what names a key of the data has neither dots nor braces, because a template could
//! not read it.

mod approval;
mod body;
mod boundary;
mod drains;
mod expr;
mod form;
mod graph;
mod guards;
mod held;
mod hints;
mod keys;
mod messages;
mod nodes;
mod operations;
mod outside;
mod parse;
mod read;
mod reader;
mod reserved;
mod schema;
mod state;
mod states;
mod steps;
mod texts;
mod tools;
mod transitions;
mod workflow;

use crate::Naming;
use crate::row::{Compiler, Row, UseAs, has};

/// The names of its definitions.
const NAMING: Naming = Naming::Slug;

/// A document whose states are a list, with transitions between them.
pub(crate) const ROW: Row = Row {
    name: "conversation",
    marker: "`transitions`, and `states` as a list",
    marker_keys: &["states", "transitions"],
    marker_files: &[],
    fits: |root| has(root, "transitions") && root.get("states").is_some_and(|it| it.as_list().is_some()),
    compiler: Some(Compiler {
        compile: workflow::compile,
        calls: outside::calls,
        naming: NAMING,
        use_as: UseAs::Workflow,
    }),
};
