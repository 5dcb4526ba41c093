//! The context of every reader of a part of a workflow: the report, the states' names, and the keys of the data.

use std::collections::BTreeMap;

use switchward_expr::Patterns;
use switchward_machine::{Field, NodeIx};

use super::keys::Keys;
use crate::codes::{EMPTY_LIST, KEY_IDLE, NOT_RUN, STATE_DANGLING};
use crate::document::{Node, Source, Span};
use crate::{Finding, Report, quoted, shape};

/// See the module documentation.
pub(super) struct Reader<'a, 'r> {
    /// Collects the findings.
    pub(super) report: &'r mut Report,
    /// The source text, for spans inside its values.
    pub(super) source: Source<'a>,
    /// The states' names.
    pub(super) names: Names<'a>,
    /// The keys that are read and set.
    pub(super) keys: Keys,
    /// Their fields in `state_schema`.
    pub(super) fields: Vec<Field>,
    /// Required fields that guards have taken over from their states.
    pub(super) copies: usize,
    /// The workflow's regular expressions.
    pub(super) patterns: Patterns,
}

impl<'a> Reader<'a, '_> {
    /// The state that a node names; reports if there is none.
    pub(super) fn state(&mut self, node: &'a Node, what: &str) -> Option<NodeIx> {
        let name = shape::text(node, what, usize::MAX, self.report)?;
        let found = self.names.find(name);
        if found.is_none() {
            let message = format!("{what} names the state {}, which does not exist", quoted(name));
            let names = self.names.all.iter().copied();
            shape::dangling(STATE_DANGLING, node, message, names, self.report);
        }
        found
    }

    /// Reports something that the format has and this build does not run.
    pub(super) fn not_run(&mut self, span: Span, what: &str) {
        let message = format!("{what} is recognised, but this build does not run it");
        self.report.add(Finding::new(NOT_RUN, span, message));
    }

    /// Reports a key that has no effect here, if it is present.
    pub(super) fn idle(&mut self, map: &Node, key: &str, why: &str) {
        if let Some((key, _)) = map.entry(key).filter(|(_, value)| !value.is_null()) {
            let message = format!("{} has no effect here: {why}", quoted(&key.text));
            self.report.add(Finding::new(KEY_IDLE, key.span, message));
        }
    }

    /// The items of a list that must not be empty.
    pub(super) fn filled(&mut self, node: &'a Node, what: &str, items_max: usize) -> Option<&'a [Node]> {
        let items = shape::list(node, what, items_max, self.report)?;
        if !items.is_empty() {
            return Some(items);
        }
        self.report.add(Finding::new(EMPTY_LIST, node.span, format!("{what} must not be empty")));
        None
    }
}

/// The states by name; if several have one name, the first.
pub(super) struct Names<'a> {
    all: Vec<&'a str>,
    indices: BTreeMap<&'a str, u32>,
}

impl<'a> Names<'a> {
    pub(super) fn new(states: &'a [Node]) -> Self {
        let mut names = Self { all: Vec::new(), indices: BTreeMap::new() };
        for (at, state) in (0..).zip(states) {
            let Some(name) = state.get("name").and_then(Node::as_text) else { continue };
            if !names.indices.contains_key(name) {
                names.all.push(name);
                names.indices.insert(name, at);
            }
        }
        names
    }

    pub(super) fn find(&self, name: &str) -> Option<NodeIx> {
        self.indices.get(name).copied().map(NodeIx)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &'a str> + Clone + use<'a, '_> {
        self.all.iter().copied()
    }
}
