//! From a machine to a graph.

use std::collections::{BTreeMap, BTreeSet};
use switchward_machine::{
    Accept, ActKind, Boundary, Decision, EndReason, Kids, Machine, NoExit, Node, Op, Outcome, Port, Resolve,
    Target, Trigger, WaitOn, WorkKind, analyse,
};

use crate::limits::ENDS_SHARED_MAX;
use crate::{Edge, EdgeKind, Graph, Kind, Label, Vertex, label};

/// The goal of an exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Goal {
    Node(usize),
    End(Outcome),
}

/// An exit of a node, before exits to the same goal are merged to one edge.
struct Out {
    from: usize,
    to: Goal,
    kind: EdgeKind,
    label: Label,
}

impl Graph {
    /// The graph of a machine. Not drawn: that a run can fail in any node, be cancelled or be replaced. Drawn: the end of a
    /// run at an unconnected port.
    #[must_use]
    pub fn of(machine: &Machine) -> Self {
        let unreached: BTreeSet<usize> =
            analyse(machine).unreachable.into_iter().filter_map(|ix| usize::try_from(ix.0).ok()).collect();
        let start = usize::try_from(machine.start.0).ok();
        let mut outs = Vec::new();
        for (at, node) in machine.nodes.iter().enumerate() {
            leave(machine, at, node, &mut outs);
        }
        let mut vertices: Vec<Vertex> = machine.nodes.iter().map(|node| vertex(machine, node)).collect();
        for (at, vertex) in vertices.iter_mut().enumerate() {
            vertex.start = start == Some(at);
            vertex.reached = !unreached.contains(&at);
        }
        let ways = |to_end: bool| {
            let found = outs.iter().filter(move |out| matches!(out.to, Goal::End(_)) == to_end);
            found.map(|out| out.from).collect::<BTreeSet<usize>>()
        };
        for at in ways(true).difference(&ways(false)) {
            vertices[*at].last = true;
        }
        let edges = join(outs, &mut vertices);
        Self { name: machine.meta.name.clone(), vertices, edges }
    }
}

fn vertex(machine: &Machine, node: &Node) -> Vertex {
    let mut acts = Vec::new();
    for word in node.acts.iter().filter_map(|act| word(machine, &act.kind)) {
        if !acts.contains(&word) {
            acts.push(word);
        }
    }
    Vertex {
        kind: Kind::Node,
        name: node.name.clone(),
        text: node.text.clone(),
        acts,
        start: false,
        last: false,
        reached: true,
    }
}

fn word(machine: &Machine, act: &ActKind) -> Option<String> {
    let word = match act {
        ActKind::Ask(_) => "asks",
        ActKind::Work(work) if work.kind == WorkKind::Delegate => "delegates",
        ActKind::Work(_) => "works",
        ActKind::Wait(_) => "waits",
        ActKind::Decide(decide) if decide.each => "people answer",
        ActKind::Decide(_) => "a person decides",
        ActKind::Spawn(spawn) => {
            return match &spawn.kids {
                Kids::Call(callee) => machine.callee(*callee).map(|callee| format!("calls {}", callee.name)),
                Kids::Fixed(children) => {
                    let names: Vec<&str> = children.iter().map(|child| child.name.as_str()).collect();
                    Some(format!("runs {}", names.join(", ")))
                }
            };
        }
        ActKind::Do(ops) if ops.is_empty() => return None,
        ActKind::Do(ops) if ops.iter().all(|op| matches!(op, Op::Send(_))) => "sends",
        ActKind::Do(_) => "runs",
    };
    Some(word.to_owned())
}

/// Every exit of a node.
fn leave(machine: &Machine, from: usize, node: &Node, outs: &mut Vec<Out>) {
    for exit in &node.exits {
        let label = label::of(node, exit);
        let kind = if exit.hold.is_some() { EdgeKind::Held } else { EdgeKind::Free };
        let to = match &exit.to {
            Target::Node(ix) => usize::try_from(ix.0).map(Goal::Node).ok(),
            Target::End(ending) => Some(Goal::End(ending.outcome)),
        };
        let held = exit.hold.and_then(|gate| machine.gate(gate)?.resolve(Decision::Refuse));
        if let Some(to) = to {
            outs.push(Out { from, to, kind, label: label.clone() });
        }
        match held {
            Some(Resolve::End(ending)) => {
                outs.push(Out { from, to: Goal::End(ending.outcome), kind: EdgeKind::Refused, label });
            }
            Some(
                Resolve::TakeHeld
                | Resolve::Grant
                | Resolve::Deny
                | Resolve::Settle(_)
                | Resolve::Stay
                | Resolve::PassOn,
            )
            | None => {}
        }
    }
    for port in ports(machine, node) {
        if let Some((outcome, label)) = unconnected(node, &port) {
            outs.push(Out { from, to: Goal::End(outcome), kind: EdgeKind::Free, label });
        }
    }
}

