//! Keys of the data: which are read, which are set, and which are read and never set. See
//! `docs/formats-conversation-operations.md#data`.

use std::collections::{BTreeMap, BTreeSet};

use switchward_machine::{NodeIx, reserved_keys};

use super::form::Form;
use super::reserved;
use crate::codes::{KEY_UNSET, NAME_UNKNOWN, TEXT_BRACES};
use crate::document::Span;
use crate::limits::FINDINGS_MAX;
use crate::{Finding, Report, quoted};

/// The name of the index of a loop's item.
pub(super) const INDEX: &str = "index";

/// A state with the transitions that leave it; `None` for the workflow itself.
type Site = Option<NodeIx>;

/// An unknown name in a text.
#[derive(Debug)]
pub(super) struct Unknown {
    pub(super) name: String,
    pub(super) span: Span,
    /// Names that are known there.
    pub(super) known: Vec<String>,
    pub(super) form: Form,
    /// True if it is a single word in braces, which may be meant as text.
    pub(super) word: bool,
}

/// What a workflow reads and sets.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// By key, the first span at which each state reads it.
    read: BTreeMap<String, BTreeMap<Site, Span>>,
    /// By key, the states that set it.
    set: BTreeMap<String, BTreeSet<Site>>,
    /// Keys that something other than a guard sets.
    declared: BTreeSet<String>,
    /// Keys that guards wait for.
    awaited: Vec<(String, Span)>,
    /// Paths that are read below the keys that only the engine writes.
    below: Vec<Vec<(String, Span)>>,
    /// Names that are unknown at their position.
    unknown: Vec<Unknown>,
    /// The state that is being read.
    here: Site,
    /// Item names of the enclosing loops, outermost first.
    items: Vec<String>,
    /// Item names of all loops.
    given: BTreeSet<String>,
}

impl Keys {
    /// Sets the state to which the following reads and writes belong.
    pub(super) fn stand_at(&mut self, site: Site) {
        self.here = site;
    }

    /// Records a read of the path of these names, outermost first.
    pub(super) fn reads(&mut self, names: Vec<(String, Span)>) {
        let Some((key, span)) = names.first() else { return };
        let inside = !self.items.is_empty() && key == INDEX;
        if inside || self.items.iter().any(|item| item == key) {
            return;
        }
        let sites = self.read.entry(key.to_owned()).or_default();
        let first = sites.entry(self.here).or_insert(*span);
        *first = (*span).min(*first);
        if reserved::holds(key) && names.len() > 1 {
            self.below.push(names);
        }
    }

    /// Records an unknown name in a text. What is known there is kept for as many as are reported.
    pub(super) fn unknown(&mut self, mut unknown: Unknown) {
        if self.unknown.len() >= FINDINGS_MAX {
            unknown.known = Vec::new();
        }
        self.unknown.push(unknown);
    }

    /// Records that this key is set.
    pub(super) fn sets(&mut self, key: &str) {
        self.set.entry(key.to_owned()).or_default().insert(self.here);
        self.declared.insert(key.to_owned());
    }

    /// Records that a guard waits for this key, which the assistant is to record.
    pub(super) fn awaits(&mut self, key: &str, span: Span) {
        self.set.entry(key.to_owned()).or_default().insert(self.here);
        self.awaited.push((key.to_owned(), span));
    }

    /// Enters a loop.
    pub(super) fn enter(&mut self, item: &str) {
        self.items.push(item.to_owned());
        self.given.insert(item.to_owned());
        self.given.insert(INDEX.to_owned());
    }

    /// Leaves the innermost loop.
    pub(super) fn leave(&mut self) {
        self.items.pop();
    }

    /// Returns true if an enclosing loop gives its item this name.
    pub(super) fn is_item(&self, name: &str) -> bool {
        self.items.iter().any(|item| item == name)
    }

    /// The number of enclosing loops.
    pub(super) fn depth(&self) -> usize {
        self.items.len()
    }

    /// All keys that something sets, those that only the engine writes, and those of loops.
    fn all(&self) -> impl Iterator<Item = &str> {
        let own = self.set.keys().chain(&self.given).map(String::as_str);
        own.chain(reserved::KEYS)
    }

    /// Returns true if [`all`](Self::all) has this key.
    fn knows(&self, key: &str) -> bool {
        self.set.contains_key(key) || self.given.contains(key) || reserved::holds(key)
    }

