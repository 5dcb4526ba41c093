//! Compiled states, by their type, their transitions and their error handling.

use switchward_expr::Path;
use switchward_machine::{
    Accept, ActKind, Ask, Attempts, Boundary, Callee, CalleeIx, CalleeKind, Decision, EndReason, Ending,
    Exit, GateKind, Gives, Guard, Kids, Mapped, NoExit, Node, NodeIx, Outcome, Port, Recipient, Resolve,
    Spawn, Target, Trigger, WaitOn, Work, WorkKind,
};

use super::support::workflow;

const DONE: NoExit = NoExit::End(Ending { outcome: Outcome::Completed, reason: None });

/// The first state of a workflow in which these transitions leave it; `b` is there to go to.
#[track_caller]
fn first(state: &str, transitions: &[&str]) -> Node {
    let machine = workflow(&[state, "{name: b, type: conversation}"], transitions);
    machine.nodes.into_iter().next().expect("it has a state")
}

fn named(port: &str) -> Port {
    Port::Named(port.into())
}

fn ends(on: Trigger, label: &str) -> Exit {
    Exit { label: label.into(), ..Exit::plain(on, Target::End(Ending::plain(Outcome::Completed))) }
}

const TO_B: &str = "{from: a, to: b, guards: [{type: always}]}";

/// A conversation and an action complete after one turn.
#[test]
fn conversations_and_actions_take_turns() {
    for (kind, act) in [
        ("conversation", ActKind::Ask(Ask { turns: true })),
        (
            "action",
            ActKind::Work(Work {
                turn_ends: true,
                accept: Some(Accept::Data),
                ..Work::plain(WorkKind::Agent)
            }),
        ),
    ] {
        let state = format!("{{name: a, type: {kind}}}");
        let node = first(&state, &[TO_B]);
        assert_eq!(node.acts.len(), 1);
        assert_eq!((&node.acts[0].kind, node.acts[0].then.len()), (&act, 0));
        assert_eq!(node.on_no_exit, NoExit::Stay);
        assert_eq!(node.exits.len(), 1);
        assert_eq!(node.exits[0].on, Trigger::Auto { event: false });
        let last = first(&state, &[]);
        assert_eq!(last.exits, [ends(Trigger::Auto { event: false }, "terminal")]);
        assert_eq!((&last.acts[0].kind, last.on_no_exit), (&act, NoExit::Stay));
    }
}

#[test]
fn logic_stays_and_its_end_completes() {
    for state in [
        "{name: a, type: logic, operations: []}",
        "{name: a, type: action, execution_mode: deterministic, operations: []}",
        "{name: a, type: conversation, execution_mode: deterministic, operations: []}",
    ] {
        let node = first(state, &[TO_B]);
        assert_eq!((node.acts.len(), &node.acts[0].kind), (1, &ActKind::Do(Vec::new())), "{state}");
        assert_eq!((node.exits.len(), node.on_no_exit), (1, NoExit::Stay));
        let last = first(state, &[]);
        assert_eq!((last.exits.len(), last.on_no_exit), (0, DONE));
    }
}

/// After the delivery, the port `done`.
#[test]
fn an_output_leaves_by_done() {
    let state = "{name: a, type: output, template: t, target: conversation, on_error: port}";
    let node = first(state, &["{from: a, to: b, port: error}", "{from: a, to: b, port: done}"]);
    let to = Target::Node(NodeIx(1));
    let exit = |on, label: &str| Exit { label: label.into(), ..Exit::plain(on, to.clone()) };
    assert_eq!(
        node.exits,
        [
            exit(Trigger::Port(named("error")), "port error"),
            exit(Trigger::Auto { event: false }, "port done")
        ]
    );
    assert_eq!(node.exits[1].guard, Guard::Always);
    assert_eq!(node.on_no_exit, NoExit::Fail(EndReason::PortUnconnected));
    let lone = first(state, &["{from: a, to: b, port: error}"]);
    assert_eq!(lone.on_no_exit, NoExit::Fail(EndReason::PortUnconnected));
    let last = first(state, &[]);
    assert_eq!((last.exits.len(), last.on_no_exit), (0, DONE));
}