/// The ports that a body can end with.
fn ports(machine: &Machine, node: &Node) -> BTreeSet<Port> {
    let mut found = BTreeSet::new();
    for act in &node.acts {
        let ends = ends(machine, &act.kind);
        let wired = |port: &Port| act.then.iter().any(|(known, _)| known == port);
        found.extend(ends.into_iter().filter(|port| !wired(port)).cloned());
    }
    match &node.boundary {
        Boundary::Fail => {}
        Boundary::Port(port) | Boundary::Ignore(port) => {
            found.insert(port.clone());
        }
    }
    found
}

/// The ports that an act can end with.
fn ends<'m>(machine: &'m Machine, act: &'m ActKind) -> Vec<&'m Port> {
    match act {
        // Only an answer ends it.
        ActKind::Ask(ask) if !ask.turns => Vec::new(),
        ActKind::Ask(_) | ActKind::Do(_) | ActKind::Spawn(_) => vec![&Port::Done],
        ActKind::Work(work) => match &work.accept {
            Some(Accept::Fields { complete, incomplete, .. }) => vec![complete, incomplete],
            Some(Accept::Data | Accept::Answer { .. } | Accept::Workflows | Accept::Contract(_)) | None => {
                vec![&Port::Done]
            }
        },
        ActKind::Wait(wait) => match (wait.on, &wait.sort) {
            (WaitOn::Time, _) => vec![&wait.late],
            (WaitOn::Event | WaitOn::Reply, None) => vec![&wait.done, &wait.late],
            (WaitOn::Event | WaitOn::Reply, Some(sort)) => {
                sort.ports.iter().map(|(port, _)| port).chain([&wait.late]).collect()
            }
        },
        ActKind::Decide(decide) => {
            let Some(spec) = machine.gate(decide.gate) else { return Vec::new() };
            let rounds = spec.inquiry.as_ref().and_then(|inquiry| inquiry.rounds.as_ref());
            let all = spec.outcomes.iter().map(|(_, resolve)| resolve);
            let port = |resolve: &'m Resolve| match resolve {
                Resolve::Settle(port) => Some(port),
                Resolve::TakeHeld
                | Resolve::End(_)
                | Resolve::Grant
                | Resolve::Deny
                | Resolve::Stay
                | Resolve::PassOn => None,
            };
            all.chain(rounds.map(|rounds| &rounds.lapse)).filter_map(port).collect()
        }
    }
}

/// The outcome of a run if no exit takes this port; `None` if the run does not end.
fn unconnected(node: &Node, port: &Port) -> Option<(Outcome, Label)> {
    if *port != Port::Done {
        let stands = node.exits.iter().any(|exit| exit.on == Trigger::Port(port.clone()));
        return (!stands).then(|| (Outcome::Failed, Label::plain(format!("{}, unconnected", port.word()))));
    }
    if node.exits.iter().any(|exit| matches!(exit.on, Trigger::Auto { .. }) && exit.guard.is_open()) {
        return None;
    }
    match &node.on_no_exit {
        NoExit::Stay => None,
        NoExit::End(ending) => {
            Some((ending.outcome, Label::plain(ending.reason.map(EndReason::word).unwrap_or_default())))
        }
        NoExit::Fail(reason) => Some((Outcome::Failed, Label::plain(reason.word()))),
    }
}

/// Merges exits between the same two vertices to one edge, and adds the vertices of the outcomes.
fn join(outs: Vec<Out>, vertices: &mut Vec<Vertex>) -> Vec<Edge> {
    let mut ending: BTreeMap<Outcome, BTreeSet<usize>> = BTreeMap::new();
    for out in &outs {
        if let Goal::End(outcome) = out.to {
            ending.entry(outcome).or_default().insert(out.from);
        }
    }
    let mut ends: BTreeMap<(Outcome, Option<usize>), usize> = BTreeMap::new();
    let mut known: BTreeMap<(usize, usize, EdgeKind), usize> = BTreeMap::new();
    let mut edges: Vec<Edge> = Vec::new();
    for out in outs {
        let to = match out.to {
            Goal::Node(at) => at,
            Goal::End(outcome) => {
                let shared = ending.get(&outcome).is_some_and(|from| from.len() <= ENDS_SHARED_MAX);
                let reached = vertices.get(out.from).is_some_and(|vertex| vertex.reached);
                let at = *ends.entry((outcome, (!shared).then_some(out.from))).or_insert_with(|| {
                    vertices.push(end(outcome));
                    vertices.len() - 1
                });
                vertices[at].reached |= reached;
                at
            }
        };
        let at = *known.entry((out.from, to, out.kind)).or_insert_with(|| {
            edges.push(Edge { from: out.from, to, kind: out.kind, labels: Vec::new() });
            edges.len() - 1
        });
        let labels = &mut edges[at].labels;
        if !out.label.text.is_empty() && !labels.contains(&out.label) {
            labels.push(out.label);
        }
    }
    edges
}

fn end(outcome: Outcome) -> Vertex {
    Vertex {
        kind: Kind::End(outcome),
        name: outcome.status().word().to_owned(),
        text: None,
        acts: Vec::new(),
        start: false,
        last: false,
        reached: false,
    }
}
