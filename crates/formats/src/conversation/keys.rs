//! Keys of the data: which are read, which are set, and which are read and never set. Heading *Gathered Data*.

use std::collections::{BTreeMap, BTreeSet};

use switchward_machine::{NodeIx, kept};

use super::expr;
use crate::codes::KEY_UNSET;
use crate::document::Span;
use crate::{Finding, Report, quoted};

/// A state, with the transitions that leave it; nothing for the workflow itself.
type Place = Option<NodeIx>;

/// What a workflow reads and sets.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// By key, where each state reads it first.
    read: BTreeMap<String, BTreeMap<Place, Span>>,
    /// By key, who sets it.
    set: BTreeMap<String, BTreeSet<Place>>,
    /// What is being read.
    here: Place,
    /// Names that loops give to their items, from the outside in.
    items: Vec<String>,
}

impl Keys {
    /// What follows belongs to this state.
    pub(super) fn stand_at(&mut self, place: Place) {
        self.here = place;
    }

    /// Something reads this path.
    pub(super) fn reads(&mut self, path: &str, span: Span) {
        let key = path.split('.').next().unwrap_or(path);
        let inside = !self.items.is_empty() && key == super::operations::INDEX;
        if inside || self.items.iter().any(|item| item == key) {
            return;
        }
        let places = self.read.entry(key.to_owned()).or_default();
        let first = places.entry(self.here).or_insert(span);
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
        self.set.entry(key.to_owned()).or_default().insert(self.here);
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

    /// Warns of keys that are read and never set, each where it is read first. What no path leads to sets nothing.
    pub(super) fn warn(&self, unreachable: &[NodeIx], report: &mut Report) {
        let lives = |place: &Place| place.is_none_or(|at| unreachable.binary_search(&at).is_err());
        for (key, places) in self.read.iter().filter(|(key, _)| !kept::holds(key)) {
            let set = self.set.get(key);
            if set.is_some_and(|places| places.iter().any(lives)) {
                continue;
            }
            let told = |place: &Place| set.is_none() || lives(place);
            let Some(span) = places.iter().filter(|(place, _)| told(place)).map(|(_, span)| *span).min()
            else {
                continue;
            };
            let (who, near) = if set.is_some() {
                ("only states that no path leads to set it", None)
            } else {
                let others = self.set.keys().map(String::as_str);
                ("nothing in the workflow sets it", report.nearest(key, others))
            };
            let message = format!("the key {} is read, and {who}", quoted(key));
            let mut finding = Finding::new(KEY_UNSET, span, message).nearest(near);
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