/// A timer ends with `received` if it has a transition, else with `timeout`.
#[test]
fn a_timer_ends_with_the_port_that_is_connected() {
    let state = "{name: a, type: wait, wait_for: timer, timeout_hours: 1.5}";
    let late = |node: &Node| {
        let ActKind::Wait(wait) = &node.acts[0].kind else { panic!("{node:?}") };
        assert_eq!((wait.on, wait.for_ms), (WaitOn::Time, 5_400_000));
        wait.late.clone()
    };
    let received = "{from: a, to: b, port: received}";
    let timeout = "{from: a, to: b, port: timeout}";
    for (transitions, port) in
        [(vec![received], "received"), (vec![timeout], "timeout"), (vec![timeout, received], "received")]
    {
        let node = first(state, &transitions);
        assert_eq!(late(&node), named(port), "{transitions:?}");
        assert!(node.exits.iter().any(|exit| exit.on == Trigger::Port(named(port))));
        assert_eq!(
            (node.exits.len(), &node.on_no_exit),
            (transitions.len(), &NoExit::Fail(EndReason::PortUnconnected))
        );
    }
    let last = first(state, &[]);
    let end = |port: &str| ends(Trigger::Port(named(port)), &format!("port {port}"));
    assert_eq!((late(&last), last.on_no_exit), (named("timeout"), DONE));
    assert_eq!(last.exits, [end("received"), end("timeout")]);
}

/// `docs/formats-conversation-operations.md#errors-and-retries`: two counters, and the target of an error.
#[test]
fn errors_have_a_boundary_and_attempts() {
    let once = Attempts::default();
    let twice = Attempts { max: 2, backoff_ms: 1_500 };
    let policy = "retry_policy: {max_attempts: 2, backoff_seconds: 1.5}";
    for (keys, boundary, attempts, asked) in [
        ("retry: {max_attempts: 2, backoff_seconds: 1.5}", Boundary::Fail, once, twice),
        ("on_error: port", Boundary::Port(named("error")), once, once),
        ("on_error: retry_then_port", Boundary::Port(named("error")), once, once),
        (&format!("on_error: retry_then_port, {policy}"), Boundary::Port(named("error")), twice, once),
        (&format!("on_error: port, {policy}"), Boundary::Port(named("error")), once, once),
        ("on_error: ignore", Boundary::Ignore(Port::Done), once, once),
    ] {
        for kind in
            ["conversation", "action", "logic, operations: []", "output, template: t, target: conversation"]
        {
            let node = first(&format!("{{name: a, type: {kind}, {keys}}}"), &[]);
            assert_eq!(
                (&node.boundary, node.attempts, node.asked),
                (&boundary, attempts, asked),
                "{kind} {keys}"
            );
            assert!(node.turns);
        }
    }
    let timer = "{name: a, type: wait, wait_for: timer, timeout_hours: 1, on_error: ignore}";
    let ignored = |port: &str| first(timer, &[&format!("{{from: a, to: b, port: {port}}}")]).boundary;
    assert_eq!(ignored("received"), Boundary::Ignore(named("received")));
    assert_eq!(ignored("timeout"), Boundary::Ignore(named("timeout")));
}

/// The port can be used beside guards.
#[test]
fn the_error_port_stands_beside_guards() {
    let node = first("{name: a, type: action, on_error: port}", &["{from: a, to: b, port: error}", TO_B]);
    let on: Vec<&Trigger> = node.exits.iter().map(|exit| &exit.on).collect();
    assert_eq!(on, [&Trigger::Port(named("error")), &Trigger::Auto { event: false }]);
}

/// `docs/formats-conversation.md#task`: a gate for each participant, whom the definition lists or the data hold.
#[test]
fn a_task_asks_each_participant() {
    let address = |text: &str| Recipient::Address(text.into());
    for (people, to) in [
        (
            "participants: [a@example.com, conversation_contact]",
            vec![address("a@example.com"), Recipient::Contact],
        ),
        (
            "participants_from: gathered.team.people",
            vec![Recipient::Listed(Path::new("team.people").unwrap())],
        ),
    ] {
        let state = format!(
            "{{name: a, type: task, task_template: {{{people}, instructions: \"Rate {{gathered.x}}.\"}}}}"
        );
        let machine = workflow(&[&state, "{name: b, type: conversation}"], &[]);
        let ActKind::Decide(decide) = machine.nodes[0].acts[0].kind else { panic!("{machine:?}") };
        let gate = machine.gate(decide.gate).expect("it is there");
        assert!(decide.each && gate.kind == GateKind::Task && gate.record.is_none());
        assert_eq!(gate.outcomes, [(Decision::Answer, Resolve::Settle(Port::Done))]);
        let message = &gate.inquiry.as_ref().expect("they are asked").message;
        let said: Vec<&str> = message.texts().map(|text| text.source.as_str()).collect();
        assert_eq!((&message.to, message.subject.is_none(), said), (&to, true, vec!["Rate {gathered.x}."]));
        // Without transitions it completes when all have answered.
        assert_eq!(machine.nodes[0].exits, [ends(Trigger::Auto { event: false }, "terminal")]);
    }
}

