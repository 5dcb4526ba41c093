//! Formats differ only in fields of their machines. A machine that lacks a field does not do what the field is for, whatever
//! format it was compiled from.

mod memory;

use memory::{Rows, sealed};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use switchward_engine::{decide, evolve};
use switchward_expr::Logic;
use switchward_formats::{Format, compile_file};
use switchward_machine::{
    Act, ActKind, Attempts, CalleeKind, Decision, Dialect, Digest, Guard, Input, Machine, Op, RunId,
    SessionId, Status, TenantId, Time, Write,
};
use switchward_state::approval::{ApprovalCommand, DecideGate, RecordReply};
use switchward_state::catalogue::{CatalogueCommand, Deploy, InstallMachine, InstallTenancy, Role, Tenancy};
use switchward_state::run::{EndTurn, Pinned, RecordData, RecordEvent, RunCommand};
use switchward_state::seal::SecretOf;
use switchward_state::session::{PostMessage, Queued, Session, SessionCommand, Start, SwitchRun};
use switchward_state::{Actor, Body, Command, Key, Reason, Rejection, Reply, Row, Scope};
use switchward_testkit::start_of;

const TENANT: TenantId = TenantId(3);
const SESSION: SessionId = SessionId([4; 16]);
/// It rests in its first state until the data have an order.
const TALK: &str = "\
name: talk
states:
  - {name: collect, type: logic, operations: [], retry: {max_attempts: 2, backoff_seconds: 1}}
  - {name: done, type: conversation, instructions: Thank them.}
transitions:
  - {from: collect, to: done, guards: [{type: data_contains, config: {key: order}}]}
";

/// It calls another one and returns what that says of `approval`.
const CALLER: &str = "\
name: talk
states:
  - {name: call, type: subworkflow, workflow: child, output_mapping: {approval: approval}}
  - {name: done, type: conversation, instructions: Thank them.}
transitions:
  - {from: call, to: done}
";

fn compiled(source: &str) -> Machine {
    let compiled = compile_file("definition.yaml", source.as_bytes(), Some(Format::Conversation));
    compiled.definition.unwrap_or_else(|| panic!("{:?}", compiled.findings)).machine
}

#[derive(Default)]
struct Shard(Rows);

impl Shard {
    /// A shard that has these machines.
    fn of(machines: &[&Machine]) -> Self {
        let mut shard = Self::default();
        let tenancy = Tenancy::first(Some(sealed(TENANT, SecretOf::Mail, &[1; 32])));
        shard.install(CatalogueCommand::InstallTenancy(InstallTenancy { tenancy }));
        for machine in machines {
            let machine = Arc::new((*machine).clone());
            shard.install(CatalogueCommand::InstallMachine(InstallMachine { machine }));
        }
        shard
    }

    /// A shard with a session of this machine.
    fn running(machine: &Machine) -> Self {
        let mut shard = Self::of(&[machine]);
        shard.start(start(machine.digest())).expect("it starts");
        shard
    }

    fn install(&mut self, command: CatalogueCommand) {
        self.execute("admin", Scope::Shard, Body::Catalogue(command)).expect("it is installed");
    }

    fn start(&mut self, start: Start) -> Result<Reply, Rejection> {
        self.send(Body::Session(SessionCommand::Start(start)))
    }

    /// Sends a command about the session.
    fn send(&mut self, body: Body) -> Result<Reply, Rejection> {
        self.execute("kim@example.com", Scope::Session(SESSION), body)
    }

    /// Executes a command; replaying its decision must give the same rows.
    fn execute(&mut self, subject: &str, scope: Scope, body: Body) -> Result<Reply, Rejection> {
        let actor = Actor { subject: subject.into(), role: Role::Admin };
        let command = Command { actor, ..Command::of_server(TENANT, scope, body) };
        let decided = decide(&[command], &self.0, Time(1_000)).expect("the rows can be read");
        if let Some(decision) = decided.decision {
            assert_eq!(evolve(&decision, &self.0).expect("it fits"), decided.changes);
            self.0.apply(decided.changes);
        }
        decided.answers.into_iter().next().expect("one answer")
    }

