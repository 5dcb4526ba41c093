//! The machine's stored form: one with every part in it, as hex. `BLESS=1` writes the file again.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails if it cannot continue, and it reads golden files"
)]

use switchward_expr::{CmpOp, DataType, Logic, Path, Reducer, Transform};
use switchward_machine::limits::FIXED_CHILDREN_MAX;
use switchward_machine::{
    Accept, Act, ActIx, ActKind, AddressPattern, ArgRule, Ask, Attempts, Boundary, Breach, Budget,
    BudgetUnit, Callee, CalleeIx, CalleeKind, Case, Channel, Content, Contract, Convert, Decide, Decision,
    Dialect, Each, EndReason, Ending, Exit, Field, FieldType, FixedChild, GateIx, GateKind, GateSpec, Gives,
    Guard, Initial, Input, Inquiry, Kids, Layer, Limit, Machine, Mapped, Message, Meta, Micros, Next,
    NextRule, NoExit, Node, NodeIx, Num, Op, Opening, Otherwise, Outcome, Param, ParamIx, Pattern, Period,
    Policy, Port, Reads, Recipient, Resolve, ResultUse, Rounds, Rule, Sort, Spawn, StatusWords, Target,
    Templates, Text, Trigger, Wait, WaitOn, Wanted, Work, WorkKind, Write, Writes, analyse,
};
use switchward_schema::Schema;

fn pattern(text: &str) -> Pattern {
    Pattern::new(text).unwrap()
}

fn rule(text: &str, limits: Vec<Limit>, args: Option<ArgRule>) -> Rule {
    Rule { pattern: pattern(text), limits, gate: Some(GateIx(1)), args }
}

fn nodes() -> Vec<Node> {
    let ask = Act { kind: ActKind::Ask(Ask { turns: false }), then: vec![(Port::Done, ActIx(1))] };
    let log = Act { kind: ActKind::Do(vec![Op::Log("seen".into())]), then: Vec::new() };
    let exit =
        |answer: &str, to, hold, ops| Exit { hold, ops, ..Exit::plain(Trigger::Answer(answer.into()), to) };
    let blocked = Ending { outcome: Outcome::Blocked, reason: Some(EndReason::PortUnconnected) };
    let first = Node {
        exits: vec![
            exit("yes", Target::Node(NodeIx(1)), Some(GateIx(0)), Vec::new()),
            exit("no", Target::End(blocked), None, vec![Op::Log("first: no".into())]),
        ],
        text: Some("Is it?".into()),
        ..Node::new("first", vec![ask, log.clone()])
    };
    let on_no_exit = NoExit::End(Ending::plain(Outcome::Completed));
    let last = Node { on_no_exit, ..Node::new("last", vec![log]) };
    vec![first, last, talk(), rules(), call(CalleeIx(0)), bound()]
}

