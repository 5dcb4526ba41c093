//! Work whose results keep to a contract: what they may write, what the data must be, and which exit they may name. The
//! machines are built by hand: no rule here depends on a format.

mod memory;

use memory::{Rows, sealed};
use serde_json::{Value, json};
use std::sync::Arc;
use switchward_engine::{decide, evolve, work_view};
use switchward_expr::{CmpOp, Path};
use switchward_machine::{
    Accept, Act, ActIx, ActKind, Attempts, CONTROL_TOOLS, Contract, EndReason, Ending, Exit, FaultCode,
    Guard, Initial, Input, Machine, Meta, Micros, NextRule, NoExit, Node, NodeIx, Op, OpenId, Opening,
    Outcome, Policy, Port, ResultUse, RunId, SessionId, Status, StatusWords, Target, Templates, TenantId,
    Time, Trigger, Work, WorkKind, Write, Writes,
};
use switchward_schema::Schema;
use switchward_state::catalogue::{CatalogueCommand, InstallMachine, InstallTenancy, Role, Tenancy};
use switchward_state::policy::{Args, Authorize, CallEffect, PolicyCommand};
use switchward_state::run::{
    Data, FaultCause, RecordData, ResultProblem, Run, RunCommand, WriteProblem, Writer,
};
use switchward_state::seal::SecretOf;
use switchward_state::session::{Session, SessionCommand};
use switchward_state::work::{CompleteWork, FailWork, LeaseWork, WorkCommand, WorkFailure};
use switchward_state::{Actor, Body, Command, ItemKind, Key, Reason, Rejection, Reply, Row, Scope};
use switchward_testkit::start_of;

const TENANT: TenantId = TenantId(3);
const SESSION: SessionId = SessionId([4; 16]);
const RUN: RunId = RunId(1);
/// The nodes after the first.
const HIGH: &str = "high";
const LOW: &str = "low";

#[derive(Default)]
struct Shard(Rows);

impl Shard {
    /// A shard that has this machine.
    fn of(machine: &Machine) -> Self {
        let mut shard = Self::default();
        let tenancy = Tenancy::first(Some(sealed(TENANT, SecretOf::Mail, &[1; 32])));
        let machine = Arc::new(machine.clone());
        for command in [
            CatalogueCommand::InstallTenancy(InstallTenancy { tenancy }),
            CatalogueCommand::InstallMachine(InstallMachine { machine }),
        ] {
            shard.execute(Scope::Shard, Body::Catalogue(command)).expect("it is installed");
        }
        shard
    }

    /// A shard with a session of this machine.
    fn running(machine: &Machine) -> Self {
        let mut shard = Self::of(machine);
        shard.start(machine, &json!({})).expect("it starts");
        shard
    }

    fn start(&mut self, machine: &Machine, input: &Value) -> Result<Reply, Rejection> {
        let mut start = start_of("review", 1, machine.digest(), "agent");
        start.input = input.to_string().into_bytes();
        self.send(Body::Session(SessionCommand::Start(start)))
    }

    /// Sends a command about the session.
    fn send(&mut self, body: Body) -> Result<Reply, Rejection> {
        self.execute(Scope::Session(SESSION), body)
    }

    /// Executes a command; replaying its decision must give the same rows.
    fn execute(&mut self, scope: Scope, body: Body) -> Result<Reply, Rejection> {
        let actor = Actor { subject: "kim".into(), role: Role::Admin };
        let command = Command { actor, ..Command::of_server(TENANT, scope, body) };
        let decided = decide(&[command], &self.0, Time(1_000)).expect("the rows can be read");
        if let Some(decision) = decided.decision {
            assert_eq!(evolve(&decision, &self.0).expect("it fits"), decided.changes);
            self.0.apply(decided.changes);
        }
        decided.answers.into_iter().next().expect("one answer")
    }

    fn row(&self, key: &Key) -> Option<&Row> {
        self.0.0.get(key).map(|row| &**row)
    }