/// What the author left out is not in the machine: the server has words of its own.
#[test]
fn an_approval_says_only_what_its_author_wrote() {
    let approval = "{from: a, port: approved, to: b}";
    let asks = |template: &str| {
        format!("{{name: a, type: approval, approvers: [a@example.com], request_template: {{{template}}}}}")
    };
    let held =
        "{name: a, type: logic, operations: [], require_human_approval: true, approval_contacts: [a@b.c]}";
    for (state, transition, expected) in [
        ("{name: a, type: approval, approvers: [a@example.com]}".to_owned(), approval, Vec::new()),
        (asks("subject_template: Pay?"), approval, vec!["Pay?"]),
        (asks("body_template: Now."), approval, vec!["Now."]),
        (held.to_owned(), TO_B, Vec::new()),
    ] {
        let machine = workflow(&[&state, "{name: b, type: conversation}"], &[transition]);
        let mut asked = machine.gates.iter().filter_map(|gate| gate.inquiry.as_ref());
        let message = &asked.next().expect("somebody is asked").message;
        let said: Vec<&str> = message.texts().map(|text| text.source.as_str()).collect();
        assert_eq!(said, expected, "{state}");
    }
}

/// A worker gets the assistant and the instructions; the guards are tried when it is done.
#[test]
fn a_delegate_is_work_of_another_assistant() {
    let state = "{name: a, type: delegate, assistant: kyc, instructions: \"Check \\\"{gathered.x}\\\".\", on_error: ignore}";
    let node = first(state, &["{from: a, to: b, guards: [{type: all_tasks_complete}]}"]);
    let input = r#"{"assistant":"kyc","instructions":"Check \"{gathered.x}\"."}"#;
    let owed = Work::plain(WorkKind::Delegate);
    let owed = Work { accept: Some(Accept::Data), input: Some(input.into()), ..owed };
    assert_eq!(node.acts[0].kind, ActKind::Work(owed));
    assert_eq!((&node.boundary, &node.on_no_exit), (&Boundary::Ignore(Port::Done), &NoExit::Stay));
    assert_eq!((&node.exits[0].guard, node.exits[0].label.as_str()), (&Guard::Always, "all_tasks_complete"));
    assert_eq!(first(state, &[]).exits, [ends(Trigger::Auto { event: false }, "terminal")]);
}

/// What only names something is handed over as it is, also if its author wrote braces; the instructions are a template.
#[test]
fn names_and_descriptions_of_work_are_no_templates() {
    let of = |state: &str| {
        let ActKind::Work(work) = first(state, &[]).acts.remove(0).kind else { panic!("no work: {state}") };
        work
    };
    let delegate =
        of("{name: a, type: delegate, assistant: 'desk {gathered.x}', instructions: 'Check {gathered.x}.'}");
    assert_eq!(delegate.input.as_deref(), Some(r#"{"instructions":"Check {gathered.x}."}"#));
    assert_eq!(delegate.literal.as_deref(), Some(r#"{"assistant":"desk {gathered.x}"}"#));
    let field = "{name: f, type: string, description: 'as {gathered_data.y}'}";
    let parse = of(&format!("{{name: a, type: parse, model: m, fields: [{field}]}}"));
    assert_eq!(parse.input.as_deref(), Some(r#"{"instructions":"","model":"m"}"#));
    let field = r#"{"name":"f","type":"string","description":"as {gathered_data.y}","required":false}"#;
    assert_eq!(parse.literal, Some(format!(r#"{{"fields":[{field}]}}"#)));
    let plain = of("{name: a, type: delegate, assistant: 'desk {1}'}");
    assert_eq!((plain.input.as_deref(), plain.literal), (Some(r#"{"assistant":"desk {1}"}"#), None));
}

/// A run of another workflow; the machine lists each called workflow once.
#[test]
fn a_subworkflow_calls_another_workflow() {
    let path = |text: &str| Path::new(text).unwrap();
    let mapped = |to: &str, from: &str| Mapped { to: to.into(), from: path(from) };
    let state = "{name: a, type: subworkflow, workflow: shipping, input_mapping: {order: cart.id}, output_mapping: {code: tracking}}";
    let other = "{name: b, type: subworkflow, workflow: shipping}";
    let machine = workflow(&[state, other], &[TO_B]);
    let shipping = Callee { name: "shipping".into(), version: None, kind: CalleeKind::Workflow };
    assert_eq!(machine.callees, [shipping]);
    let spawn = |input, output| {
        ActKind::Spawn(Spawn { kids: Kids::Call(CalleeIx(0)), input, result: Gives::Return(output) })
    };
    let (a, b) = (&machine.nodes[0], &machine.nodes[1]);
    assert_eq!(a.acts[0].kind, spawn(vec![mapped("order", "cart.id")], vec![mapped("code", "tracking")]));
    assert_eq!(b.acts[0].kind, spawn(Vec::new(), Vec::new()));
    assert_eq!((&a.on_no_exit, &b.on_no_exit), (&NoExit::Stay, &DONE));
}