    /// The data of a run of the session.
    fn data(&self, run: u32) -> Value {
        match self.0.0.get(&Key::data(TENANT, SESSION, RunId(run))).map(|row| &**row) {
            Some(Row::Data(data)) => Value::Object(data.values.clone()),
            Some(other) => panic!("{other:?}"),
            None => json!({}),
        }
    }

    fn session(&self) -> &Session {
        match self.0.0.get(&Key::session(TENANT, SESSION)).map(|row| &**row) {
            Some(Row::Session(session)) => session,
            other => panic!("{other:?}"),
        }
    }

    /// Why a command about the session is refused; `None` if it is not.
    fn refuses(&mut self, body: Body) -> Option<Reason> {
        self.send(body).err().map(|refusal| refusal.reason)
    }
}

fn start(machine: Digest) -> Start {
    start_of("talk", 1, machine, "agent")
}

fn event(key: &str) -> Body {
    Body::Run(RunCommand::RecordEvent(RecordEvent {
        key: key.into(),
        data: Map::new(),
        state: None,
        model: false,
        token: None,
        webhook: None,
        once: None,
    }))
}

fn record(values: &Value) -> Body {
    let values = values.as_object().expect("an object").clone();
    Body::Run(RunCommand::RecordData(RecordData { values }))
}

fn end_turn() -> Body {
    Body::Run(RunCommand::EndTurn(EndTurn { text: String::new() }))
}

fn switch_to(workflow: &str) -> Body {
    Body::Session(SessionCommand::SwitchRun(SwitchRun { workflow: workflow.into() }))
}

fn mail() -> Body {
    Body::Approval(ApprovalCommand::RecordReply(RecordReply {
        from: "sam@example.com".into(),
        subject: String::new(),
        text: "Hello".into(),
        authenticated: true,
        signed: false,
        pages_only: false,
        brought_by: None,
        vouched: false,
        model: false,
        token: None,
        evidence: None,
        limits: None,
    }))
}

/// Each input, with the commands that bring it.
fn commands() -> Vec<(Input, Body)> {
    let post = PostMessage { text: "Hello".into() };
    vec![
        (Input::Message, Body::Session(SessionCommand::PostMessage(post))),
        (Input::Data, record(&json!({}))),
        (Input::Signal, Body::Run(RunCommand::SignalCompletion)),
        (Input::Signal, Body::Run(RunCommand::RetryNode)),
        (Input::Event, event("paid")),
        (Input::Mail, mail()),
        (Input::Switch, switch_to("other")),
    ]
}

#[test]
fn an_input_that_a_machine_does_not_list_is_refused() {
    let machine = compiled(TALK);
    assert_eq!(machine.inputs, Input::ALL, "a conversation accepts all of them");
    for (input, body) in commands() {
        let known = Shard::running(&machine).refuses(body.clone());
        // The session has one workflow, and there is nothing to switch to.
        assert_eq!(known, (input == Input::Switch).then_some(Reason::NoSuchWorkflow), "{input:?}");
        let mut without = machine.clone();
        without.inputs.retain(|other| *other != input);
        assert_eq!(Shard::running(&without).refuses(body), Some(Reason::StateMismatch), "{input:?}");
    }
}

#[test]
fn a_start_brings_a_message_only_if_the_machine_accepts_messages() {
    let mut machine = compiled(TALK);
    let begin = |machine: &Machine| {
        let said = Start { message: Some("Hello".into()), ..start(machine.digest()) };
        Shard::of(&[machine]).start(said).err().map(|refusal| refusal.reason)
    };
    assert_eq!(begin(&machine), None);
    machine.inputs = vec![Input::Data];
    assert_eq!(begin(&machine), Some(Reason::StateMismatch));
}

#[test]
fn a_turn_ends_at_a_node_at_rest_only_if_the_node_says_so() {
    let mut machine = compiled(TALK);
    assert_eq!(Shard::running(&machine).refuses(end_turn()), None);
    machine.nodes[0].turns = false;
    assert_eq!(Shard::running(&machine).refuses(end_turn()), Some(Reason::StateMismatch));
}