    fn session(&self) -> &Session {
        match self.row(&Key::session(TENANT, SESSION)) {
            Some(Row::Session(session)) => session,
            other => panic!("{other:?}"),
        }
    }

    fn run(&self) -> &Run {
        match self.row(&Key::run(TENANT, SESSION, RUN)) {
            Some(Row::Run(run)) => run,
            other => panic!("{other:?}"),
        }
    }

    fn data(&self) -> Data {
        match self.row(&Key::data(TENANT, SESSION, RUN)) {
            Some(Row::Data(data)) => data.clone(),
            Some(other) => panic!("{other:?}"),
            None => Data::default(),
        }
    }

    /// The data alone.
    fn values(&self) -> Value {
        Value::Object(self.data().values)
    }

    fn item(&self) -> OpenId {
        self.session().open_in(RUN, ItemKind::Work).next().expect("work is open")
    }

    /// Hands in a result, with the name of an exit beside it.
    fn complete(&mut self, result: Value, next: Option<&str>) -> Result<Reply, Rejection> {
        let item = self.item();
        let lease = LeaseWork { item, worker: "robot".into(), lease_ms: 30_000 };
        let Reply::Leased { fence, .. } = self.send(Body::Work(WorkCommand::Lease(lease)))? else {
            panic!("it is leased");
        };
        let (cost, tokens, next) = (Micros(0), 0, next.map(str::to_owned));
        let complete = CompleteWork { item, fence, result, cost, tokens, next };
        self.send(Body::Work(WorkCommand::Complete(complete)))
    }

    /// The same; what was wrong with the result.
    #[track_caller]
    fn wrong(&mut self, result: Value, next: Option<&str>) -> Option<ResultProblem> {
        match self.complete(result, next) {
            Ok(Reply::Worked { wrong, .. }) => wrong,
            other => panic!("{other:?}"),
        }
    }

    /// A result is a failed attempt for this reason, and changes nothing else.
    #[track_caller]
    fn fails(machine: &Machine, result: Value, next: Option<&str>, reason: Reason) -> ResultProblem {
        let mut shard = Self::running(machine);
        let before = (shard.data(), shard.run().node, shard.run().attempt);
        let wrong = shard.wrong(result, next).expect("it is not accepted");
        assert_eq!(wrong.reason(), reason, "{wrong:?}");
        assert_eq!((shard.data(), shard.run().node, shard.run().attempt), (before.0, before.1, before.2 + 1));
        wrong
    }

    /// A result is accepted, and the run is at this node then.
    #[track_caller]
    fn goes(machine: &Machine, result: Value, next: Option<&str>, to: &str) -> Self {
        let mut shard = Self::running(machine);
        assert_eq!(shard.wrong(result, next), None);
        assert_eq!(machine.node(shard.run().node).expect("a node").name, to);
        shard
    }
}

fn schema() -> Schema {
    let schema = json!({
        "type": "object",
        "properties": {
            "score": { "type": "number", "maximum": 10 },
            "notes": { "type": "string" },
            "owner": { "type": "string" },
            "answer": {},
        },
        "additionalProperties": false,
    });
    Schema::new(&schema).expect("it is a schema")
}

fn work(kind: WorkKind, contract: Contract) -> Act {
    let accept = Some(Accept::Contract(contract));
    Act { kind: ActKind::Work(Work { accept, ..Work::plain(kind) }), then: Vec::new() }
}

fn only(keys: &[&str]) -> Writes {
    Writes::Only(keys.iter().map(|key| (*key).to_owned()).collect())
}

/// A guard that holds from this score on.
fn from(score: u32) -> Guard {
    let left = Path::new("score").expect("a path");
    Guard::Compare { left, op: CmpOp::Gte, right: score.to_string() }
}

fn exit(on: Trigger, to: u32, guard: Guard) -> Exit {
    Exit { guard, ..Exit::plain(on, Target::Node(NodeIx(to))) }
}

fn agent(name: &str, to: u32, guard: Guard) -> Exit {
    exit(Trigger::Agent(name.into()), to, guard)
}

