//! The machines of whole conversation workflows.

use switchward_expr::{CmpOp, DataType, Path, Reducer, Transform};
use switchward_formats::Format;
use switchward_machine::{
    Act, ActIx, ActKind, Ask, Case, Channel, Content, Convert, Dialect, Each, EndReason, Ending, Exit,
    GateKind, Guard, Input, Machine, Message, NoExit, Node, NodeIx, Op, Otherwise, Outcome, Port, Recipient,
    Target, Text, Trigger, Wait, WaitOn, Write,
};

use super::support::{EVERYTHING, REFUND, clean, compile_text, workflow};

fn path(text: &str) -> Path {
    Path::new(text).expect("it is a path")
}

fn auto(event: bool, guard: Guard, label: &str, to: u32) -> Exit {
    let on = Trigger::Auto { event };
    Exit { guard, label: label.into(), ..Exit::plain(on, Target::Node(NodeIx(to))) }
}

fn named(port: &str) -> Port {
    Port::Named(port.into())
}

fn node(name: &str, acts: Vec<Act>, exits: Vec<Exit>, on_no_exit: NoExit) -> Node {
    Node { exits, on_no_exit, dialect: Dialect::Braces, turns: true, ..Node::new(name, acts) }
}

fn acts<const N: usize>(kinds: [(ActKind, Vec<(Port, ActIx)>); N]) -> Vec<Act> {
    kinds.map(|(kind, then)| Act { kind, then }).into()
}

fn route() -> Node {
    let braces = |source: &str| Text { source: source.into(), dialect: Dialect::Braces };
    let mail = Message {
        channel: Channel::Email,
        to: vec![Recipient::Contact],
        subject: Some(braces("s")),
        body: Some(braces("b")),
        content: Content::Text,
    };
    let before = vec![
        Op::Write(Write { key: "route".into(), value: "\"manual\"".into() }),
        Op::Convert(Convert { from: path("order"), into: "order".into(), how: Transform::Trim }),
        Op::Send(mail),
    ];
    let wait = Wait::plain(WaitOn::Time, 1_800_000, Port::Done, Port::Done);
    let to_hold = Port::Branch("hold".into());
    let case = Case { left: path("amount"), op: CmpOp::Gt, right: "100".into(), port: to_hold.clone() };
    let each = Each { over: path("items"), as_: "item".into(), ops: Vec::new() };
    let after = vec![Op::Each(each), Op::Branch(vec![case])];
    let body = acts([
        (ActKind::Do(before), vec![(Port::Done, ActIx(1))]),
        (ActKind::Wait(wait), vec![(Port::Done, ActIx(2))]),
        (ActKind::Do(after), Vec::new()),
    ]);
    let branch = Exit {
        label: "conditional_branch".into(),
        ..Exit::plain(Trigger::Port(to_hold), Target::Node(NodeIx(3)))
    };
    node("route", body, vec![auto(false, Guard::Always, "always", 2), branch], NoExit::Stay)
}

/// The refund of the corpus.
#[test]
fn the_refund_compiles_to_exactly_this() {
    let definition = clean(REFUND);
    assert_eq!(definition.name, "refund");
    let machine = definition.machine;
    let order = Guard::All(vec![Guard::Present(path("order"))]);
    let ask = acts([(ActKind::Ask(Ask { turns: true }), Vec::new())]);
    let collect = Node {
        text: Some("Ask for the order number and the amount.".into()),
        ..node("collect", ask, vec![auto(true, order, "all_required_answered", 1)], NoExit::Stay)
    };
    let template = "Refund of {{ gathered_data.amount }} is on its way.";
    let message = Message {
        channel: Channel::Chat,
        to: Vec::new(),
        subject: None,
        body: Some(Text { source: template.into(), dialect: Dialect::Jinja }),
        content: Content::Text,
    };
    let end = NoExit::End(Ending::plain(Outcome::Completed));
    let confirm =
        node("confirm", acts([(ActKind::Do(vec![Op::Send(message)]), Vec::new())]), Vec::new(), end);
    let wait = Wait::plain(WaitOn::Time, 172_800_000, named("received"), Port::Done);
    let received = Exit {
        label: "port received".into(),
        ..Exit::plain(Trigger::Port(named("received")), Target::Node(NodeIx(2)))
    };
    let unconnected = NoExit::Fail(EndReason::PortUnconnected);
    let hold = node("hold", acts([(ActKind::Wait(wait), Vec::new())]), vec![received], unconnected);
    assert_eq!(machine.nodes, [collect, route(), confirm, hold]);
    assert_eq!((machine.start, machine.meta.format.as_str()), (NodeIx(0), "conversation"));
    assert!(machine.opening.input_is_data && machine.opening.warnings.is_empty());
    assert_eq!(machine.inputs, Input::ALL);
    assert_eq!(machine.reserved_keys, ["approval", "event_key", "reply_token", "tasks", "wait"]);
    let asks: Vec<GateKind> = machine.gates.iter().map(|gate| gate.kind).collect();
    assert!(asks == [GateKind::ToolAsk] && machine.budgets.is_empty() && machine.params.is_empty());
    let words = &machine.words;
    assert_eq!([&words.waiting, &words.at_gate, &words.suspended], ["active"; 3]);
    let fields: Vec<_> =
        machine.fields.iter().map(|field| (field.key.as_str(), field.holds, field.reducer)).collect();
    assert_eq!(
        fields,
        [
            ("notes", DataType::List, Reducer::Append),
            ("items", DataType::List, Reducer::Overwrite),
            ("route", DataType::String, Reducer::Overwrite)
        ]
    );
}

