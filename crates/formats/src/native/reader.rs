//! The context of every reader of a part of a process: the report, the names of its nodes, the fields of its
//! data.

use std::collections::BTreeMap;

use switchward_machine::NodeIx;
use switchward_machine::reserved_keys::HIDDEN_PREFIX;

use crate::codes::{FIELD_UNKNOWN, NAME_TWICE, NODE_DANGLING, NODE_KEY_IDLE, RESERVED_NAME};
use crate::document::{Entry, Node, Source, Span};
use crate::limits::DATA_KEY_BYTES_MAX;
use crate::{Finding, Report, quoted, shape};

/// See the module documentation.
pub(super) struct Reader<'a, 'r> {
    /// Collects the findings.
    pub(super) report: &'r mut Report,
    /// The source text, for spans inside its values.
    pub(super) source: &'r Source<'a>,
    /// The name of the process, if it has a valid one.
    pub(super) own: Option<&'a str>,
    /// The nodes by name.
    pub(super) names: Names<'a>,
    /// The properties of the schema; `None` if the schema could not be read, and nothing is known about
    /// names.
    pub(super) fields: Option<Vec<String>>,
    /// The names in `resources.scripts`.
    pub(super) scripts: Vec<&'a str>,
    /// The variable of the enclosing `foreach`.
    pub(super) item: Option<&'a str>,
    /// How many processes are around this one.
    pub(super) depth: usize,
}

impl<'a> Reader<'a, '_> {
    /// The node that a text names; reports if there is none.
    pub(super) fn node(&mut self, node: &'a Node, what: &str) -> Option<NodeIx> {
        let name = shape::text(node, what, usize::MAX, self.report)?;
        let found = self.names.find(name);
        if found.is_none() {
            let message = format!("{what} names the node {}, which does not exist", quoted(name));
            shape::dangling(NODE_DANGLING, node, message, self.names.all(), self.report);
        }
        found
    }

    /// The name of a field of the data.
    pub(super) fn field(&mut self, node: &'a Node, what: &str) -> Option<&'a str> {
        let name = shape::name(node, what, DATA_KEY_BYTES_MAX, self.report)?;
        self.is_free(name, what, node.span).then_some(name)
    }

    /// Returns true if a definition may give this name to a field; reports if it is reserved.
    pub(super) fn is_free(&mut self, name: &str, what: &str, span: Span) -> bool {
        let reserved = name.starts_with(HIDDEN_PREFIX);
        if reserved {
            let message =
                format!("{what} cannot be {}: names that begin with `_` are reserved", quoted(name));
            self.report.add(Finding::new(RESERVED_NAME, span, message));
        }
        !reserved
    }

    /// Names of fields, each once.
    pub(super) fn field_list(&mut self, node: &'a Node, what: &str, max: usize) -> Vec<Listed<'a>> {
        let items = shape::list(node, what, max, self.report).unwrap_or_default();
        let mut found: Vec<Listed<'a>> = Vec::new();
        for item in items {
            let Some(name) = self.field(item, &format!("a name in {what}")) else { continue };
            if found.iter().any(|other| other.name == name) {
                self.twice(&format!("the field {}", quoted(name)), what, item.span);
                continue;
            }
            found.push(Listed { name, span: item.span });
        }
        found
    }

    /// Reports a name that stands in one list twice.
    pub(super) fn twice(&mut self, what: &str, list: &str, span: Span) {
        self.report.add(Finding::new(NAME_TWICE, span, format!("{what} is in {list} already")));
    }

    /// Returns true if the schema has this field, or if its fields are not known.
    pub(super) fn has_field(&self, name: &str) -> bool {
        self.fields.as_ref().is_none_or(|fields| fields.iter().any(|field| field == name))
    }

    /// Returns true if the schema names fields, and this is none of them.
    pub(super) fn lacks(&self, name: &str) -> bool {
        self.fields.as_ref().is_some_and(|fields| !fields.is_empty()) && !self.has_field(name)
    }

    /// The field that was probably meant.
    pub(super) fn nearest_field(&mut self, name: &str) -> Option<String> {
        let fields = self.fields.as_ref()?;
        self.report.nearest(name, fields.iter().map(String::as_str))
    }

    /// Warns if nothing can have this name where something reads it.
    pub(super) fn reads(&mut self, name: &str, what: &str, span: Span) {
        if self.item == Some(name) || !self.lacks(name) {
            return;
        }
        let message =
            format!("{what} reads the field {}, which `context.schema` does not have", quoted(name));
        let nearest = self.nearest_field(name);
        self.report.add(Finding::new(FIELD_UNKNOWN, span, message).nearest(nearest));
    }

    /// True or false.
    pub(super) fn flag(&mut self, node: &Node, what: &str) -> Option<bool> {
        let value = node.as_bool();
        if value.is_none() {
            return shape::wrong_type(node, what, "true or false", self.report);
        }
        value
    }

    /// Reports a key that has no effect.
    pub(super) fn idle(&mut self, key: &str, why: &str, span: Span) {
        let message = format!("{} has no effect here: {why}", quoted(key));
        self.report.add(Finding::new(NODE_KEY_IDLE, span, message));
    }
}

/// A name in a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listed<'a> {
    /// As written.
    pub(super) name: &'a str,
    /// Where it stands.
    pub(super) span: Span,
}

/// The nodes of a process by name, in the author's order.
pub(super) struct Names<'a> {
    entries: &'a [Entry],
    indices: BTreeMap<&'a str, u32>,
}

impl<'a> Names<'a> {
    pub(super) fn new(entries: &'a [Entry]) -> Self {
        Self { entries, indices: (0..).zip(entries).map(|(at, (key, _))| (key.text.as_str(), at)).collect() }
    }

    pub(super) fn find(&self, name: &str) -> Option<NodeIx> {
        self.indices.get(name).copied().map(NodeIx)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &'a str> + Clone + use<'a> {
        self.entries.iter().map(|(key, _)| key.text.as_str())
    }
}