#[test]
fn a_key_that_a_machine_does_not_reserve_is_like_any_other() {
    let machine = compiled(TALK);
    let own = || record(&json!({ "event_key": "mine" }));
    let mut shard = Shard::running(&machine);
    assert_eq!(shard.refuses(own()), Some(Reason::SchemaViolation));
    assert_eq!(shard.refuses(event("paid")), None);
    assert_eq!(shard.data(1), json!({ "event_key": "paid" }));

    let free = Machine { reserved_keys: Vec::new(), ..machine };
    let mut shard = Shard::running(&free);
    assert_eq!(shard.refuses(own()), None);
    assert_eq!(shard.refuses(event("paid")), None);
    assert_eq!(
        shard.data(1),
        json!({ "event_key": "mine" }),
        "the engine writes no key that is not reserved"
    );
}

#[test]
fn a_wait_is_not_recorded_in_a_machine_that_does_not_reserve_the_key() {
    let machine = compiled(
        "\
name: talk
states:
  - {name: pay, type: wait, wait_for: webhook, timeout_hours: 1}
  - {name: done, type: conversation, instructions: Thank them.}
transitions:
  - {from: pay, to: done, port: received}
  - {from: pay, to: done, port: timeout}
",
    );
    let mut shard = Shard::running(&machine);
    assert_eq!(shard.refuses(event("paid")), None);
    assert_eq!(shard.data(1)["wait"]["pay"]["event_key"], "paid");

    let mut shard = Shard::running(&Machine { reserved_keys: Vec::new(), ..machine });
    assert_eq!(shard.refuses(record(&json!({ "wait": "a minute" }))), None);
    assert_eq!(shard.refuses(event("paid")), None);
    assert_eq!(shard.data(1), json!({ "wait": "a minute" }));
}

/// Otherwise an agent could write an approval there before the switch.
#[test]
fn a_switch_does_not_carry_over_a_key_that_only_the_new_machine_reserves() {
    let new = compiled(TALK);
    let old = Machine { reserved_keys: Vec::new(), ..compiled(&TALK.replace("name: talk", "name: free")) };
    let workflow = |definition: &str, machine: &Machine| Queued {
        definition: definition.into(),
        version: 1,
        machine: machine.digest(),
    };
    let workflows = vec![workflow("free", &old), workflow("talk", &new)];
    let mut shard = Shard::of(&[&old, &new]);
    shard.start(Start { workflows, ..start_of("free", 1, old.digest(), "agent") }).expect("it starts");
    assert_eq!(shard.refuses(record(&json!({ "approval": "mine", "name": "Kim" }))), None);
    assert_eq!(shard.refuses(switch_to("talk")), None);
    assert_eq!(shard.data(2), json!({ "name": "Kim" }));
}

/// The same of what a called definition returns.
#[test]
fn a_reserved_key_is_returned_only_by_a_machine_that_reserves_it_too() {
    let child = Machine { reserved_keys: Vec::new(), ..compiled(&TALK.replace("name: talk", "name: child")) };
    let parent = compiled(CALLER);
    let callee = parent.callees[0].clone();
    let callees = vec![Pinned { callee, version: 1, machine: child.digest() }];
    let mut shard = Shard::of(&[&parent, &child]);
    shard.start(Start { callees, ..start(parent.digest()) }).expect("it starts");
    assert_eq!(shard.refuses(record(&json!({ "approval": "mine", "order": 7 }))), None);
    assert_eq!(shard.refuses(end_turn()), None);
    assert_eq!(shard.refuses(end_turn()), None);
    assert_eq!((shard.session().status, shard.data(1)), (Status::Failed, json!({})));
}

