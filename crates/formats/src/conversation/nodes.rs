//! From states and transitions to nodes. See
//! `docs/formats-conversation.md#fields-of-every-state` and `docs/formats-conversation.md#transitions-and-ports`.

use switchward_machine::{
    Accept, Act, ActKind, Ask, Boundary, Callee, CalleeIx, CalleeKind, Decide, Dialect, EndReason, Ending,
    Exit, GateIx, GateSpec, Gives, Guard, Kids, NoExit, Node as Vertex, NodeIx, Op, Outcome, Port, Spawn,
    Target, Trigger, Wait, WaitOn, Work, WorkKind,
};

use super::boundary::OnError;
use super::parse::COMPLETE;
use super::state::{Call, Kind, State};
use super::transitions::{ERROR, Edge, TIMEOUT};
use super::{approval, body, read, steps};

/// The port of an output state.
const DONE: &str = "done";
/// The ports of a wait.
const RECEIVED: &str = "received";
/// The history's label for the end of a state without transitions.
const TERMINAL: &str = "terminal";
/// The history's label for the target of a branch.
const BRANCH: &str = "conditional_branch";

/// The node of a state, and the transitions that leave it.
pub(super) fn vertex(
    mut state: State<'_>,
    edges: Vec<Edge<'_>>,
    names: &[String],
    gates: &mut Vec<GateSpec>,
    callees: &mut Vec<Callee>,
) -> Vertex {
    let timer_port = timer_port(&edges);
    if let Kind::Approval(spec) = &mut state.kind
        && !edges.iter().any(|edge| edge.port == Some(approval::DISCUSSION))
    {
        approval::pass_discussions_on(spec);
    }
    let terminal = edges.is_empty();
    let mut exits: Vec<Exit> = edges.into_iter().map(|edge| exit(edge, &state.kind)).collect();
    let success = match state.kind {
        Kind::Timer(_) => named(timer_port),
        Kind::Event(..) | Kind::Reply(..) => named(RECEIVED),
        Kind::Work(_) => named(COMPLETE),
        Kind::Conversation
        | Kind::Action
        | Kind::Operations(_)
        | Kind::Output(_)
        | Kind::Approval(_)
        | Kind::Task(_)
        | Kind::Delegate(_)
        | Kind::Subworkflow(_)
        | Kind::NotRun => Port::Done,
    };
    let on_no_exit = on_no_exit(&state.kind, terminal);
    if terminal {
        exits.extend(last_exits(&state.kind));
    }
    let acts = acts(state.kind, state.text, timer_port, names, gates, callees, &mut exits);
    if let Some(spec) = state.gate {
        hold(spec, gates, &mut exits);
    }
    let mut vertex = Vertex::new(state.name, acts);
    vertex.exits = exits;
    vertex.on_no_exit = on_no_exit;
    vertex.text = state.text.map(str::to_owned);
    vertex.dialect = Dialect::Braces;
    vertex.turns = true;
    vertex.attempts = state.errors.attempts;
    vertex.asked = state.errors.asked;
    vertex.boundary = match state.errors.on_error {
        OnError::Fail => Boundary::Fail,
        OnError::Port => Boundary::Port(named(ERROR)),
        OnError::Ignore => Boundary::Ignore(success),
    };
    vertex
}

/// Every transition is held except that of the port `error`. The end of a state without transitions is
/// no transition.
fn hold(spec: GateSpec, gates: &mut Vec<GateSpec>, exits: &mut [Exit]) {
    let error = Trigger::Port(named(ERROR));
    let gate = opened(spec, gates);
    for exit in exits.iter_mut().filter(|exit| exit.on != error && matches!(exit.to, Target::Node(_))) {
        exit.hold = Some(gate);
    }
}

/// Adds a gate to those of the machine.
fn opened(spec: GateSpec, gates: &mut Vec<GateSpec>) -> GateIx {
    gates.push(spec);
    GateIx(u16::try_from(gates.len() - 1).expect("a workflow has at most two gates per state"))
}

