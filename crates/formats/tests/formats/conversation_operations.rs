//! Compiled operations: operations, acts, and how the acts lead to each other. See
//! `docs/formats-conversation-operations.md#operations`.

use switchward_expr::{CmpOp, Path, Transform};
use switchward_machine::{
    Act, ActIx, ActKind, Case, Channel, Content, Convert, Dialect, Each, Message, Next, Node, NodeIx, Op,
    Port, Recipient, Target, Text, Trigger, Wait, WaitOn, Write,
};

use super::support::{EVERYTHING, clean, workflow};

fn path(text: &str) -> Path {
    Path::new(text).expect("it is a path")
}

fn push() -> Node {
    let nodes = clean(EVERYTHING).machine.nodes;
    nodes.into_iter().find(|node| node.name == "push").expect("it has the state")
}

fn text(source: &str) -> Text {
    Text { source: source.into(), dialect: Dialect::Braces }
}

/// The body of a logic state with these operations.
#[track_caller]
fn body(operations: &str) -> Vec<Act> {
    let state = format!("{{name: a, type: logic, operations: [{operations}]}}");
    workflow(&[&state], &[]).nodes[0].acts.clone()
}

fn wiring(acts: &[Act]) -> Vec<Vec<(Port, u16)>> {
    let one = |act: &Act| act.then.iter().map(|(port, to)| (port.clone(), to.0)).collect();
    acts.iter().map(one).collect()
}

fn write(key: &str) -> String {
    format!("{{type: set_data, config: {{key: {key}, value: 1}}}}")
}

const WAIT: &str = "{type: wait, config: {hours: 1}}";

fn each(operations: &str) -> String {
    each_as("item", operations)
}

fn each_as(item: &str, operations: &str) -> String {
    format!("{{type: loop, config: {{over: list, as: {item}, operations: [{operations}]}}}}")
}

#[test]
fn what_runs_at_once_stays_together() {
    let acts = push().acts;
    let ActKind::Do(ops) = &acts[0].kind else { panic!("{acts:?}") };
    let message = Message {
        channel: Channel::Webhook,
        to: vec![Recipient::Address("https://example.com/x".into())],
        subject: None,
        body: Some(text("{gathered_data.index}")),
        content: Content::Text,
    };
    let log = Op::Write(Write { key: "log".into(), value: "\"{gathered_data.name}\"".into() });
    let each = Each { over: path("names"), as_: "name".into(), ops: vec![log, Op::Send(message)] };
    let split = Transform::Split { separator: ";".into() };
    assert_eq!(
        *ops,
        [
            Op::Convert(Convert { from: path("text"), into: "names".into(), how: split }),
            Op::Convert(Convert {
                from: path("amount"),
                into: "amount".into(),
                how: Transform::Round { digits: 2 }
            }),
            Op::Each(each),
        ]
    );
}

/// A head leads to the first act of its body and, when the list is over, past it; the last act leads back.
#[test]
fn waits_and_loops_with_waits_are_acts() {
    let acts = push().acts;
    let to = |port: Port, act: u16| vec![(port, act)];
    assert_eq!(
        wiring(&acts),
        [
            to(Port::Done, 1),
            to(Port::Done, 2),
            vec![(Port::Item, 3), (Port::Done, 7)],
            to(Port::Done, 4),
            to(Port::Done, 5),
            vec![(Port::Item, 6), (Port::Done, 2)],
            to(Port::Done, 5),
            vec![],
        ]
    );
    let wait =
        |hours: u64| ActKind::Wait(Wait::plain(WaitOn::Time, hours * 1_800_000, Port::Done, Port::Done));
    let head = |over: &str, name: &str, level| {
        ActKind::Do(vec![Op::Next(Next { over: path(over), as_: name.into(), level })])
    };
    assert_eq!((&acts[1].kind, &acts[4].kind, &acts[6].kind), (&wait(1), &wait(2), &wait(4)));
    assert_eq!(acts[2].kind, head("names", "name", 0));
    assert_eq!(acts[5].kind, head("extra.list", "item", 1));
    let ActKind::Do(send) = &acts[3].kind else { panic!("{acts:?}") };
    let [Op::Send(mail)] = send.as_slice() else { panic!("{send:?}") };
    assert_eq!(mail.to, [Recipient::Address("{gathered_data.name}".into()), Recipient::Participants]);
    assert_eq!((mail.channel, mail.subject.clone()), (Channel::Email, Some(text("Hi"))));
}