    /// Reports unknown names. To be called when all keys are known.
    pub(super) fn report_unknown(&self, report: &mut Report) {
        for it in &self.unknown {
            let near = if self.knows(&it.name) {
                Some(as_value(&it.name))
            } else {
                report
                    .nearest(&it.name, it.known.iter().map(String::as_str))
                    .or_else(|| report.nearest(&it.name, self.all()).map(|key| as_value(&key)))
            };
            let finding = if it.word && near.is_none() {
                let message =
                    format!("{} in braces is not a reference and is output unchanged", quoted(&it.name));
                Finding::new(TEXT_BRACES, it.span, message)
            } else {
                let message = format!("there is no {} here", quoted(&it.name));
                Finding::new(NAME_UNKNOWN, it.span, message).allowed(it.known.iter().map(String::as_str))
            };
            report.add(finding.nearest(near).hint(it.form.example()));
        }
    }

    /// Warns of keys that are read and never set, each where it is read first. Unreachable states set nothing.
    pub(super) fn warn(&self, unreachable: &[NodeIx], report: &mut Report) {
        let lives = |site: &Site| site.is_none_or(|at| unreachable.binary_search(&at).is_err());
        for (key, sites) in self.read.iter().filter(|(key, _)| !reserved::holds(key)) {
            let set = self.set.get(key);
            if set.is_some_and(|sites| sites.iter().any(lives)) {
                continue;
            }
            let counts = |site: &Site| set.is_none() || lives(site);
            let Some(span) = sites.iter().filter(|(site, _)| counts(site)).map(|(_, span)| *span).min()
            else {
                continue;
            };
            let (who, near) = if set.is_some() {
                ("only unreachable states set it", None)
            } else {
                let others = self.read.keys().map(String::as_str).filter(|other| other != key);
                let near = report.nearest(key, self.all()).or_else(|| report.nearest(key, others));
                ("nothing in the workflow sets it", near)
            };
            let message = format!("the key {} is read, but {who}", quoted(key));
            let mut finding = Finding::new(KEY_UNSET, span, message).nearest(near);
            if ["gathered", "gathered_data"].contains(&key.as_str()) {
                finding = finding.hint("write only the key, without `gathered` or `gathered_data` before it");
            } else {
                finding = finding.hint(
                    "name it in `required_fields` or in `state_schema` if the assistant or the start sets it",
                );
            }
            report.add(finding);
        }
        self.warn_awaited(report);
    }

    /// Warns of keys that only a guard names, if another key has a similar name.
    fn warn_awaited(&self, report: &mut Report) {
        for (key, span) in self.awaited.iter().filter(|(key, _)| !self.declared.contains(key)) {
            let near = report.nearest(key, self.declared.iter().map(String::as_str));
            let Some(near) = near.filter(|_| !self.read.contains_key(key)) else { continue };
            let message = format!("a guard waits for the key {}, which is named nowhere else", quoted(key));
            let hint = "if this key is right, name it in `required_fields` too";
            report.add(Finding::new(KEY_UNSET, *span, message).nearest(Some(near)).hint(hint));
        }
    }

    /// Warns of reads below the keys that only the engine writes that never find a value, if something there has a
    /// similar name; `states` are the states of each of these keys.
    pub(super) fn warn_below(&self, states: &[(&'static str, &str)], report: &mut Report) {
        for names in &self.below {
            let Some(((key, _), (state, span), rest)) = parts(names) else { continue };
            let of = states.iter().filter(|(known, _)| known == key).map(|(_, state)| *state);
            let (name, span, near) = if of.clone().all(|known| known != state) {
                (state, *span, report.nearest(state, of))
            } else {
                let Some(((field, span), fields)) = rest.first().zip(fields(key)) else { continue };
                if fields.contains(&field.as_str()) {
                    continue;
                }
                (field, *span, report.nearest(field, fields.iter().copied()))
            };
            let Some(near) = near else { continue };
            let message = format!("there is no {} below the key {}", quoted(name), quoted(key));
            report.add(Finding::new(KEY_UNSET, span, message).nearest(Some(near)));
        }
    }
}

type Read = (String, Span);

fn parts(names: &[Read]) -> Option<(&Read, &Read, &[Read])> {
    match names {
        [key, state, rest @ ..] => Some((key, state, rest)),
        _ => None,
    }
}

/// What the engine writes below a state's name.
fn fields(key: &str) -> Option<&'static [&'static str]> {
    match key {
        reserved_keys::APPROVAL => Some(&["decision", "by", "comment", "at", "shown"]),
        reserved_keys::WAIT => Some(&["from", "text", "event_key", "data"]),
        _ => None,
    }
}

/// A key as templates read it.
fn as_value(key: &str) -> String {
    let plain =
        key.chars().all(|c| c.is_alphanumeric() || c == '_') && !key.starts_with(|c: char| c.is_numeric());
    if plain { format!("gathered_data.{key}") } else { format!("gathered_data[\"{key}\"]") }
}