/// The port that a timer ends with: `received` if it has a transition, else `timeout`.
pub(super) fn timer_port(edges: &[Edge<'_>]) -> &'static str {
    if edges.iter().any(|edge| edge.port == Some(RECEIVED)) { RECEIVED } else { TIMEOUT }
}

fn named(port: &str) -> Port {
    Port::Named(port.to_owned())
}

fn exit(edge: Edge<'_>, kind: &Kind) -> Exit {
    let on = match (edge.port, kind) {
        // The end of a message is not a port of the machine; a wait may sort into a port of this name.
        (None, _) | (Some(DONE), Kind::Output(_)) => Trigger::Auto { event: !edge.guard.is_open() },
        (Some(port), _) => Trigger::Port(named(port)),
    };
    Exit { guard: edge.guard, label: edge.label, ..Exit::plain(on, Target::Node(edge.to)) }
}

fn on_no_exit(kind: &Kind, terminal: bool) -> NoExit {
    let end = || NoExit::End(Ending::plain(Outcome::Completed));
    match kind {
        Kind::Conversation | Kind::Action | Kind::Task(_) | Kind::Delegate(_) => NoExit::Stay,
        Kind::Operations(_) | Kind::Subworkflow(_) | Kind::NotRun => {
            if terminal {
                end()
            } else {
                NoExit::Stay
            }
        }
        Kind::Output(_)
        | Kind::Timer(_)
        | Kind::Event(..)
        | Kind::Reply(..)
        | Kind::Work(_)
        | Kind::Approval(_) => {
            if terminal {
                end()
            } else {
                NoExit::Fail(EndReason::PortUnconnected)
            }
        }
    }
}

/// The exits of a state without transitions.
fn last_exits(kind: &Kind) -> Vec<Exit> {
    let end = |on, label: String| Exit {
        guard: Guard::Always,
        label,
        ..Exit::plain(on, Target::End(Ending::plain(Outcome::Completed)))
    };
    let at = |ports: &[&str]| -> Vec<Exit> {
        ports.iter().map(|port| end(Trigger::Port(named(port)), format!("port {port}"))).collect()
    };
    match kind {
        Kind::Conversation | Kind::Action | Kind::Task(_) | Kind::Delegate(_) => {
            let mut exits = vec![end(Trigger::Auto { event: false }, TERMINAL.into())];
            if is_timed(kind) {
                exits.extend(at(&[TIMEOUT]));
            }
            exits
        }
        Kind::Timer(_) | Kind::Event(_, None) | Kind::Reply(_, None) => at(&[RECEIVED, TIMEOUT]),
        Kind::Event(_, Some(sort)) | Kind::Reply(_, Some(sort)) => {
            let ports: Vec<&str> = sort.ports.iter().map(|(port, _)| port.word()).chain([TIMEOUT]).collect();
            at(&ports)
        }
        Kind::Work(work) => match &work.accept {
            Some(Accept::Fields { complete, incomplete, .. }) => [complete, incomplete]
                .map(|port| end(Trigger::Port(port.clone()), format!("port {}", port.word())))
                .into(),
            Some(Accept::Data | Accept::Answer { .. } | Accept::Workflows | Accept::Contract(_)) | None => {
                Vec::new()
            }
        },
        Kind::Approval(_) => {
            let mut ports = approval::PORTS.to_vec();
            ports.retain(|port| *port != approval::DISCUSSION);
            at(&ports)
        }
        Kind::Operations(_) | Kind::Output(_) | Kind::Subworkflow(_) | Kind::NotRun => Vec::new(),
    }
}

/// Returns true if a state is a task that ends when nobody answers in time.
fn is_timed(kind: &Kind) -> bool {
    matches!(kind, Kind::Task(spec) if spec.inquiry.as_ref().is_some_and(|inquiry| inquiry.rounds.is_some()))
}

fn acts(
    kind: Kind,
    text: Option<&str>,
    timer_port: &str,
    names: &[String],
    gates: &mut Vec<GateSpec>,
    callees: &mut Vec<Callee>,
    exits: &mut Vec<Exit>,
) -> Vec<Act> {
    let one = |kind| vec![Act { kind, then: Vec::new() }];
    match kind {
        Kind::Conversation => one(ActKind::Ask(Ask { turns: true })),
        Kind::Action => {
            let input = text.map(|text| format!(r#"{{"instructions":{}}}"#, read::json_text(text)));
            let owed = Work { turn_ends: true, ..Work::plain(WorkKind::Agent) };
            one(ActKind::Work(Work { accept: Some(Accept::Data), input, ..owed }))
        }
        Kind::Work(work) | Kind::Delegate(work) => one(ActKind::Work(work)),
        Kind::Operations(steps) => {
            let mut targets = Vec::new();
            steps::targets(&steps, &mut targets);
            exits.extend(targets.into_iter().filter_map(|to| branch(to, names)));
            body::acts(steps)
        }
        Kind::Output(message) => one(ActKind::Do(message.map(Op::Send).into_iter().collect())),
        Kind::Timer(for_ms) => {
            one(ActKind::Wait(Wait::plain(WaitOn::Time, for_ms, named(timer_port), Port::Done)))
        }
        Kind::Event(for_ms, sort) => {
            let wait = Wait::plain(WaitOn::Event, for_ms, named(TIMEOUT), named(RECEIVED));
            one(ActKind::Wait(Wait { sort, ..wait }))
        }
        Kind::Reply(for_ms, sort) => {
            let wait = Wait::plain(WaitOn::Reply, for_ms, named(TIMEOUT), named(RECEIVED));
            one(ActKind::Wait(Wait { sort, ..wait }))
        }
        Kind::Approval(spec) => one(ActKind::Decide(Decide { gate: opened(*spec, gates), each: false })),
        Kind::Task(spec) => one(ActKind::Decide(Decide { gate: opened(*spec, gates), each: true })),
        Kind::Subworkflow(call) => one(ActKind::Spawn(spawn(*call, callees))),
        Kind::NotRun => one(ActKind::Do(Vec::new())),
    }
}

/// A run of another workflow, with named values in and out.
fn spawn(call: Call, callees: &mut Vec<Callee>) -> Spawn {
    let callee = Callee { name: call.workflow, version: None, kind: CalleeKind::Workflow };
    let known = callees.iter().position(|other| *other == callee);
    let at = known.unwrap_or_else(|| {
        callees.push(callee);
        callees.len() - 1
    });
    let at = u16::try_from(at).expect("a workflow has fewer states than a u16 can count");
    Spawn { kids: Kids::Call(CalleeIx(at)), input: call.input, result: Gives::Return(call.output) }
}

/// The exit of a branch, which bypasses the transitions.
fn branch(to: NodeIx, names: &[String]) -> Option<Exit> {
    let name = names.get(usize::try_from(to.0).ok()?)?;
    let on = Trigger::Port(Port::Branch(name.clone()));
    Some(Exit { label: BRANCH.into(), ..Exit::plain(on, Target::Node(to)) })
}