/// A machine whose first node is this one, and whose others are final.
fn machine(first: Node) -> Machine {
    let last = |name: &str| Node {
        on_no_exit: NoExit::End(Ending::plain(Outcome::Completed)),
        ..Node::new(name, vec![Act { kind: ActKind::Do(Vec::new()), then: Vec::new() }])
    };
    Machine {
        start: NodeIx(0),
        nodes: vec![first, last(HIGH), last(LOW)],
        gates: Vec::new(),
        policy: Policy::default(),
        budgets: Vec::new(),
        params: Vec::new(),
        opening: Opening { input_is_data: true, ..Opening::default() },
        words: StatusWords::default(),
        meta: Meta::default(),
        fields: Vec::new(),
        inputs: vec![Input::Data],
        reserved_keys: Vec::new(),
        callees: Vec::new(),
        data_schema: Some(schema()),
        initial: vec![Initial { key: "owner".into(), value: "\"ann\"".into() }],
        model: Some("small".into()),
        templates: Templates::Strict,
    }
}

/// A node of an agent that writes a score and notes, and chooses between two exits; `high` needs a score of three.
fn judging(next: NextRule, exits: Vec<Exit>) -> Node {
    let derived = schema().derive(&["score".to_owned(), "notes".to_owned()], &[]);
    let contract = Contract { schema: Some(derived), next, into: ResultUse::Update };
    Node {
        exits,
        on_no_exit: NoExit::Fail(EndReason::NoTransition),
        writes: only(&["score", "notes"]),
        attempts: Attempts { max: 2, backoff_ms: 0 },
        ..Node::new("judge", vec![work(WorkKind::Agent, contract)])
    }
}

fn choosing() -> Machine {
    machine(judging(NextRule::Needed, vec![agent(HIGH, 1, from(3)), agent(LOW, 2, Guard::Always)]))
}

#[test]
fn data_begin_with_the_definitions_and_the_input_over_them() {
    let machine = choosing();
    let mut shard = Shard::of(&machine);
    shard.start(&machine, &json!({ "notes": "new" })).unwrap();
    assert_eq!(shard.values(), json!({ "owner": "ann", "notes": "new" }));
    let from = shard.data().provenance["owner"].clone();
    assert_eq!((from.by, from.who.as_str(), from.node, from.entry), (Writer::Start, "kim", None, 0));
    let mut shard = Shard::of(&machine);
    shard.start(&machine, &json!({ "owner": "bob" })).unwrap();
    assert_eq!(shard.values(), json!({ "owner": "bob" }));
}

#[test]
fn a_start_that_breaks_the_schema_is_refused_with_the_path() {
    let machine = choosing();
    for (input, path) in [(json!({ "score": 11 }), Some("/score")), (json!({ "_x": 1 }), None)] {
        let mut shard = Shard::of(&machine);
        let refusal = shard.start(&machine, &input).unwrap_err();
        assert_eq!(
            (refusal.reason, refusal.fact_named("path")),
            (Reason::SchemaViolation, path),
            "{refusal:?}"
        );
        assert!(shard.row(&Key::session(TENANT, SESSION)).is_none(), "nothing begins");
    }
}

#[test]
fn a_result_is_written_with_who_wrote_it_and_where() {
    let shard = Shard::goes(&choosing(), json!({ "score": 4, "_next_node": HIGH }), None, HIGH);
    assert_eq!(shard.values(), json!({ "owner": "ann", "score": 4 }));
    let from = shard.data().provenance["score"].clone();
    assert_eq!((from.by, from.who.as_str(), from.node), (Writer::Worker, "robot", Some(NodeIx(0))));
    assert_eq!((from.entry, from.attempt), (1, 1));
    assert_eq!(shard.session().status, Status::Completed);
    assert_eq!(shard.session().items.len(), 0, "nothing is open any more");
}

