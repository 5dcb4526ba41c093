//! The machine's stored form: one with every part in it, as hex. `BLESS=1` writes the file anew.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on has failed, and golden files are files"
)]

use switchward_machine::{
    Act, ActIx, ActKind, AddressPattern, ArgRule, Ask, Breach, Budget, BudgetUnit, Decision, Ending, Exit,
    GateIx, GateKind, GateSpec, Layer, Limit, Machine, Meta, Micros, NoExit, Node, NodeIx, Num, Op, Opening,
    Otherwise, Outcome, Param, ParamIx, Pattern, Period, Policy, Port, Resolve, Rule, StatusWords, Target,
    Trigger,
};

fn pattern(text: &str) -> Pattern {
    Pattern::new(text).unwrap()
}

fn rule(text: &str, limits: Vec<Limit>, args: Option<ArgRule>) -> Rule {
    Rule { pattern: pattern(text), limits, gate: Some(GateIx(1)), args }
}

fn nodes() -> Vec<Node> {
    let ask = Act { kind: ActKind::Ask(Ask { turns: false }), then: vec![(Port::Done, ActIx(1))] };
    let log = Act { kind: ActKind::Do(vec![Op::Log("seen".into())]), then: Vec::new() };
    let exit = |answer: &str, to, hold, ops| Exit { on: Trigger::Answer(answer.into()), to, hold, ops };
    let blocked = Ending { outcome: Outcome::Blocked, reason: Some("no".into()) };
    let first = Node {
        name: "first".into(),
        acts: vec![ask, log.clone()],
        exits: vec![
            exit("yes", Target::Node(NodeIx(1)), Some(GateIx(0)), Vec::new()),
            exit("no", Target::End(blocked), None, vec![Op::Log("first: no".into())]),
        ],
        on_no_exit: NoExit::Stay,
        text: Some("Is it?".into()),
    };
    let last = Node {
        name: "last".into(),
        acts: vec![log],
        exits: Vec::new(),
        on_no_exit: NoExit::End(Ending::plain(Outcome::Completed)),
        text: None,
    };
    vec![first, last]
}

fn gates() -> Vec<GateSpec> {
    let blocked = || Resolve::End(Ending::plain(Outcome::Blocked));
    let notify = vec![(Decision::Approve, Resolve::TakeHeld), (Decision::Refuse, blocked())];
    let ask = vec![(Decision::Approve, Resolve::Grant), (Decision::Refuse, Resolve::Deny)];
    vec![
        GateSpec { kind: GateKind::Notify, outcomes: notify },
        GateSpec { kind: GateKind::ToolAsk, outcomes: ask },
    ]
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
        },
        words: StatusWords { waiting: "active".into(), at_gate: "paused".into(), suspended: "paused".into() },
        meta: Meta { name: "gate".into(), format: "checkpoint".into() },
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
    assert_eq!(hex, known.trim(), "the form of machines has changed: sessions are pinned to digests of it");
    assert_eq!(Machine::decode(&bytes), Ok(machine()));
}

#[test]
fn bytes_that_are_no_machine_are_refused() {
    let bytes = machine().encode();
    assert!(Machine::decode(&[]).is_err());
    assert!(Machine::decode(&[2, 0]).is_err(), "another form");
    assert!(Machine::decode(&bytes[..bytes.len() - 1]).is_err(), "cut short");
    let dangling = Machine { start: NodeIx(9), ..machine() };
    assert!(Machine::decode(&dangling.encode()).is_err(), "a start that points nowhere");
}
