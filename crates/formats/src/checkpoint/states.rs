//! States. See `docs/formats-checkpoint.md#states-and-answers`.

use std::collections::BTreeMap;

use switchward_machine::limits::{NAME_BYTES_MAX, NODES_MAX, TEXT_BYTES_MAX};
use switchward_machine::{Act, ActKind, Ask, Ending, NoExit, Node as Vertex, NodeIx, Outcome};

use super::answers;
use crate::codes::{INITIAL_DANGLING, NO_STATES};
use crate::document::{Entry, Node};
use crate::shape::{self, Fields, Shape};
use crate::{Finding, Report, quoted};

const STATE: Shape = Shape {
    what: "a state",
    keys: &["question", "answers"],
    ignored: &[],
    hints: &[("initial", "`initial` of the process names the first state")],
};

/// The result of compiling the states.
pub(super) struct States<'a> {
    /// The state in which a session starts.
    pub(super) start: NodeIx,
    /// One per state, in the author's order.
    pub(super) nodes: Vec<Vertex>,
    /// As written.
    pub(super) entries: &'a [Entry],
    /// True if an answer asks for a person's review.
    pub(super) notifies: bool,
    /// True if the states have no errors.
    pub(super) sound: bool,
}

/// The states by name, for `initial` and every `next`.
pub(super) struct Names<'a> {
    entries: &'a [Entry],
    indices: BTreeMap<&'a str, u32>,
}

impl<'a> Names<'a> {
    fn new(entries: &'a [Entry]) -> Self {
        Self { entries, indices: (0..).zip(entries).map(|(at, (key, _))| (key.text.as_str(), at)).collect() }
    }

    /// The node of the state of this name.
    pub(super) fn find(&self, name: &str) -> Option<NodeIx> {
        self.indices.get(name).copied().map(NodeIx)
    }

    /// All names, in the author's order.
    pub(super) fn all(&self) -> impl Iterator<Item = &'a str> + Clone + use<'a> {
        self.entries.iter().map(|(key, _)| key.text.as_str())
    }
}

/// Reads `initial` and `states`. Returns `None` if the start is unknown.
pub(super) fn read<'a>(fields: &Fields<'a>, report: &mut Report) -> Option<States<'a>> {
    let errors_before = report.errors();
    let initial = fields.required("initial", report);
    let states = fields.required("states", report)?;
    let entries = shape::map(states, "`states`", NODES_MAX, report)?;
    if entries.is_empty() {
        report.add(Finding::new(NO_STATES, states.span, "a process needs at least one state"));
        return None;
    }
    let names = Names::new(entries);
    let start = initial.and_then(|node| start(node, &names, report));
    let nodes = entries.iter().map(|(key, state)| {
        shape::is_name(&key.text, "the name of a state", NAME_BYTES_MAX, key.span, report);
        vertex(&key.text, state, &names, report)
    });
    let nodes: Vec<Vertex> = nodes.collect();
    let notifies = nodes.iter().flat_map(|node| &node.exits).any(|exit| exit.hold.is_some());
    Some(States { start: start?, nodes, entries, notifies, sound: report.errors() == errors_before })
}

fn start(node: &Node, names: &Names<'_>, report: &mut Report) -> Option<NodeIx> {
    let name = shape::text(node, "`initial`", usize::MAX, report)?;
    let found = names.find(name);
    if found.is_none() {
        let message = format!("`initial` names the state {}, which does not exist", quoted(name));
        shape::dangling(INITIAL_DANGLING, node, message, names.all(), report);
    }
    found
}

fn vertex(name: &str, state: &Node, names: &Names<'_>, report: &mut Report) -> Vertex {
    let mut vertex = terminal(name);
    let Some(fields) = Fields::open(state, &STATE, report) else { return vertex };
    let what = format!("`question` of the state {}", quoted(name));
    let question = fields.required("question", report);
    vertex.text =
        question.and_then(|node| shape::text(node, &what, TEXT_BYTES_MAX, report)).map(str::to_owned);
    if let Some(node) = fields.optional("answers") {
        vertex.exits = answers::read(node, name, names, report);
    }
    if !vertex.exits.is_empty() {
        vertex.acts = vec![Act { kind: ActKind::Ask(Ask { turns: false }), then: Vec::new() }];
        vertex.on_no_exit = NoExit::Stay;
    }
    vertex
}

/// A state with no answers: entering it completes the session, and its question is the closing text.
fn terminal(name: &str) -> Vertex {
    let nothing = Act { kind: ActKind::Do(Vec::new()), then: Vec::new() };
    let on_no_exit = NoExit::End(Ending::plain(Outcome::Completed));
    Vertex { on_no_exit, ..Vertex::new(name, vec![nothing]) }
}