#[test]
fn a_result_writes_what_its_node_declares_or_nothing() {
    let machine = choosing();
    for result in [json!({ "score": 4, "owner": "eve" }), json!({ "score": 4, "_x": 1 }), json!({ "new": 1 })]
    {
        let wrong = Shard::fails(&machine, result, Some(HIGH), Reason::WriteNotDeclared);
        assert!(matches!(wrong, ResultProblem::Write(WriteProblem::NotDeclared { .. })), "{wrong:?}");
    }
    for result in [json!({ "score": 11 }), json!({ "score": "4", "notes": "n" }), json!([4]), json!("4")] {
        Shard::fails(&machine, result, Some(HIGH), Reason::SchemaViolation);
    }
}

#[test]
fn the_data_as_a_whole_must_fit_their_schema() {
    let mut node = judging(NextRule::Free, vec![exit(Trigger::Auto { event: false }, 1, Guard::Always)]);
    // The contract allows what the data do not.
    node.acts = vec![work(WorkKind::Script, Contract::default())];
    let machine = machine(node);
    let wrong = Shard::fails(&machine, json!({ "score": 11 }), None, Reason::SchemaViolation);
    let ResultProblem::Write(WriteProblem::Schema { path, .. }) = wrong else { panic!("{wrong:?}") };
    assert_eq!(path, "/score");
    Shard::goes(&machine, json!({ "score": 10 }), None, HIGH);
}

#[test]
fn an_exit_is_named_in_the_result_or_beside_it() {
    let machine = choosing();
    Shard::goes(&machine, json!({ "score": 4 }), Some(HIGH), HIGH);
    Shard::goes(&machine, json!({ "score": 4, "_next_node": LOW }), Some(LOW), LOW);
    Shard::goes(&machine, Value::Null, Some(LOW), LOW);
    let wrong = Shard::fails(
        &machine,
        json!({ "score": 4, "_next_node": LOW }),
        Some(HIGH),
        Reason::TransitionIllegal,
    );
    assert_eq!(wrong, ResultProblem::NextClash { inside: LOW.into(), beside: HIGH.into() });
}

#[test]
fn an_exit_that_the_node_does_not_have_is_a_failed_attempt() {
    let machine = choosing();
    let exits = vec![HIGH.to_owned(), LOW.to_owned()];
    for (result, next) in [
        (json!({ "_next_node": "judge" }), None),
        (json!({ "_next_node": 1 }), None),
        (json!({}), Some("judge")),
        (json!({}), None),
    ] {
        let problem = Shard::fails(&machine, result, next, Reason::TransitionIllegal);
        let (ResultProblem::NextUnknown { exits: known, .. } | ResultProblem::NextMissing { exits: known }) =
            problem
        else {
            panic!("{problem:?}")
        };
        assert_eq!(known, exits);
    }
}

/// The guard is asked of the data with the result in them.
#[test]
fn the_guard_of_a_named_exit_looks_at_the_result() {
    let machine = choosing();
    let wrong = Shard::fails(&machine, json!({ "score": 2 }), Some(HIGH), Reason::GuardNotMet);
    assert_eq!(wrong, ResultProblem::NextGuard { next: HIGH.into() });
    Shard::goes(&machine, json!({ "score": 3 }), Some(HIGH), HIGH);
}

/// Of several exits of one name the first whose guard holds is taken.
#[test]
fn a_name_may_stand_for_several_exits() {
    let exits = vec![agent("on", 1, from(3)), agent("on", 2, Guard::Always)];
    let machine = machine(judging(NextRule::Needed, exits));
    Shard::goes(&machine, json!({ "score": 4 }), Some("on"), HIGH);
    Shard::goes(&machine, json!({ "score": 2 }), Some("on"), LOW);
}

#[test]
fn a_named_exit_is_taken_before_automatic_ones() {
    let auto = exit(Trigger::Auto { event: false }, 1, from(3));
    let machine =
        machine(judging(NextRule::Needed, vec![auto, agent(LOW, 2, Guard::Always), agent(HIGH, 1, from(9))]));
    Shard::goes(&machine, json!({ "score": 4 }), Some(LOW), LOW);
    Shard::goes(&machine, json!({ "score": 4 }), None, HIGH);
    let wrong = Shard::fails(&machine, json!({ "score": 2 }), None, Reason::TransitionIllegal);
    assert!(matches!(wrong, ResultProblem::NextMissing { .. }), "no automatic exit is taken: {wrong:?}");
}

