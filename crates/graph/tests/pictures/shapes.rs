//! The graphs of a machine's parts.

use switchward_machine::{
    Act, ActKind, Boundary, Callee, CalleeIx, CalleeKind, Decision, Ending, Exit, GateIx, GateKind, GateSpec,
    Gives, Kids, Machine, Meta, NoExit, Node, NodeIx, Opening, Outcome, Policy, Port, Resolve, Spawn,
    StatusWords, Target, Templates, Trigger, Wait, WaitOn,
};

use switchward_graph::limits::VERTICES_MAX;
use switchward_graph::{EdgeKind, Graph, Kind, TooLarge, dot, mermaid, svg};

fn machine(nodes: Vec<Node>) -> Machine {
    let blocked = Resolve::End(Ending::plain(Outcome::Blocked));
    let outcomes = vec![(Decision::Approve, Resolve::TakeHeld), (Decision::Refuse, blocked)];
    Machine {
        start: NodeIx(0),
        nodes,
        gates: vec![GateSpec::open_to_all(GateKind::Notify, outcomes)],
        policy: Policy::default(),
        budgets: Vec::new(),
        params: Vec::new(),
        opening: Opening::default(),
        words: StatusWords::default(),
        meta: Meta::default(),
        fields: Vec::new(),
        inputs: Vec::new(),
        reserved_keys: Vec::new(),
        callees: Vec::new(),
        data_schema: None,
        initial: Vec::new(),
        model: None,
        templates: Templates::Lenient,
    }
}

fn node(name: &str, exits: Vec<Exit>) -> Node {
    let act = Act { kind: ActKind::Do(Vec::new()), then: Vec::new() };
    Node { exits, ..Node::new(name, vec![act]) }
}

fn on(answer: &str, to: Target) -> Exit {
    Exit::plain(Trigger::Answer(answer.to_owned()), to)
}

fn to(ix: u32) -> Target {
    Target::Node(NodeIx(ix))
}

fn end(outcome: Outcome) -> Target {
    Target::End(Ending::plain(outcome))
}

/// `from -> to kind: labels` of each edge.
fn described(machine: &Machine) -> Vec<String> {
    let graph = Graph::of(machine);
    let name = |at: usize| graph.vertices[at].name.as_str();
    let edge = |edge: &switchward_graph::Edge| {
        let labels: Vec<&str> = edge.labels.iter().map(|label| label.whole.as_str()).collect();
        format!("{} -> {} {}: {}", name(edge.from), name(edge.to), edge.kind.word(), labels.join(", "))
    };
    graph.edges.iter().map(edge).collect()
}

#[test]
fn exits_to_the_same_node_are_one_edge() {
    let machine = machine(vec![node("a", vec![on("x", to(1)), on("y", to(1))]), node("b", Vec::new())]);
    assert_eq!(described(&machine), ["a -> b free: x, y"]);
}

#[test]
fn a_held_exit_is_another_way_and_a_refusal_ends_the_run() {
    let held = Exit { hold: Some(GateIx(0)), ..on("yes", to(1)) };
    let machine = machine(vec![node("a", vec![held, on("no", to(1))]), node("b", Vec::new())]);
    assert_eq!(described(&machine), ["a -> b held: yes", "a -> blocked refused: yes", "a -> b free: no"]);
}

#[test]
fn an_end_is_shared_by_few_and_stands_beside_many() {
    let ends = |count: u32| {
        let nodes = (0..count).map(|at| {
            node(&at.to_string(), vec![on("next", to((at + 1) % count)), on("no", end(Outcome::Blocked))])
        });
        let graph = Graph::of(&machine(nodes.collect()));
        graph.vertices.iter().filter(|vertex| vertex.kind == Kind::End(Outcome::Blocked)).count()
    };
    assert_eq!((ends(3), ends(4)), (1, 4));
}

#[test]
fn a_port_that_nothing_stands_at_ends_the_run() {
    let wait = Wait {
        on: WaitOn::Event,
        sort: None,
        for_ms: 1,
        late: Port::Named("timeout".into()),
        done: Port::Named("received".into()),
    };
    let act = Act { kind: ActKind::Wait(wait), then: Vec::new() };
    let received = Exit::plain(Trigger::Port(Port::Named("received".into())), to(1));
    let waits = Node { exits: vec![received], ..Node::new("a", vec![act]) };
    let last = Node {
        boundary: Boundary::Port(Port::Named("error".into())),
        on_no_exit: NoExit::End(Ending::plain(Outcome::Completed)),
        ..node("b", Vec::new())
    };
    assert_eq!(
        described(&machine(vec![waits, last])),
        [
            "a -> b free: received",
            "a -> failed free: timeout, unconnected",
            "b -> completed free: ",
            "b -> failed free: error, unconnected",
        ]
    );
}

#[test]
fn a_call_names_what_it_calls() {
    let result = Gives::Return(Vec::new());
    let spawn = Spawn { kids: Kids::Call(CalleeIx(0)), input: Vec::new(), result };
    let act = Act { kind: ActKind::Spawn(spawn), then: Vec::new() };
    let callees = vec![Callee { name: "<shipping>".into(), version: None, kind: CalleeKind::Workflow }];
    let calling = Machine { callees, ..machine(vec![Node::new("send", vec![act])]) };
    let graph = Graph::of(&calling);
    assert_eq!(graph.vertices[0].acts, ["calls <shipping>"]);
    assert!(svg(&graph).unwrap().contains("calls &lt;shipping&gt;"), "every writer escapes it");
}

#[test]
fn what_cannot_be_reached_is_there_and_marked() {
    let machine = machine(vec![
        node("a", vec![on("x", end(Outcome::Completed))]),
        node("b", vec![on("x", to(0)), on("y", end(Outcome::Failed))]),
    ]);
    let graph = Graph::of(&machine);
    let described: Vec<(&str, bool, bool, bool)> =
        graph.vertices.iter().map(|it| (it.name.as_str(), it.start, it.last, it.reached)).collect();
    assert_eq!(
        described,
        [
            ("a", true, true, true),
            ("b", false, false, false),
            ("completed", false, false, true),
            ("failed", false, false, false),
        ]
    );
    assert!(graph.edges.iter().all(|edge| edge.kind == EdgeKind::Free));
}

#[test]
fn long_labels_are_cut_and_whole_in_the_title() {
    let long = "x".repeat(300);
    let machine = machine(vec![node("a", vec![on(&long, to(0))])]);
    let picture = svg(&Graph::of(&machine)).unwrap();
    let shown = format!(">{}…</text>", "x".repeat(35));
    assert!(picture.contains(&shown) && picture.contains(&format!("a: {long}</title>")), "{picture}");
}

#[test]
fn what_is_too_large_to_be_laid_out_is_refused_and_written_elsewhere() {
    let nodes = |count: usize| (0..count).map(|at| node(&at.to_string(), Vec::new())).collect();
    assert!(svg(&Graph::of(&machine(nodes(VERTICES_MAX)))).is_ok());
    let large = Graph::of(&machine(nodes(VERTICES_MAX + 1)));
    assert_eq!(svg(&large), Err(TooLarge::Vertices(VERTICES_MAX + 1)));
    assert!(dot(&large).contains("n2000 [") && mermaid(&large).contains("n2000["));
    // Each of a thousand nodes leads back to the first one.
    let back = |at: u32| node(&at.to_string(), vec![on("next", to((at + 1) % 1000)), on("back", to(0))]);
    assert_eq!(svg(&Graph::of(&machine((0..1000).map(back).collect()))), Err(TooLarge::Slots));
}
