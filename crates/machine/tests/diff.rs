//! What differs between two machines: nothing between equal ones, something after any change, and what a change weakens.

#![expect(clippy::unwrap_used, reason = "a test fails if it cannot continue")]

use switchward_machine::diff::{Change, Difference, Part, diff};
use switchward_machine::{
    Act, ActKind, AddressPattern, ArgRule, Ask, Boundary, Breach, Budget, BudgetUnit, Channel, Content,
    Decide, Decision, Ending, Exit, Field, GateIx, GateKind, GateSpec, Guard, Input, Inquiry, Layer, Limit,
    Machine, Message, Meta, NoExit, Node, NodeIx, Num, Op, Opening, Otherwise, Outcome, Param, ParamIx,
    Pattern, Policy, Port, Recipient, Resolve, Rule, StatusWords, Target, Trigger, Write,
};

/// A machine with every part in it.
fn every_part() -> Vec<u8> {
    let hex = include_str!("golden/machine.v1.hex").trim();
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}

#[test]
fn every_change_of_a_machine_is_noticed() {
    let bytes = every_part();
    let machine = Machine::decode(&bytes).unwrap();
    assert_eq!(diff(&machine, &machine), []);
    let mut changed = 0;
    for at in 1..bytes.len() {
        for flipped in [1, 2, 0x20] {
            let mut other = bytes.clone();
            other[at] ^= flipped;
            let Ok(other) = Machine::decode(&other) else { continue };
            if other == machine {
                continue;
            }
            changed += 1;
            assert_ne!(diff(&machine, &other), [], "byte {at}");
            assert_ne!(diff(&other, &machine), [], "byte {at}, backwards");
            assert_eq!(diff(&other, &other), [], "byte {at}");
        }
    }
    assert!(changed > bytes.len() / 4, "only {changed} of {} bytes were changed", bytes.len());
}

fn pattern(text: &str) -> Pattern {
    Pattern::new(text).unwrap()
}

fn rule(text: &str) -> Rule {
    Rule { pattern: pattern(text), limits: Vec::new(), gate: None, args: None }
}

fn answer(name: &str, to: u32) -> Exit {
    Exit::plain(Trigger::Answer(name.into()), Target::Node(NodeIx(to)))
}

fn gate() -> GateSpec {
    let message = Message {
        channel: Channel::Email,
        to: vec![Recipient::Address("lead@example.com".into())],
        subject: None,
        body: None,
        content: Content::Text,
    };
    let inquiry = Inquiry { message, phrases: Vec::new(), hinted: true, rounds: None };
    let outcomes = vec![(Decision::Approve, Resolve::TakeHeld), (Decision::Refuse, Resolve::Stay)];
    GateSpec { inquiry: Some(inquiry), ..GateSpec::open_to_all(GateKind::Approval, outcomes) }
}

/// A gate at the way from `check` to `ship`, and a policy with a rule of each list.
fn machine() -> Machine {
    let ask = |turns| Act { kind: ActKind::Ask(Ask { turns }), then: Vec::new() };
    let held = Exit { hold: Some(GateIx(0)), ..answer("yes", 1) };
    let guarded = Exit { guard: Guard::Seen("paid".into()), ..answer("paid", 1) };
    let check = Node {
        exits: vec![held, guarded, answer("no", 2)],
        on_no_exit: NoExit::Stay,
        ..Node::new("check", vec![ask(false)])
    };
    let end = |name: &str| Node {
        on_no_exit: NoExit::End(Ending::plain(Outcome::Completed)),
        ..Node::new(name, vec![Act { kind: ActKind::Do(Vec::new()), then: Vec::new() }])
    };
    let mail = ArgRule::Mail { from: None, to: Some(vec![AddressPattern::new("*@example.org").unwrap()]) };
    let layer = Layer {
        name: "policy".into(),
        covers: pattern("*"),
        except: Vec::new(),
        deny: vec![rule("rm")],
        ask: vec![Rule { gate: Some(GateIx(0)), ..rule("deploy") }],
        allow: vec![Rule {
            limits: vec![Limit::Rate { max: 5, window_ms: 60_000 }],
            args: Some(mail),
            ..rule("resend-email")
        }],
        otherwise: Otherwise::Deny,
        at: None,
    };
    let budget = Budget {
        unit: BudgetUnit::UsdMicros,
        cap: Num::Param(ParamIx(0)),
        breach: Breach::DenyCalls,
        covers: pattern("*"),
        except: Vec::new(),
    };
    Machine {
        start: NodeIx(0),
        nodes: vec![check, end("ship"), end("stop")],
        gates: vec![gate()],
        policy: Policy { layers: vec![layer], ask_gate: None },
        budgets: vec![budget],
        params: vec![Param { name: "cost_usd".into(), value: 5 }],
        opening: Opening::default(),
        words: StatusWords::default(),
        meta: Meta { name: "gate".into(), ..Meta::default() },
        fields: Vec::new(),
        inputs: vec![Input::Message],
        reserved_keys: Vec::new(),
        callees: Vec::new(),
        data_schema: None,
        initial: Vec::new(),
        model: None,
        templates: switchward_machine::Templates::Lenient,
    }
}

