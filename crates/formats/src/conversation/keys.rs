//! Keys of the data: which are read, which are set, and which are read and never set. Heading *Gathered Data*.

use std::collections::{BTreeMap, BTreeSet};

use super::expr;
use crate::codes::KEY_UNSET;
use crate::document::Span;
use crate::{Finding, Report, quoted};

/// Keys that a run has without anybody setting them.
const GIVEN: [&str; 5] = ["approval", "event_key", "reply_token", "tasks", "wait"];

/// What a workflow reads and sets.
#[derive(Debug, Default)]
pub(super) struct Keys {
    read: BTreeMap<String, Span>,
    set: BTreeSet<String>,
    /// Names that loops give to their items, from the outside in.
    items: Vec<String>,
}

impl Keys {
    /// Something reads this path.
    pub(super) fn reads(&mut self, path: &str, span: Span) {
        let key = path.split('.').next().unwrap_or(path);
        let inside = !self.items.is_empty() && key == super::operations::INDEX;
        if inside || self.items.iter().any(|item| item == key) {
            return;
        }
        let first = self.read.entry(key.to_owned()).or_insert(span);
        *first = span.min(*first);
    }

    /// Something renders this text in braces.
    pub(super) fn reads_text(&mut self, text: &str, span: Span) {
        for path in expr::references(text) {
            self.reads(path, span);
        }
    }

    /// Something renders this Jinja2 template.
    pub(super) fn reads_template(&mut self, source: &str, span: Span) {
        for key in expr::template_keys(source) {
            self.reads(key, span);
        }
    }

    /// Something sets this key.
    pub(super) fn sets(&mut self, key: &str) {
        self.set.insert(key.to_owned());
    }

    /// A loop begins.
    pub(super) fn enter(&mut self, item: &str) {
        self.items.push(item.to_owned());
    }

    /// The innermost loop is over.
    pub(super) fn leave(&mut self) {
        self.items.pop();
    }

    /// Whether a loop around here calls its item so.
    pub(super) fn is_item(&self, name: &str) -> bool {
        self.items.iter().any(|item| item == name)
    }

    /// Loops around here.
    pub(super) fn depth(&self) -> usize {
        self.items.len()
    }

    /// Warns of keys that are read and never set, each where it is read first.
    pub(super) fn warn(&self, report: &mut Report) {
        for (key, span) in &self.read {
            if self.set.contains(key) || GIVEN.contains(&key.as_str()) {
                continue;
            }
            let message = format!("the key {} is read, and nothing in the workflow sets it", quoted(key));
            let nearest = report.nearest(key, self.set.iter().map(String::as_str));
            let mut finding = Finding::new(KEY_UNSET, *span, message).nearest(nearest);
            if ["gathered", "gathered_data"].contains(&key.as_str()) {
                finding = finding.hint("write the key alone, without what the data are called in templates");
            } else {
                finding = finding
                    .hint("name it in `required_fields` or in `state_schema` where the assistant or the start sets it");
            }
            report.add(finding);
        }
    }
}