#[test]
fn the_only_exit_that_could_be_named_is_taken_after_automatic_ones() {
    let exits = |guard| vec![agent(LOW, 2, guard), exit(Trigger::Auto { event: false }, 1, from(3))];
    let machine = |guard| machine(judging(NextRule::Lone, exits(guard)));
    Shard::goes(&machine(Guard::Always), json!({ "score": 4 }), None, HIGH);
    Shard::goes(&machine(Guard::Always), json!({ "score": 2 }), None, LOW);
    let mut shard = Shard::running(&machine(from(9)));
    assert_eq!(shard.wrong(json!({ "score": 2 }), None), None, "the result itself is fine");
    assert_eq!(shard.session().status, Status::Failed);
}

#[test]
fn a_body_without_an_exit_fails_the_run() {
    let auto = exit(Trigger::Auto { event: false }, 1, from(3));
    let mut shard = Shard::running(&machine(judging(NextRule::Free, vec![auto])));
    assert_eq!(shard.wrong(json!({ "score": 2 }), None), None);
    assert_eq!(shard.values(), json!({ "owner": "ann", "score": 2 }));
    let run = shard.run();
    assert_eq!(run.ending, Some(Ending::failed(EndReason::NoTransition)));
    let failure = run.failure.clone().expect("it says why");
    let cause = FaultCause::NoTransition { state: "judge".into() };
    assert_eq!((failure.attempt, failure.fault), (1, cause.into()));
}

#[test]
fn bad_results_use_up_the_attempts_and_then_the_run_fails() {
    let mut shard = Shard::running(&choosing());
    assert!(shard.wrong(json!({ "owner": "eve" }), Some(LOW)).is_some());
    assert_eq!((shard.run().attempt, shard.session().status), (2, Status::Waiting));
    assert!(shard.wrong(json!({ "score": 11 }), Some(LOW)).is_some());
    assert_eq!(shard.session().status, Status::Failed);
    assert_eq!(shard.values(), json!({ "owner": "ann" }), "nothing of them was written");
    let run = shard.run();
    assert_eq!(run.ending, Some(Ending::failed(EndReason::Fault(FaultCode::BadResult))));
    let failure = run.failure.clone().expect("it says why");
    assert_eq!(failure.attempt, 2);
    assert!(matches!(failure.fault.cause, FaultCause::Result(ResultProblem::Schema { .. })), "{failure:?}");
}

#[test]
fn a_reported_error_is_a_failed_attempt_too() {
    let mut shard = Shard::running(&choosing());
    let item = shard.item();
    let lease = LeaseWork { item, worker: "robot".into(), lease_ms: 30_000 };
    let Ok(Reply::Leased { fence, .. }) = shard.send(Body::Work(WorkCommand::Lease(lease))) else {
        panic!("it is leased");
    };
    let failure = WorkFailure::Reported { text: "no".into() };
    let fail = FailWork { item, fence, failure, cost: Micros(0), tokens: 0, unknown: false };
    shard.send(Body::Work(WorkCommand::Fail(fail))).unwrap();
    assert_eq!(shard.run().attempt, 2);
}

/// A machine with a tool whose result is deduced.
fn tool(writes: &[&str]) -> Machine {
    let contract = Contract { into: ResultUse::Deduce, ..Contract::default() };
    machine(Node {
        exits: vec![exit(Trigger::Auto { event: false }, 1, Guard::Always)],
        writes: only(writes),
        attempts: Attempts { max: 2, backoff_ms: 0 },
        ..Node::new("call", vec![work(WorkKind::Tool, contract)])
    })
}