/// The differences after a change: part, change, and whether a control is weaker.
fn after(change: impl FnOnce(&mut Machine)) -> Vec<(Part, Change, bool)> {
    let (before, mut after) = (machine(), machine());
    change(&mut after);
    let of = |one: &Difference| (one.part, one.change, one.weaker);
    diff(&before, &after).iter().map(of).collect()
}

fn layer(machine: &mut Machine) -> &mut Layer {
    &mut machine.policy.layers[0]
}

fn inquiry(machine: &mut Machine) -> &mut Inquiry {
    machine.gates[0].inquiry.as_mut().unwrap()
}

use Change::{Added, Changed, Removed};

#[test]
fn what_weakens_people_is_marked() {
    let removed = after(|machine| machine.nodes[0].exits[0].hold = None);
    assert_eq!(removed, [(Part::People, Removed, true)]);
    let added = after(|machine| machine.nodes[0].exits[2].hold = Some(GateIx(0)));
    assert_eq!(added, [(Part::People, Added, false)]);
    let others = after(|machine| inquiry(machine).message.to.push(Recipient::Contact));
    assert!(others.iter().all(|one| *one == (Part::People, Changed, true)), "{others:?}");
    assert_eq!(others.len(), 2, "the gate of the route, and the gate of the rule");
    let anybody = after(|machine| machine.gates[0].inquiry = None);
    assert_eq!(anybody[0], (Part::People, Removed, true));
    let lenient = after(|machine| machine.gates[0].outcomes[1].1 = Resolve::TakeHeld);
    assert_eq!(lenient[0], (Part::People, Changed, true));
    let phrase = after(|machine| inquiry(machine).phrases = vec![(Decision::Approve, vec!["ok".into()])]);
    assert_eq!(phrase[0], (Part::People, Changed, true));
    let worded = after(|machine| inquiry(machine).message.content = Content::Html);
    assert_eq!(worded[0], (Part::People, Changed, false));
}

#[test]
fn a_task_of_all_that_needs_only_one_is_weaker() {
    let decide = |each| {
        let act = Act { kind: ActKind::Decide(Decide { gate: GateIx(0), each }), then: Vec::new() };
        Machine { nodes: vec![Node::new("ask", vec![act])], policy: Policy::default(), ..machine() }
    };
    let weaker = |one: &Machine, other: &Machine| {
        diff(one, other).iter().map(|one| (one.part, one.weaker)).collect::<Vec<_>>()
    };
    assert_eq!(weaker(&decide(true), &decide(false)), [(Part::People, true)]);
    assert_eq!(weaker(&decide(false), &decide(true)), [(Part::People, false)]);
}

#[test]
fn a_state_that_is_gone_takes_its_gate_along() {
    let with_gate = || {
        let act = Act { kind: ActKind::Decide(Decide { gate: GateIx(0), each: false }), then: Vec::new() };
        let mut with = machine();
        with.nodes.push(Node::new("sign", vec![act]));
        with
    };
    let found = diff(&with_gate(), &machine());
    let of = |one: &Difference| (one.part, one.change, one.weaker, one.state.clone());
    let sign = || Some("sign".to_owned());
    let expected = [(Part::State, Removed, true, sign()), (Part::People, Removed, true, sign())];
    assert_eq!(found.iter().map(of).collect::<Vec<_>>(), expected);
    let back = diff(&machine(), &with_gate());
    assert!(back.iter().all(|one| one.change == Added && !one.weaker), "{back:?}");
}

#[test]
fn what_weakens_a_route_is_marked() {
    let open = after(|machine| machine.nodes[0].exits[1].guard = Guard::Always);
    assert_eq!(open, [(Part::Route, Changed, true)]);
    let other = after(|machine| machine.nodes[0].exits[1].guard = Guard::Seen("sent".into()));
    assert_eq!(other, [(Part::Route, Changed, true)]);
    let stricter = after(|machine| {
        let both = vec![Guard::Seen("paid".into()), Guard::Seen("sent".into())];
        machine.nodes[0].exits[1].guard = Guard::All(both);
    });
    assert_eq!(stricter, [(Part::Route, Changed, false)]);
    let guarded = after(|machine| machine.nodes[0].exits[2].guard = Guard::Seen("late".into()));
    assert_eq!(guarded, [(Part::Route, Changed, false)]);
    let past = after(|machine| machine.nodes[0].exits.push(answer("skip", 1)));
    assert_eq!(past, [(Part::Route, Added, true)], "a route past the gate of its state");
    let gone = after(|machine| machine.nodes[0].exits.truncate(2));
    assert_eq!(gone, [(Part::Route, Removed, false)]);
    let elsewhere = after(|machine| machine.nodes[0].exits[2].to = Target::Node(NodeIx(1)));
    assert_eq!(elsewhere, [(Part::Route, Changed, false)]);
    let order = after(|machine| machine.nodes[0].exits.swap(0, 2));
    assert_eq!(order, [(Part::Route, Changed, true)]);
}

