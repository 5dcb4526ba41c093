//! What differs between two machines: states, routes, writes, people and policy. A difference that weakens a control is
//! marked; so is one that may weaken it or not.
//!
//! States are compared by name, and what has an index is compared by what it stands for. What no rule here knows is still
//! noticed, because each part is compared as a whole as well.

mod acts;
mod pairing;
mod people;
mod policy;
mod rest;
mod routes;
mod states;

use std::fmt::Debug;

use crate::limits::DIFFERENCE_TEXT_BYTES_MAX;
use crate::{GateIx, GateSpec, Machine, NodeIx};

/// The part of a machine that a difference is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// A state, and what is done in it.
    State,
    /// A way from one state to another.
    Route,
    /// What is written into the data.
    Writes,
    /// Who decides, and what that does.
    People,
    /// What may be called and spent.
    Policy,
    /// Anything else.
    Other,
}

/// What has happened to the subject of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Only the machine after has it.
    Added,
    /// Only the machine before has it.
    Removed,
    /// Both have it, in different forms.
    Changed,
}

/// One difference between two machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What of a machine is concerned.
    pub part: Part,
    /// What has happened.
    pub change: Change,
    /// The name of the state that it is in, if it is in one.
    pub state: Option<String>,
    /// What differs, for people.
    pub subject: String,
    /// How it was; `None` if there was none, or the subject says it all.
    pub before: Option<String>,
    /// How it is afterwards; `None` if there is none, or the subject says it all.
    pub after: Option<String>,
    /// Whether a control is or may be weaker afterwards.
    pub weaker: bool,
}

impl Difference {
    fn new(part: Part, change: Change, subject: impl Into<String>) -> Self {
        let subject = cut(subject.into());
        Self { part, change, state: None, subject, before: None, after: None, weaker: false }
    }

    fn changed(part: Part, subject: impl Into<String>) -> Self {
        Self::new(part, Change::Changed, subject)
    }

    fn state(self, state: &str) -> Self {
        Self { state: Some(state.to_owned()), ..self }
    }

    fn in_state(self, state: Option<&str>) -> Self {
        Self { state: state.map(str::to_owned), ..self }
    }

    fn texts(self, before: impl Into<String>, after: impl Into<String>) -> Self {
        Self { before: Some(cut(before.into())), after: Some(cut(after.into())), ..self }
    }

    fn text(self, text: impl Into<String>) -> Self {
        let text = Some(cut(text.into()));
        match self.change {
            Change::Added | Change::Changed => Self { after: text, ..self },
            Change::Removed => Self { before: text, ..self },
        }
    }

    fn weaker_if(self, weaker: bool) -> Self {
        Self { weaker, ..self }
    }
}

/// What differs between two machines, by part, in each part in the order of the states. Equal machines have no differences,
/// other machines at least one.
#[must_use]
pub fn diff(before: &Machine, after: &Machine) -> Vec<Difference> {
    let mut sides = Sides { before, after, found: Vec::new() };
    states::compare(&mut sides);
    policy::compare(&mut sides);
    rest::compare(&mut sides);
    let Sides { mut found, .. } = sides;
    if found.is_empty() && before != after {
        found.push(Difference::changed(Part::Other, "compiled form"));
    }
    found.sort_by_key(|difference| difference.part);
    found
}

/// The same part of both machines.
#[derive(Clone, Copy)]
struct Both<T> {
    before: T,
    after: T,
}

/// Two machines, and what was found to differ.
struct Sides<'m> {
    before: &'m Machine,
    after: &'m Machine,
    found: Vec<Difference>,
}

impl Sides<'_> {
    fn add(&mut self, difference: Difference) {
        self.found.push(difference);
    }

    /// Adds the difference if these two differ.
    fn unequal<T: PartialEq>(&mut self, before: &T, after: &T, difference: impl FnOnce() -> Difference) {
        if before != after {
            self.found.push(difference());
        }
    }
}

fn gate_of(machine: &Machine, gate: Option<GateIx>) -> Option<&GateSpec> {
    gate.and_then(|gate| machine.gate(gate))
}

fn name_of(machine: &Machine, node: NodeIx) -> &str {
    machine.node(node).map_or("", |node| node.name.as_str())
}

/// The name of the variant of a value, in lower case.
fn variant(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    text[..end].to_ascii_lowercase()
}

/// A text of at most [`DIFFERENCE_TEXT_BYTES_MAX`] bytes.
fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(DIFFERENCE_TEXT_BYTES_MAX));
    text
}

/// A list for people.
fn listed<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let mut text = String::new();
    for item in items {
        if text.len() > DIFFERENCE_TEXT_BYTES_MAX {
            break;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(item.as_ref());
    }
    text
}