#[test]
fn the_result_of_a_tool_may_be_any_json() {
    let one = tool(&["answer"]);
    for answer in [json!([1, 2]), json!("text"), json!(7), json!({ "other": 1 })] {
        let shard = Shard::goes(&one, answer.clone(), None, HIGH);
        assert_eq!(shard.values(), json!({ "owner": "ann", "answer": answer }));
    }
    let shard = Shard::goes(&one, json!({ "answer": 7 }), None, HIGH);
    assert_eq!(
        shard.values(),
        json!({ "owner": "ann", "answer": 7 }),
        "an object of declared keys is the update"
    );
    let shard = Shard::goes(&tool(&[]), json!({ "answer": 7 }), None, HIGH);
    assert_eq!(shard.values(), json!({ "owner": "ann" }), "it stays in the history");
    let several = tool(&["answer", "notes"]);
    Shard::goes(&several, json!({ "answer": 7, "notes": "n" }), None, HIGH);
    Shard::fails(&several, json!({ "answer": 7, "other": 1 }), None, Reason::WriteNotDeclared);
    Shard::fails(&several, json!([7]), None, Reason::SchemaViolation);
    Shard::fails(&one, json!({ "answer": 7 }), Some(HIGH), Reason::TransitionIllegal);
}

#[test]
fn a_worker_is_shown_the_schema_the_exits_and_the_model() {
    let shard = Shard::running(&choosing());
    let view = work_view(&shard.0, TENANT, SESSION, shard.item()).unwrap().expect("work is open");
    let names: Vec<&str> = view.exits.iter().map(|exit| exit.name.as_str()).collect();
    assert_eq!((names, view.model.as_deref()), (vec![HIGH, LOW], Some("small")));
    let schema = &view.schema.0;
    assert_eq!(schema["properties"]["_next_node"]["enum"], json!([HIGH, LOW]));
    assert_eq!(schema["additionalProperties"], json!(false));
    assert!(schema["properties"].get("owner").is_none(), "{schema}");
    let shard = Shard::running(&tool(&["answer"]));
    let view = work_view(&shard.0, TENANT, SESSION, shard.item()).unwrap().expect("work is open");
    assert_eq!((view.schema.0, view.exits.len()), (json!({}), 0));
}

#[test]
fn what_a_caller_sends_is_refused_instead() {
    let mut shard = Shard::running(&choosing());
    let record = |values: Value| {
        let values = values.as_object().expect("an object").clone();
        Body::Run(RunCommand::RecordData(RecordData { values }))
    };
    for (values, reason) in [
        (json!({ "owner": "eve" }), Reason::WriteNotDeclared),
        (json!({ "score": 11 }), Reason::SchemaViolation),
        (json!({ "notes": "n", "score": 11 }), Reason::SchemaViolation),
    ] {
        assert_eq!(shard.send(record(values)).unwrap_err().reason, reason);
        assert_eq!((shard.values(), shard.run().attempt), (json!({ "owner": "ann" }), 1));
    }
    shard.send(record(json!({ "score": 3 }))).unwrap();
    assert_eq!(shard.data().provenance["score"].by, Writer::Agent);
}

#[test]
fn work_without_a_contract_names_no_exit() {
    let mut node = judging(NextRule::Free, vec![exit(Trigger::Auto { event: false }, 1, Guard::Always)]);
    let owed = Work { accept: Some(Accept::Data), ..Work::plain(WorkKind::Agent) };
    node.acts = vec![Act { kind: ActKind::Work(owed), then: Vec::new() }];
    let mut shard = Shard::running(&machine(node));
    let refusal = shard.complete(json!({}), Some(HIGH)).unwrap_err();
    assert_eq!((refusal.reason, shard.run().attempt), (Reason::TransitionIllegal, 1));
}