/// A change of a machine: its name, the change, what the difference is, and whether a control is weaker.
type Case = (&'static str, fn(&mut Machine), Change, bool);

#[test]
fn what_weakens_a_policy_is_marked() {
    let cases: [Case; 14] = [
        ("a deny rule less", |machine| layer(machine).deny.clear(), Removed, true),
        ("a deny rule more", |machine| layer(machine).deny.push(rule("dd")), Added, false),
        ("an ask rule less", |machine| layer(machine).ask.clear(), Removed, true),
        ("an allow rule more", |machine| layer(machine).allow.push(rule("bash")), Added, true),
        ("an allow rule less", |machine| layer(machine).allow.clear(), Removed, false),
        ("any arguments", |machine| layer(machine).allow[0].args = None, Changed, true),
        ("no limit", |machine| layer(machine).allow[0].limits.clear(), Changed, true),
        ("a higher limit", |machine| layer(machine).allow[0].limits = limit(6), Changed, true),
        ("a lower limit", |machine| layer(machine).allow[0].limits = limit(4), Changed, false),
        ("another default", |machine| layer(machine).otherwise = Otherwise::Abstain, Changed, true),
        ("an exception", |machine| layer(machine).except.push(pattern("bash")), Changed, true),
        ("no layer", |machine| machine.policy.layers.clear(), Removed, true),
        ("a higher cap", |machine| machine.params[0].value = 6, Changed, true),
        ("a lower cap", |machine| machine.params[0].value = 4, Changed, false),
    ];
    for (name, change, how, weaker) in cases {
        assert_eq!(after(change), [(Part::Policy, how, weaker)], "{name}");
    }
    let budget = after(|machine| machine.budgets.clear());
    assert!(budget.contains(&(Part::Policy, Removed, true)), "{budget:?}");
    let denied = after(|machine| {
        layer(machine).ask.clear();
        layer(machine).deny.push(rule("deploy"));
    });
    assert!(
        denied.iter().all(|(_, _, weaker)| !weaker),
        "a call that is denied is not asked about: {denied:?}"
    );
}

fn limit(max: u64) -> Vec<Limit> {
    vec![Limit::Rate { max, window_ms: 60_000 }]
}

#[test]
fn what_is_written_is_compared() {
    let write = |value: &str| Op::Write(Write { key: "stage".into(), value: value.into() });
    let ops = after(|machine| machine.nodes[0].exits[0].ops = vec![write("1")]);
    assert_eq!(ops, [(Part::Writes, Changed, false)]);
    let body = after(|machine| machine.nodes[1].acts[0].kind = ActKind::Do(vec![write("1")]));
    assert_eq!(body, [(Part::Writes, Changed, false)]);
    let field = Field {
        key: "notes".into(),
        holds: switchward_expr::DataType::List,
        reducer: switchward_expr::Reducer::UniqueAppend,
    };
    assert_eq!(after(|machine| machine.fields.push(field)), [(Part::Writes, Added, false)]);
}

#[test]
fn the_rest_is_compared() {
    let input = after(|machine| machine.inputs.push(Input::Event));
    assert_eq!(input, [(Part::Other, Added, true)]);
    let text = after(|machine| machine.nodes[0].text = Some("Ready?".into()));
    assert_eq!(text, [(Part::State, Changed, false)]);
    let ignored = after(|machine| machine.nodes[0].boundary = Boundary::Ignore(Port::Done));
    assert_eq!(ignored, [(Part::State, Changed, true)]);
    let start = after(|machine| machine.start = NodeIx(1));
    assert_eq!(start, [(Part::State, Changed, true)]);
}

#[test]
fn texts_are_short_and_in_the_words_of_the_definition() {
    let (before, mut after) = (machine(), machine());
    after.nodes[0].exits[1].guard = Guard::Always;
    after.nodes[0].text = Some("x".repeat(5_000));
    let found = diff(&before, &after);
    assert_eq!(found[0].after.as_ref().map(String::len), Some(512));
    let guard = &found[1];
    assert_eq!(guard.state.as_deref(), Some("check"));
    assert_eq!(guard.subject, "guard of the route answer paid");
    assert_eq!(guard.after.as_deref(), Some("none"));
}