#[test]
fn every_construct_that_runs_compiles_and_is_read_back() {
    let compiled = compile_text("everything.yaml", EVERYTHING);
    assert_eq!((compiled.format, compiled.findings.len()), (Some(Format::Conversation), 0));
    let machine = compiled.definition.expect("there is no finding").machine;
    assert_eq!(Machine::decode(&machine.encode()), Ok(machine));
}

/// See `docs/formats-conversation-operations.md#tools`, and what is denied.
#[test]
fn a_workflow_with_a_list_of_tools_is_closed_state_by_state() {
    let machine = clean(EVERYTHING).machine;
    assert_eq!(machine.policy.layers.len(), machine.nodes.len());
    for (at, layer) in (0..).zip(&machine.policy.layers) {
        assert_eq!((layer.at, layer.otherwise), (Some(NodeIx(at)), Otherwise::Deny));
        assert_eq!((layer.name.as_str(), layer.covers.as_str()), ("tools", "*"));
        let allowed: Vec<&str> = layer.allow.iter().map(|rule| rule.pattern.as_str()).collect();
        assert_eq!(allowed, if at == 0 { vec!["search", "mcp:*"] } else { vec!["search"] });
        for tool in ["record_data", "signal_completion", "retry_state", "switch_workflow"] {
            assert!(!layer.speaks(tool, NodeIx(at)), "{tool}");
        }
        assert!(layer.speaks("other", NodeIx(at)) && !layer.speaks("other", NodeIx(at + 1)));
    }
    let silent = workflow(&["{name: a, type: conversation}"], &[]);
    let open = &silent.policy.layers[0];
    assert_eq!((open.otherwise, open.allow.len()), (Otherwise::TenantDefault, 0), "the tenant's default");
    let listed =
        workflow(&["{name: a, type: conversation}", "{name: b, type: conversation, tools: []}"], &[]);
    let otherwise: Vec<Otherwise> = listed.policy.layers.iter().map(|layer| layer.otherwise).collect();
    assert_eq!(otherwise, [Otherwise::TenantDefault, Otherwise::Deny], "an empty list is a list");
}

#[test]
fn the_start_is_the_named_state_or_the_first() {
    let start = |initial: &str| {
        let yaml = format!(
            "name: p\n{initial}states: [{{name: A b, type: conversation}}, {{name: é, type: conversation}}]\ntransitions: []\n"
        );
        compile_text("p.yaml", &yaml).definition.map(|it| it.machine.start)
    };
    assert_eq!(start(""), Some(NodeIx(0)));
    assert_eq!(start("initial: null\n"), Some(NodeIx(0)));
    assert_eq!(start("initial: é\n"), Some(NodeIx(1)));
}

#[test]
fn warnings_are_what_every_start_records() {
    let yaml =
        "name: p\nstates: [{name: a, type: conversation, instructions: \"{gathered.x}\"}]\ntransitions: []\n";
    let compiled = compile_text("p.yaml", yaml);
    let texts: Vec<String> = compiled.findings.iter().map(|it| it.message.clone()).collect();
    assert_eq!(texts, ["the key `x` is read, but nothing in the workflow sets it"]);
    assert_eq!(compiled.definition.expect("only a warning").machine.opening.warnings, texts);
}

#[test]
fn json_and_yaml_are_the_same_workflow() {
    let yaml = "name: p\nstates:\n  - {name: a, type: action}\ntransitions: []\n";
    let json = r#"{"name": "p", "states": [{"name": "a", "type": "action"}], "transitions": []}"#;
    let machine = |file: &str, text: &str| compile_text(file, text).definition.map(|it| it.machine);
    assert_eq!(machine("p.yaml", yaml), machine("p.json", json));
    assert!(machine("p.json", json).is_some());
}