#[test]
fn small_bodies_are_wired_right() {
    let kinds = |acts: &[Act]| -> String {
        let code = |act: &Act| match &act.kind {
            ActKind::Do(ops) if ops.iter().any(|op| matches!(op, Op::Next(_))) => 'h',
            ActKind::Do(_) => 'd',
            ActKind::Wait(_) => 'w',
            ActKind::Ask(_) | ActKind::Work(_) | ActKind::Decide(_) | ActKind::Spawn(_) => '?',
        };
        acts.iter().map(code).collect()
    };
    let done = |to: u16| vec![(Port::Done, to)];
    for (operations, shape, wires) in [
        (String::new(), "d", vec![vec![]]),
        (WAIT.into(), "w", vec![vec![]]),
        (format!("{WAIT}, {}", write("k")), "wd", vec![done(1), vec![]]),
        (format!("{WAIT}, {WAIT}"), "ww", vec![done(1), vec![]]),
        (each(&write("k")), "d", vec![vec![]]),
        (each(WAIT), "hw", vec![vec![(Port::Item, 1)], done(0)]),
        (
            format!("{}, {}, {}", write("k"), each(WAIT), write("k")),
            "dhwd",
            vec![done(1), vec![(Port::Item, 2), (Port::Done, 3)], done(1), vec![]],
        ),
        (
            format!("{}, {}", each(WAIT), each(WAIT)),
            "hwhw",
            vec![vec![(Port::Item, 1), (Port::Done, 2)], done(0), vec![(Port::Item, 3)], done(2)],
        ),
        (
            each_as("outer", &each(&format!("{WAIT}, {}", each_as("inner", &write("k"))))),
            "hhwd",
            vec![vec![(Port::Item, 1)], vec![(Port::Item, 2), (Port::Done, 0)], done(3), done(1)],
        ),
    ] {
        let acts = body(&operations);
        assert_eq!((kinds(&acts).as_str(), wiring(&acts)), (shape, wires), "{operations}");
    }
}

/// The target of a branch overrides the transitions; each target has one exit.
#[test]
fn a_branch_leaves_by_its_targets() {
    let node = push();
    let Some(ActKind::Do(ops)) = node.acts.last().map(|act| &act.kind) else { panic!("{node:?}") };
    let case = |left: &str, op, right: &str, to: &str| Case {
        left: path(left),
        op,
        right: right.into(),
        port: Port::Branch(to.into()),
    };
    let cases = vec![
        case("amount", CmpOp::Gt, "\"{gathered_data.total}\"", "tell"),
        case("extra.to", CmpOp::Matches, "\"@\"", "Talk to them"),
        case("amount", CmpOp::Lte, "0", "tell"),
    ];
    assert_eq!(*ops, [Op::Branch(cases)]);
    let ways: Vec<(&Trigger, &Target)> = node.exits.iter().map(|exit| (&exit.on, &exit.to)).collect();
    let to = |node: u32| Target::Node(NodeIx(node));
    let port = |name: &str| Trigger::Port(Port::Branch(name.into()));
    assert_eq!(
        ways,
        [
            (&Trigger::Auto { event: true }, &to(4)),
            (&Trigger::Port(Port::Named("error".into())), &to(7)),
            (&port("tell"), &to(4)),
            (&port("Talk to them"), &to(0)),
        ]
    );
    assert_eq!(node.acts.last().map(|act| act.then.len()), Some(0), "a matched branch has no next act");
    assert_eq!(node.acts[0].then, [(Port::Done, ActIx(1))]);
}

#[test]
fn transforms_have_their_defaults() {
    let how = |words: &str| {
        let acts = body(&format!("{{type: transform, config: {{key: k, transform: {words}}}}}"));
        let ActKind::Do(ops) = &acts[0].kind else { panic!("{acts:?}") };
        let [Op::Convert(convert)] = ops.as_slice() else { panic!("{ops:?}") };
        convert.how.clone()
    };
    let comma = || ",".to_owned();
    assert_eq!(how("split"), Transform::Split { separator: comma() });
    assert_eq!(how("join"), Transform::Join { separator: comma() });
    assert_eq!(how("join, separator: \" \""), Transform::Join { separator: " ".into() });
    assert_eq!(how("round"), Transform::Round { digits: 0 });
    assert_eq!(how("uppercase"), Transform::Uppercase);
    assert_eq!(how("lowercase"), Transform::Lowercase);
    assert_eq!(how("to_number"), Transform::ToNumber);
    assert_eq!(how("to_string"), Transform::ToString);
}