/// Operations of an act are one write where the data have a schema.
#[test]
fn operations_write_all_of_it_or_nothing() {
    let writes = |pairs: &[(&str, &str)]| {
        let op = |(key, value): &(&str, &str)| {
            Op::Write(Write { key: (*key).to_owned(), value: (*value).to_owned() })
        };
        let act = Act { kind: ActKind::Do(pairs.iter().map(op).collect()), then: Vec::new() };
        machine(Node {
            exits: vec![exit(Trigger::Auto { event: false }, 1, Guard::Always)],
            writes: only(&["score", "notes"]),
            ..Node::new("set", vec![act])
        })
    };
    let shard = Shard::running(&writes(&[("notes", "\"by {{owner}}\""), ("score", "3")]));
    assert_eq!(shard.values(), json!({ "owner": "ann", "notes": "by ann", "score": 3 }));
    assert_eq!(shard.data().provenance["notes"].by, Writer::Operation);
    for pairs in [[("score", "3"), ("owner", "\"eve\"")], [("notes", "\"n\""), ("score", "11")]] {
        let shard = Shard::running(&writes(&pairs));
        assert_eq!(shard.values(), json!({ "owner": "ann" }));
        let reason = Some(EndReason::Fault(FaultCode::Operation));
        assert_eq!(shard.run().ending.as_ref().and_then(|ending| ending.reason), reason);
    }
}

#[test]
fn an_absent_field_of_a_template_is_a_fault_that_is_not_tried_again() {
    let mut node = judging(NextRule::Needed, Vec::new());
    let owed = Work { input: Some(r#"{"about":"{{notes}}"}"#.into()), ..Work::plain(WorkKind::Agent) };
    node.acts = vec![Act { kind: ActKind::Work(owed), then: Vec::new() }];
    let shard = Shard::running(&machine(node));
    let failure = shard.run().failure.clone().expect("it fails at once");
    assert_eq!(
        (failure.attempt, failure.fault),
        (1, FaultCause::AbsentValue { path: "notes".into() }.into())
    );
}

/// A guard that cannot be evaluated is no fault of the worker: the result counts, and the run fails.
#[test]
fn the_error_of_a_guard_is_a_fault_of_the_node() {
    let left = Path::new("notes").expect("a path");
    let broken = Guard::Compare { left, op: CmpOp::Matches, right: "\"(\"".into() };
    let machine =
        machine(judging(NextRule::Needed, vec![agent(HIGH, 1, broken), agent(LOW, 2, Guard::Always)]));
    let mut shard = Shard::running(&machine);
    assert_eq!(shard.wrong(json!({ "notes": "n" }), Some(HIGH)), None);
    assert_eq!(shard.values(), json!({ "owner": "ann", "notes": "n" }));
    let ending = Some(Ending::failed(EndReason::Fault(FaultCode::Guard)));
    assert_eq!((shard.run().ending.clone(), shard.run().attempt), (ending, 1));
}

/// A tool may write beside its result, in an act of its own.
#[test]
fn a_body_goes_on_after_its_work() {
    let contract = Contract { into: ResultUse::Deduce, ..Contract::default() };
    let mut call = work(WorkKind::Tool, contract);
    call.then = vec![(Port::Done, ActIx(1))];
    let write = Op::Write(Write { key: "notes".into(), value: "\"called\"".into() });
    let note = Act { kind: ActKind::Do(vec![write]), then: Vec::new() };
    let machine = machine(Node {
        exits: vec![exit(Trigger::Auto { event: false }, 1, Guard::Always)],
        writes: only(&["answer", "notes"]),
        ..Node::new("call", vec![call, note])
    });
    let shard = Shard::goes(&machine, json!({ "answer": 7 }), None, HIGH);
    assert_eq!(shard.values(), json!({ "owner": "ann", "answer": 7, "notes": "called" }));
}

#[test]
fn tools_that_control_a_process_are_denied() {
    let mut shard = Shard::running(&choosing());
    let mut call = |capability: String| {
        let call = Authorize {
            capability,
            args: Args::parse(b"{}").expect("they are arguments"),
            estimate: None,
            call_id: String::new(),
            limits: None,
            mail: None,
        };
        match shard.send(Body::Policy(PolicyCommand::Authorize(call))) {
            Ok(Reply::Authorized(authorized)) => authorized.effect,
            other => panic!("{other:?}"),
        }
    };
    for tool in CONTROL_TOOLS {
        assert_eq!(call(tool.to_owned()), CallEffect::Deny);
        assert_eq!(call(format!("mcp:process:{tool}")), CallEffect::Deny);
    }
    assert_eq!(call("search".into()), CallEffect::Allow);
}