const APPROVAL: &str = "\
name: talk
states:
  - name: sign
    type: approval
    approvers: [lead@example.com]
    request_template: {subject_template: Sign, body_template: \"Do you sign {{ gathered_data.order }}?\"}
  - {name: done, type: conversation, instructions: Thank them.}
  - {name: refused, type: conversation, instructions: Say why.}
transitions:
  - {from: sign, to: done, port: approved}
  - {from: sign, to: refused, port: rejected}
";

/// The data after an approval was refused.
fn refused(machine: &Machine) -> Value {
    let mut shard = Shard::of(&[machine]);
    let input = br#"{"order": 7}"#.to_vec();
    shard.start(Start { input, ..start(machine.digest()) }).expect("it starts");
    let gate = shard.session().gates().next().expect("a gate is open");
    let (decision, comment) = (Decision::Refuse, "Too dear".to_owned());
    let decide = DecideGate { gate, decision, comment, shown: None, limits: None, proof: None };
    let body = Body::Approval(ApprovalCommand::DecideGate(decide));
    shard.execute("lead@example.com", Scope::Session(SESSION), body).expect("it is decided");
    shard.data(1)
}

#[test]
fn a_refusal_is_recorded_only_if_the_gate_says_where() {
    let mut machine = compiled(APPROVAL);
    let data = refused(&machine);
    let recorded = &data["approval"]["sign"];
    assert_eq!((&recorded["comment"], &recorded["shown"]), (&json!("Too dear"), &json!({ "order": 7 })));
    for gate in &mut machine.gates {
        gate.record = None;
    }
    assert_eq!(refused(&machine), json!({ "order": 7 }));
}

#[test]
fn a_missing_callee_is_no_missing_workflow_unless_the_machine_calls_it_one() {
    let mut machine = compiled(CALLER);
    for (kind, reason, fact) in [
        (CalleeKind::Workflow, Reason::NoSuchWorkflow, "workflow"),
        (CalleeKind::Definition, Reason::NotFound, "definition"),
    ] {
        machine.callees[0].kind = kind;
        let known = (reason, vec![(fact.to_owned(), "child".to_owned())]);
        let begin = Shard::of(&[&machine]).start(start(machine.digest())).expect_err("nothing is pinned");
        assert_eq!((begin.reason, begin.facts), known);

        let deploy = Deploy {
            findings: Vec::new(),
            name: "talk".into(),
            format: "conversation".into(),
            files: Vec::new(),
            source: machine.digest(),
            machine: Arc::new(machine.clone()),
            activate: true,
            etag: String::new(),
        };
        let body = Body::Catalogue(CatalogueCommand::Deploy(deploy));
        let deployed = Shard::of(&[]).execute("admin", Scope::Catalogue, body).expect_err("it is missing");
        assert_eq!((deployed.reason, deployed.facts), known);
    }
}

/// A shard with a session of this machine that begins with these data.
fn begun(machine: &Machine, input: &Value) -> Shard {
    let mut shard = Shard::of(&[machine]);
    let input = input.to_string().into_bytes();
    shard.start(Start { input, ..start(machine.digest()) }).expect("it starts");
    shard
}

/// A strict node waits for no other attempt if a value is absent; any other fault of its templates is tried again.
#[test]
fn a_strict_node_fails_at_once_if_a_value_is_absent() {
    let strict = |value: &str| {
        let mut machine = compiled(TALK);
        let write = Op::Write(Write { key: "made".into(), value: value.into() });
        machine.nodes[0].acts = vec![Act { kind: ActKind::Do(vec![write]), then: Vec::new() }];
        machine.nodes[0].attempts = Attempts { max: 2, backoff_ms: 60_000 };
        machine.nodes[0].dialect = Dialect::Strict;
        machine
    };
    let machine = strict(r#"{"it": "{{order.id}}", "as": "{gathered.order}"}"#);
    let shard = begun(&machine, &json!({"order": {"id": 7}}));
    assert_eq!(shard.data(1)["made"], json!({"it": 7, "as": "{gathered.order}"}));
    for data in [json!({}), json!({"order": {"id": null}})] {
        let shard = begun(&machine, &data);
        assert_eq!(
            (shard.session().status, &shard.data(1)["made"]),
            (Status::Failed, &json!(null)),
            "{data}"
        );
    }
    assert_ne!(begun(&strict("no JSON"), &json!({})).session().status, Status::Failed, "it is tried again");
}

#[test]
fn logic_that_cannot_be_evaluated_takes_no_exit() {
    let mut machine = compiled(TALK);
    let exit = &mut machine.nodes[0].exits[0];
    let logic = Logic::guard_json(r#"{">": [{"var": "order.total"}, 100]}"#).expect("it is a guard");
    exit.guard = Guard::Logic(logic);
    exit.ops = vec![Op::Write(Write { key: "left".into(), value: "true".into() })];
    for (total, left, fails) in
        [(json!(120), json!(true), false), (json!(5), json!(null), false), (json!("many"), json!(null), true)]
    {
        let shard = begun(&machine, &json!({"order": {"total": total}}));
        let known = (shard.data(1)["left"].clone(), shard.session().status == Status::Failed);
        assert_eq!(known, (left, fails), "{total}");
    }
}