/// A node that lists what it writes, with work of each kind that has a contract.
fn bound() -> Node {
    let work = |kind, next, into, schema| {
        let accept = Some(Accept::Contract(Contract { schema, next, into }));
        let literal = Some(r#"{"tool":"{{x}}"}"#.to_owned());
        Act { kind: ActKind::Work(Work { accept, literal, ..Work::plain(kind) }), then: Vec::new() }
    };
    let set = Op::Set(Initial { key: "score".into(), value: "\"{{x}}\"".into() });
    let derived = schema().derive(&["score".to_owned()], &["last".to_owned()]);
    Node {
        exits: vec![Exit::plain(Trigger::Agent("last".into()), Target::Node(NodeIx(1)))],
        on_no_exit: NoExit::Fail(EndReason::NoTransition),
        writes: Writes::Only(vec!["score".into()]),
        model: Some("claude-haiku-4-5".into()),
        ..Node::new(
            "bound",
            vec![
                work(WorkKind::Tool, NextRule::Free, ResultUse::Deduce, None),
                work(WorkKind::Interaction, NextRule::Lone, ResultUse::Update, Some(derived)),
                work(WorkKind::Script, NextRule::Needed, ResultUse::Update, None),
                Act { kind: ActKind::Do(vec![set]), then: Vec::new() },
            ],
        )
    }
}

fn schema() -> Schema {
    Schema::new(&serde_json::json!({ "type": "object", "properties": { "score": { "type": "number" } } }))
        .unwrap()
}

/// A node that calls another machine.
fn call(callee: CalleeIx) -> Node {
    let mapped = |to: &str, from: &str| vec![Mapped { to: to.into(), from: Path::new(from).unwrap() }];
    let (input, output) = (mapped("order_id", "order.id"), mapped("tracking", "code"));
    let spawn = Spawn { kids: Kids::Call(callee), input, result: Gives::Return(output) };
    Node {
        text: Some("Ship {{order.id}}".into()),
        dialect: Dialect::Strict,
        ..Node::new("call", vec![Act { kind: ActKind::Spawn(spawn), then: Vec::new() }])
    }
}

/// A node of a conversation: every kind of guard, and every switch of a node.
fn talk() -> Node {
    let path = |text: &str| Path::new(text).unwrap();
    let auto = |guard, label: &str| Exit {
        guard,
        label: label.into(),
        ..Exit::plain(Trigger::Auto { event: true }, Target::Node(NodeIx(3)))
    };
    let compare = Guard::Compare { left: path("order.total"), op: CmpOp::Gte, right: "100".into() };
    let any = Guard::Any(vec![
        compare,
        Guard::Present(path("order")),
        Guard::Confirmed(vec!["aye".into()]),
        Guard::Seen("paid".into()),
        Guard::Judge { rubric: "It is polite.".into(), model: "claude-haiku-4-5".into() },
        Guard::Logic(Logic::guard_json(r#"{">": [{"var": "order.total"}, 100]}"#).unwrap()),
    ]);
    let called = Guard::Called { tool: "lookup".into(), success: true };
    let port = Trigger::Port(Port::Named("error".into()));
    Node {
        exits: vec![
            auto(Guard::All(vec![any, called]), "composite"),
            Exit::plain(port, Target::Node(NodeIx(0))),
        ],
        on_no_exit: NoExit::Fail(EndReason::PortUnconnected),
        text: Some("Ask for {gathered.order}".into()),
        dialect: Dialect::Braces,
        turns: true,
        attempts: Attempts { max: 3, backoff_ms: 5_000 },
        asked: Attempts { max: 2, backoff_ms: 0 },
        boundary: Boundary::Port(Port::Named("error".into())),
        ..Node::new(
            "talk",
            vec![
                Act { kind: ActKind::Ask(Ask { turns: true }), then: Vec::new() },
                Act {
                    kind: ActKind::Work(Work { turn_ends: true, ..Work::plain(WorkKind::Agent) }),
                    then: Vec::new(),
                },
                Act { kind: ActKind::Work(extract()), then: Vec::new() },
                Act { kind: ActKind::Work(http()), then: Vec::new() },
                Act {
                    kind: ActKind::Wait(Wait {
                        on: WaitOn::Event,
                        for_ms: 60_000,
                        late: Port::Done,
                        done: Port::Named("received".into()),
                        sort: Some(Sort {
                            ports: vec![(Port::Named("keen".into()), vec!["yes".into()])],
                            hinted: true,
                        }),
                    }),
                    then: Vec::new(),
                },
                Act { kind: ActKind::Decide(Decide { gate: GateIx(2), each: false }), then: Vec::new() },
                Act { kind: ActKind::Decide(Decide { gate: GateIx(3), each: true }), then: Vec::new() },
                Act { kind: ActKind::Work(Work::plain(WorkKind::Delegate)), then: Vec::new() },
            ],
        )
    }
}

fn extract() -> Work {
    let wanted = Wanted {
        name: "amount".into(),
        holds: FieldType::Number,
        description: "Amount in USD".into(),
        required: true,
    };
    let port = |name: &str| Port::Named(name.into());
    Work {
        input: Some(r#"{"instructions":"Dates as YYYY-MM-DD."}"#.into()),
        reads: Some(Reads::Data(Path::new("mail.body").unwrap())),
        accept: Some(Accept::Fields {
            fields: vec![wanted],
            complete: port("complete"),
            incomplete: port("incomplete"),
        }),
        ..Work::plain(WorkKind::Extract)
    }
}

fn http() -> Work {
    let accept = Some(Accept::Answer { into: Some("answer".into()) });
    let input = r#"{"method":"GET","url":"https://api.example.com/{gathered_data.id}"}"#.to_owned().into();
    Work { input, accept, reads: Some(Reads::UserMessage), ..Work::plain(WorkKind::Http) }
}

/// A node of operations, one of each.
fn rules() -> Node {
    let path = |text: &str| Path::new(text).unwrap();
    let text = |source: &str, dialect| Text { source: source.into(), dialect };
    let message = Message {
        channel: Channel::Email,
        to: vec![
            Recipient::Address("{gathered_data.lead}".into()),
            Recipient::Contact,
            Recipient::Participants,
        ],
        subject: Some(text("Hello", Dialect::Plain)),
        body: Some(text("{{ gathered_data.x }}", Dialect::Jinja)),
        content: Content::Markdown,
    };
    let case =
        Case { left: path("amount"), op: CmpOp::In, right: "[1]".into(), port: Port::Branch("talk".into()) };
    let ops = vec![
        Op::Write(Write { key: "stage".into(), value: "\"x\"".into() }),
        Op::Convert(Convert { from: path("a.b"), into: "c".into(), how: Transform::Trim }),
        Op::Send(message),
        Op::Branch(vec![case]),
        Op::Each(Each { over: path("list"), as_: "item".into(), ops: vec![Op::Log("one".into())] }),
        Op::Next(Next { over: path("list"), as_: "item".into(), level: 1 }),
    ];
    let act = Act { kind: ActKind::Do(ops), then: vec![(Port::Item, ActIx(0))] };
    Node { boundary: Boundary::Ignore(Port::Done), ..Node::new("rules", vec![act]) }
}

fn gates() -> Vec<GateSpec> {
    let blocked = || Resolve::End(Ending::plain(Outcome::Blocked));
    let notify = vec![(Decision::Approve, Resolve::TakeHeld), (Decision::Refuse, blocked())];
    let ask = vec![(Decision::Approve, Resolve::Grant), (Decision::Refuse, Resolve::Deny)];
    let settle = |port: &str| Resolve::Settle(Port::Named(port.into()));
    let text = |source: &str| Text { source: source.into(), dialect: Dialect::Jinja };
    let message = Message {
        channel: Channel::Email,
        to: vec![Recipient::Contact],
        subject: Some(text("Refund")),
        body: Some(text("May we?")),
        content: Content::Text,
    };
    let inquiry = Inquiry {
        message,
        phrases: vec![(Decision::Approve, vec!["go ahead".into()])],
        hinted: true,
        rounds: Some(Rounds {
            every_ms: 1_000,
            to: vec![Recipient::Address("head@example.com".into())],
            max: 2,
            lapse: settle("timeout"),
        }),
    };
    let asked = Message {
        to: vec![Recipient::Listed(Path::new("people").unwrap())],
        subject: None,
        ..inquiry.message.clone()
    };
    let each = Inquiry { message: asked, phrases: Vec::new(), hinted: true, rounds: None };
    let answer = vec![(Decision::Answer, Resolve::Settle(Port::Done)), (Decision::Discuss, Resolve::PassOn)];
    let outcomes = vec![
        (Decision::Approve, settle("approved")),
        (Decision::Refuse, Resolve::Stay),
        (Decision::Discuss, settle("discussion")),
    ];
    vec![
        GateSpec::open_to_all(GateKind::Notify, notify),
        GateSpec::open_to_all(GateKind::ToolAsk, ask),
        GateSpec {
            kind: GateKind::Approval,
            outcomes,
            inquiry: Some(inquiry),
            record: Some("approval".into()),
        },
        GateSpec { inquiry: Some(each), ..GateSpec::open_to_all(GateKind::Task, answer) },
    ]
}

/// A machine whose first node begins two children at its second one.
fn branching(children: &[(&str, u32)]) -> Machine {
    let child = |(name, node): &(&str, u32)| FixedChild { name: (*name).into(), node: NodeIx(*node) };
    let kids = Kids::Fixed(children.iter().map(child).collect());
    let spawn = Spawn { kids, input: Vec::new(), result: Gives::Update };
    let split = Node::new("split", vec![Act { kind: ActKind::Spawn(spawn), then: Vec::new() }]);
    let ask = Act { kind: ActKind::Ask(Ask { turns: true }), then: Vec::new() };
    let on_no_exit = NoExit::End(Ending::plain(Outcome::Completed));
    let part = Node { on_no_exit, ..Node::new("part", vec![ask]) };
    Machine { nodes: vec![split, part], policy: Policy::default(), ..machine() }
}

#[test]
fn children_side_by_side_are_part_of_the_form() {
    let machine = branching(&[("a", 1), ("b", 1)]);
    assert_eq!(Machine::decode(&machine.encode()), Ok(machine.clone()));
    assert_eq!(analyse(&machine).unreachable, [], "a child begins at the second node");
    let names: Vec<String> = (0..=FIXED_CHILDREN_MAX).map(|at| format!("c-{at}")).collect();
    let many: Vec<(&str, u32)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let most = branching(&many[..FIXED_CHILDREN_MAX]);
    assert!(Machine::decode(&most.encode()).is_ok(), "as many as there may be");
    let bad: [&[(&str, u32)]; 4] = [&[], &[("a", 2)], &[("a", 1), ("a", 1)], &many];
    for children in bad {
        assert!(Machine::decode(&branching(children).encode()).is_err(), "{children:?}");
    }
}

fn policy() -> Policy {
    let limits =
        [Period::Hour, Period::Day, Period::Month].map(|period| Limit::Money { max: Micros(5), period });
    let rate = Limit::Rate { max: 50, window_ms: 3_600_000 };
    let mail = ArgRule::Mail { from: None, to: Some(vec![AddressPattern::new("*@example.org").unwrap()]) };
    let layer = |name: &str, otherwise| Layer {
        name: name.into(),
        covers: pattern("*"),
        except: vec![pattern("mcp:process:process_step")],
        deny: vec![rule("rm", Vec::new(), None)],
        ask: vec![rule("mcp:*", limits.to_vec(), None)],
        allow: vec![rule("bash", vec![rate], Some(mail.clone()))],
        otherwise,
        at: Some(NodeIx(1)),
    };
    let layers = [Otherwise::TenantDefault, Otherwise::Deny, Otherwise::Abstain];
    Policy { layers: layers.map(|otherwise| layer("policy", otherwise)).to_vec(), ask_gate: Some(GateIx(1)) }
}

fn machine() -> Machine {
    let budget = |unit, cap| Budget {
        unit,
        cap,
        breach: Breach::DenyCalls,
        covers: pattern("*"),
        except: vec![pattern("mcp:process:process_step")],
    };
    Machine {
        start: NodeIx(0),
        nodes: nodes(),
        gates: gates(),
        policy: policy(),
        budgets: vec![
            budget(BudgetUnit::UsdMicros, Num::Param(ParamIx(0))),
            budget(BudgetUnit::Mails, Num::Literal(3)),
        ],
        params: vec![Param { name: "cost_usd".into(), value: 5 }],
        opening: Opening {
            role: Some("agent".into()),
            text: Some("Begin.".into()),
            warnings: vec!["odd".into()],
            input_is_data: true,
            only_policy: false,
        },
        words: StatusWords { waiting: "active".into(), at_gate: "paused".into(), suspended: "paused".into() },
        fields: vec![Field { key: "notes".into(), holds: DataType::List, reducer: Reducer::UniqueAppend }],
        inputs: Input::ALL.to_vec(),
        reserved_keys: vec!["approval".into(), "tasks".into()],
        callees: vec![Callee { name: "shipping".into(), version: Some(3), kind: CalleeKind::Workflow }],
        data_schema: Some(schema()),
        initial: vec![Initial { key: "score".into(), value: "0".into() }],
        model: Some("claude-haiku-4-5".into()),
        templates: Templates::Strict,
        meta: Meta { name: "gate".into(), format: "checkpoint".into(), description: None },
    }
}

#[test]
fn a_machine_keeps_its_form() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/machine.v1.hex");
    let bytes = machine().encode();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, format!("{hex}\n")).unwrap();
    }
    let known = std::fs::read_to_string(path).unwrap();
    assert_eq!(
        hex,
        known.trim(),
        "the form of machines has changed, but sessions are pinned to digests of it"
    );
    assert_eq!(Machine::decode(&bytes), Ok(machine()));
}

/// A machine that an earlier build wrote. What it is pinned by stays as it is.
fn earlier(name: &str) -> Machine {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    let hex = std::fs::read_to_string(path).unwrap();
    let hex = hex.trim();
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
    let machine = Machine::decode(&bytes).unwrap();
    assert_eq!(machine.encode(), bytes, "the digest of a machine without new parts must not change");
    machine
}

#[test]
fn machines_of_earlier_builds_can_be_read() {
    let before_approvals = earlier("machine.v1.before-approvals.hex");
    assert!(before_approvals.gates.iter().all(|gate| gate.inquiry.is_none()));
    let before_calls = earlier("machine.v1.before-calls.hex");
    assert!(before_calls.gates.iter().any(|gate| gate.inquiry.is_some()));
    let before_tasks = earlier("machine.v1.before-tasks.hex");
    for machine in [&before_approvals, &before_calls, &before_tasks] {
        assert_eq!(machine.callees, []);
    }
    let before_contracts = earlier("machine.v1.before-contracts.hex");
    assert_eq!((before_contracts.callees.len(), before_contracts.initial.len()), (1, 0));
    assert!(before_contracts.data_schema.is_none() && before_contracts.templates == Templates::Lenient);
    assert!(before_contracts.nodes.iter().all(|node| node.writes == Writes::Any && node.model.is_none()));
    let acts = before_tasks.nodes.iter().flat_map(|node| &node.acts);
    let decides = |act: &Act| match &act.kind {
        ActKind::Decide(decide) => Some(*decide),
        ActKind::Ask(_) | ActKind::Do(_) | ActKind::Work(_) | ActKind::Wait(_) | ActKind::Spawn(_) => None,
    };
    assert_eq!(acts.filter_map(decides).collect::<Vec<_>>(), [Decide { gate: GateIx(2), each: false }]);
}

#[test]
fn bytes_that_are_no_machine_are_refused() {
    let bytes = machine().encode();
    assert!(Machine::decode(&[]).is_err());
    assert!(Machine::decode(&[2, 0]).is_err(), "a machine of another form");
    assert!(Machine::decode(&bytes[..bytes.len() - 1]).is_err(), "cut short");
    let dangling = Machine { start: NodeIx(9), ..machine() };
    assert!(Machine::decode(&dangling.encode()).is_err(), "a start index out of range");
    let recording = Machine { reserved_keys: Vec::new(), ..machine() };
    assert!(Machine::decode(&recording.encode()).is_err(), "a gate records below a key that is not reserved");
    let calling = Machine { nodes: vec![call(CalleeIx(1))], policy: Policy::default(), ..machine() };
    assert!(Machine::decode(&calling.encode()).is_err(), "a call index out of range");
    let calling = Machine { nodes: vec![call(CalleeIx(0))], policy: Policy::default(), ..machine() };
    assert!(Machine::decode(&calling.encode()).is_ok(), "a call index in range");
}
