//! Several runs of one session are active at the same time: commands name one of them, and none moves another.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::{Map, Value, json};
use std::sync::Arc;
use switchward_engine::policy::explain;
use switchward_engine::{SessionView, decide, evolve, session_view, work_view};
use switchward_machine::{
    Accept, Act, ActKind, Ask, Attempts, Ending, Exit, FixedChild, Gives, Input, Kids, Layer, Machine, Meta,
    Micros, NoExit, Node, NodeIx, OpenId, Opening, Otherwise, Outcome, Pattern, Policy, Port, Rule, RunId,
    SessionId, Spawn, Status, StatusWords, Target, TenantId, Time, Trigger, Wait, WaitOn, Work, WorkKind,
};
use switchward_state::catalogue::{CatalogueCommand, InstallMachine, Role, Settings};
use switchward_state::policy::{Args, Authorize, CallEffect, PolicyCommand, ReportCall, ReportUsage};
use switchward_state::run::{EndTurn, RecordData, RecordEvent, Run, RunAddress, RunCommand};
use switchward_state::session::{Cancel, Pause, Resume, Session, SessionCommand, Start};
use switchward_state::work::{CompleteWork, FailWork, LeaseWork, WorkCommand, WorkFailure};
use switchward_state::{
    Actor, Body, Command, ItemKind, Key, ReadRows as _, Reason, Rejection, Reply, Scope, SharedRow,
};
use switchward_testkit::{Rows, start_of};

const TENANT: TenantId = TenantId(1);
const MINUTE_MS: u64 = 60_000;
/// The session's own run, which waits for the others.
const ROOT: RunId = RunId(1);
/// The run whose agent owes a turn.
const DRAFT: RunId = RunId(2);
/// The two runs that a worker owes a result each, at the same node.
const CHECKS: [RunId; 2] = [RunId(3), RunId(4)];
/// The run that waits for an event.
const LISTENER: RunId = RunId(5);

/// A node that ends its run when its body has ended.
fn part(name: &str, kind: ActKind) -> Node {
    let on_no_exit = NoExit::End(Ending::plain(Outcome::Completed));
    let asked = Attempts { max: 3, backoff_ms: 0 };
    Node { on_no_exit, asked, ..Node::new(name, vec![Act { kind, then: Vec::new() }]) }
}

/// Four children at three nodes, and a node for what comes after them.
fn machine() -> Machine {
    let child = |(name, node): (&str, u32)| FixedChild { name: name.into(), node: NodeIx(node) };
    let children = [("text", 1), ("legal", 2), ("money", 2), ("paid", 3)].map(child).to_vec();
    let spawn = Spawn { kids: Kids::Fixed(children), input: Vec::new(), result: Gives::Update };
    let split = Node {
        exits: vec![Exit::plain(Trigger::Auto { event: false }, Target::Node(NodeIx(4)))],
        ..Node::new("split", vec![Act { kind: ActKind::Spawn(spawn), then: Vec::new() }])
    };
    let check = Work { accept: Some(Accept::Data), ..Work::plain(WorkKind::Agent) };
    let wait =
        Wait { on: WaitOn::Event, for_ms: 60 * MINUTE_MS, late: Port::Done, done: Port::Done, sort: None };
    let allow = Rule { pattern: Pattern::new("bash").unwrap(), limits: Vec::new(), gate: None, args: None };
    let layer = Layer {
        name: "policy".into(),
        covers: Pattern::new("*").unwrap(),
        except: Vec::new(),
        deny: Vec::new(),
        ask: Vec::new(),
        allow: vec![allow],
        otherwise: Otherwise::Deny,
        at: None,
    };
    Machine {
        start: NodeIx(0),
        nodes: vec![
            split,
            part("draft", ActKind::Ask(Ask { turns: true })),
            part("check", ActKind::Work(check)),
            part("listen", ActKind::Wait(wait)),
            part("after", ActKind::Do(Vec::new())),
        ],
        gates: Vec::new(),
        policy: Policy { layers: vec![layer], ask_gate: None },
        budgets: Vec::new(),
        params: Vec::new(),
        opening: Opening { input_is_data: true, ..Opening::default() },
        words: StatusWords::default(),
        meta: Meta { name: "p".into(), ..Meta::default() },
        fields: Vec::new(),
        inputs: Input::ALL.to_vec(),
        reserved_keys: Vec::new(),
        callees: Vec::new(),
        data_schema: None,
        initial: Vec::new(),
        model: None,
        templates: switchward_machine::Templates::Lenient,
    }
}

struct Harness {
    rows: Rows,
    session: SessionId,
    now: Time,
}

/// A person or a program with a key.
fn actor(subject: &str, role: Role) -> Actor {
    Actor { subject: subject.into(), role }
}

fn agent() -> Actor {
    actor("agent", Role::Agent)
}

fn run_of(run: RunId) -> Option<RunAddress> {
    Some(RunAddress { run: Some(run), ..RunAddress::default() })
}

fn node_of(node: &str) -> Option<RunAddress> {
    Some(RunAddress { node: Some(node.into()), ..RunAddress::default() })
}

fn work_of(work: OpenId) -> Option<RunAddress> {
    Some(RunAddress { work: Some(work), ..RunAddress::default() })
}

fn turn() -> Body {
    RunCommand::EndTurn(EndTurn { text: String::new() }).into()
}

fn record(values: Value) -> Body {
    let Value::Object(values) = values else { panic!("{values} is no object") };
    RunCommand::RecordData(RecordData { values }).into()
}

fn event(key: &str) -> Body {
    let event = RecordEvent {
        key: key.into(),
        data: Map::new(),
        state: None,
        model: false,
        token: None,
        webhook: None,
        once: None,
    };
    RunCommand::RecordEvent(event).into()
}

fn call_of(call_id: &str) -> Authorize {
    Authorize {
        capability: "bash".into(),
        args: Args::parse(b"{}").unwrap(),
        estimate: None,
        call_id: call_id.into(),
        limits: None,
        mail: None,
    }
}

fn call(call_id: &str) -> Body {
    PolicyCommand::Authorize(call_of(call_id)).into()
}

fn report(call_id: Option<&str>) -> Body {
    let capability = if call_id.is_some() { None } else { Some("bash".into()) };
    let call_id = call_id.map(str::to_owned);
    PolicyCommand::ReportCall(ReportCall { call_id, capability, success: true, cost: Micros(0), tokens: 0 })
        .into()
}

fn pause() -> Body {
    SessionCommand::Pause(Pause { comment: String::new() }).into()
}

fn resume() -> Body {
    SessionCommand::Resume(Resume { comment: String::new() }).into()
}

impl Harness {
    fn start() -> Self {
        let machine = Arc::new(machine());
        let (session, now) = (SessionId::from_key(TENANT, "s"), Time(1_782_000_000_000));
        let mut harness = Self { rows: Rows::default(), session, now };
        let start = Start {
            key: Some("s".into()),
            input: br#"{"order": 7}"#.to_vec(),
            ..start_of("p", 1, machine.digest(), "agent")
        };
        let install = CatalogueCommand::InstallMachine(InstallMachine { machine });
        let install = Command::of_server(TENANT, Scope::Shard, install.into());
        harness.submit(install).unwrap();
        harness.say(agent(), None, SessionCommand::Start(start)).unwrap();
        harness
    }

    /// Executes a command; its decision must give the same rows when it is replayed, and a refusal none.
    fn submit(&mut self, command: Command) -> Result<Reply, Rejection> {
        let mut decided = decide(&[command], &self.rows, self.now).unwrap();
        let answer = decided.answers.pop().unwrap();
        if let Some(decision) = decided.decision {
            assert!(answer.is_ok(), "a refused command has changed something");
            assert_eq!(evolve(&decision, &self.rows).unwrap(), decided.changes);
            self.rows.apply(decided.changes);
        }
        answer
    }

    fn say(
        &mut self,
        actor: Actor,
        address: Option<RunAddress>,
        body: impl Into<Body>,
    ) -> Result<Reply, Rejection> {
        let (scope, body) = (Scope::Session(self.session), body.into());
        let settings = Settings::default();
        let command = Command { actor, address, settings, ..Command::of_server(TENANT, scope, body) };
        self.submit(command)
    }

    /// The reason why a command is refused.
    fn refused(&mut self, actor: Actor, address: Option<RunAddress>, body: impl Into<Body>) -> Reason {
        self.say(actor, address, body).unwrap_err().reason
    }

    fn row(&self) -> SharedRow<Session> {
        self.rows.session(TENANT, self.session).unwrap().unwrap()
    }

    fn run(&self, run: RunId) -> SharedRow<Run> {
        self.rows.run(TENANT, self.session, run).unwrap()
    }

    fn outcome(&self, run: RunId) -> Option<Outcome> {
        self.run(run).ending.as_ref().map(|ending| ending.outcome)
    }

    fn view(&self) -> SessionView {
        session_view(&self.rows, TENANT, self.session).unwrap().unwrap()
    }

    /// The active runs that wait for no other, as a caller is shown them.
    fn active(&self) -> Vec<u32> {
        let view = self.view();
        assert_eq!(usize::try_from(view.active.count).unwrap(), view.active.runs.len());
        view.active.runs.iter().map(|run| run.run.0).collect()
    }

    fn work_in(&self, run: RunId) -> Vec<OpenId> {
        self.row().open_in(run, ItemKind::Work).collect()
    }

    /// A worker takes the work of a run; gives the number of its lease.
    fn lease(&mut self, subject: &str, run: RunId) -> (OpenId, u64) {
        let [item] = self.work_in(run)[..] else { panic!("{run:?} has no work") };
        let lease = LeaseWork { item, worker: subject.into(), lease_ms: MINUTE_MS };
        let leased = self.say(actor(subject, Role::Worker), None, WorkCommand::Lease(lease)).unwrap();
        let Reply::Leased { fence, .. } = leased else { panic!("{leased:?}") };
        (item, fence)
    }

    fn complete(&mut self, subject: &str, run: RunId, result: Value) {
        let (item, fence) = self.lease(subject, run);
        let complete = CompleteWork { item, fence, result, next: None, cost: Micros(0), tokens: 0 };
        self.say(actor(subject, Role::Worker), None, WorkCommand::Complete(complete)).unwrap();
    }
}

#[test]
fn several_active_runs_are_shown_and_no_one_of_them_as_the_current_state() {
    let harness = Harness::start();
    assert_eq!(harness.active(), [2, 3, 4, 5]);
    let view = harness.view();
    assert_eq!((view.at(), view.node().is_none()), ("split", true));
    assert_eq!((view.shows(), view.answers().count()), ((None, None), 0));
    assert!(view.reply_token().is_none());
    let labels: Vec<_> = view.active.runs.iter().filter_map(|run| run.label.as_deref()).collect();
    assert_eq!(labels, ["split.text", "split.legal", "split.money", "split.paid"]);
    let named = |(_, item): &(OpenId, switchward_state::OpenItem)| {
        view.name_of(item.head().run, item.head().node).to_owned()
    };
    assert_eq!(
        view.items.iter().map(named).collect::<Vec<_>>(),
        ["split.legal", "split.money", "split.paid"]
    );
}

#[test]
fn the_answer_to_a_command_shows_what_the_session_shows() {
    let mut harness = Harness::start();
    let reply = harness.say(agent(), run_of(DRAFT), record(json!({ "text": "x" }))).unwrap();
    let position = reply.into_position().unwrap();
    assert_eq!(position.active, harness.view().active);
    assert_eq!((position.leaf, position.takes_answers, position.text), (None, false, None));
    let runs: Vec<_> = position.items.iter().map(|item| item.run.unwrap()).collect();
    assert_eq!(runs, [CHECKS[0], CHECKS[1], LISTENER]);
}

#[test]
fn a_command_that_several_runs_fit_is_refused() {
    let mut harness = Harness::start();
    let usage = PolicyCommand::ReportUsage(ReportUsage { cost: Micros(0), tokens: 1 });
    let all: [Body; 6] = [
        turn(),
        record(json!({ "a": 1 })),
        RunCommand::SignalCompletion.into(),
        RunCommand::RetryNode.into(),
        call("c-1"),
        usage.into(),
    ];
    for body in all {
        let refusal = harness.say(actor("kim", Role::Operator), None, body.clone()).unwrap_err();
        assert_eq!(refusal.reason, Reason::StateMismatch, "{body:?}");
        assert_eq!(refusal.allowed, ["2", "3", "4", "5"], "{body:?}");
        assert!(refusal.message.contains("run 3 at \"split.legal\""), "{}", refusal.message);
    }
    let refusal = harness.say(agent(), node_of("check"), call("c-1")).unwrap_err();
    assert_eq!((refusal.reason, refusal.allowed.len()), (Reason::StateMismatch, 2));
    let asked = call_of("c-1");
    let explained =
        explain(&harness.rows, TENANT, harness.session, Settings::default(), None, &asked, harness.now);
    assert_eq!(explained.unwrap().unwrap().unwrap_err().reason, Reason::StateMismatch);
}

#[test]
fn an_address_names_a_run_by_its_number_its_state_its_own_name_or_its_work() {
    let mut harness = Harness::start();
    let [work] = harness.work_in(CHECKS[1])[..] else { panic!("no work") };
    let addresses = [
        (run_of(DRAFT), DRAFT),
        (node_of("draft"), DRAFT),
        (node_of("split.money"), CHECKS[1]),
        (work_of(work), CHECKS[1]),
    ];
    for (number, (address, run)) in addresses.into_iter().enumerate() {
        let id = format!("c-{number}");
        harness.say(agent(), address, call(&id)).unwrap();
        harness.say(agent(), None, report(Some(&id))).unwrap();
        assert_eq!(harness.run(run).called, [("bash".to_owned(), true)], "{id}");
    }
    assert!(harness.run(CHECKS[0]).called.is_empty(), "a call is noted for the run that has made it");
    let both = RunAddress { work: Some(work), run: Some(CHECKS[0]), node: None };
    assert_eq!(harness.refused(agent(), Some(both), turn()), Reason::StateMismatch, "all of it must fit");
}

#[test]
fn a_report_by_a_capability_that_several_runs_have_called_is_refused() {
    let mut harness = Harness::start();
    harness.say(agent(), run_of(DRAFT), call("c-1")).unwrap();
    harness.say(agent(), run_of(CHECKS[0]), call("c-2")).unwrap();
    assert_eq!(harness.refused(agent(), None, report(None)), Reason::StateMismatch);
    harness.say(agent(), run_of(CHECKS[0]), report(None)).unwrap();
    assert_eq!(harness.row().calls.len(), 1);
    assert_eq!((harness.run(DRAFT).called.len(), harness.run(CHECKS[0]).called.len()), (0, 1));
    harness.say(agent(), None, report(None)).unwrap();
    assert_eq!(harness.run(DRAFT).called.len(), 1, "what is left is of one run");
}

#[test]
fn a_run_that_waits_for_others_cannot_be_named() {
    let mut harness = Harness::start();
    for body in [turn(), record(json!({ "order": 8 })), call("c-1")] {
        assert_eq!(harness.refused(agent(), run_of(ROOT), body), Reason::StateMismatch);
    }
    assert_eq!(
        harness.refused(agent(), node_of("split"), record(json!({ "order": 8 }))),
        Reason::StateMismatch
    );
}

#[test]
fn a_command_is_about_an_active_run_of_its_own_session() {
    let mut harness = Harness::start();
    let [work] = harness.work_in(CHECKS[0])[..] else { panic!("no work") };
    harness.say(agent(), run_of(DRAFT), turn()).unwrap();
    harness.complete("w-1", CHECKS[0], json!({}));
    for run in [DRAFT, CHECKS[0], RunId(6), RunId(0), RunId(u32::MAX)] {
        assert_eq!(harness.refused(agent(), run_of(run), record(json!({ "a": 1 }))), Reason::StateMismatch);
    }
    assert_eq!(harness.refused(agent(), node_of("draft"), turn()), Reason::StateMismatch);
    for work in [work, OpenId(0), OpenId(u64::MAX)] {
        assert_eq!(harness.refused(agent(), work_of(work), call("c-1")), Reason::LeaseLost);
    }
    assert_eq!(harness.active(), [4, 5]);
}

#[test]
fn a_worker_names_only_runs_whose_work_it_holds() {
    let mut harness = Harness::start();
    let (work, _) = harness.lease("w-1", CHECKS[0]);
    let [other] = harness.work_in(CHECKS[1])[..] else { panic!("no work") };
    let (one, two) = (|| actor("w-1", Role::Worker), || actor("w-2", Role::Worker));
    for address in [work_of(work), run_of(CHECKS[0]), node_of("split.legal")] {
        assert_eq!(harness.refused(two(), address, call("c-1")), Reason::LeaseLost);
    }
    for address in [work_of(other), run_of(CHECKS[1]), run_of(DRAFT), node_of("draft")] {
        assert_eq!(harness.refused(one(), address, call("c-1")), Reason::LeaseLost);
    }
    harness.lease("w-2", CHECKS[1]);
    assert_eq!(harness.refused(one(), work_of(other), call("c-1")), Reason::LeaseLost, "it is another's");
    for (number, address) in [work_of(work), run_of(CHECKS[0])].into_iter().enumerate() {
        let allowed = harness.say(one(), address, call(&format!("w-{number}"))).unwrap();
        let Reply::Authorized(said) = allowed else { panic!("{allowed:?}") };
        assert_eq!(said.effect, CallEffect::Allow);
    }
}

#[test]
fn an_event_is_for_the_only_run_that_listens_to_it() {
    let mut harness = Harness::start();
    let integration = || actor("shop", Role::Integration);
    harness.say(integration(), None, event("paid")).unwrap();
    assert_eq!(harness.outcome(LISTENER), Some(Outcome::Completed));
    assert_eq!(harness.active(), [2, 3, 4]);
    assert_eq!(
        harness.refused(integration(), None, event("paid")),
        Reason::StateMismatch,
        "none listens now"
    );
    harness.say(integration(), run_of(DRAFT), event("paid")).unwrap();
    assert_eq!(harness.row().early.len(), 1, "it is kept for what will listen");
}

#[test]
fn each_child_reads_its_parents_data_and_writes_its_own() {
    let mut harness = Harness::start();
    let seen = |harness: &Harness, run| {
        let [work] = harness.work_in(run)[..] else { panic!("no work") };
        Value::Object(work_view(&harness.rows, TENANT, harness.session, work).unwrap().unwrap().data)
    };
    harness.say(agent(), run_of(DRAFT), record(json!({ "order": 8, "text": "x" }))).unwrap();
    assert_eq!(seen(&harness, CHECKS[1]), json!({ "order": 7 }));
    harness.complete("w-1", CHECKS[0], json!({ "legal": true, "last": "legal" }));
    assert_eq!(Value::Object(harness.view().data), json!({ "order": 7 }), "nothing is joined yet");
    harness.complete("w-1", CHECKS[1], json!({ "money": 5, "last": "money" }));
    harness.say(actor("shop", Role::Integration), None, event("paid")).unwrap();
    assert_eq!(harness.row().status, Status::Waiting);
    assert!(harness.view().active.is_empty(), "one run alone is left");
    harness.say(agent(), None, turn()).unwrap();
    assert_eq!(harness.row().status, Status::Completed);
    let all = json!({ "order": 8, "text": "x", "legal": true, "money": 5, "last": "money" });
    assert_eq!(Value::Object(harness.view().data), all, "in the order of the children, not of their ends");
}

#[test]
fn the_end_of_one_child_ends_no_other() {
    let mut harness = Harness::start();
    let before = harness.row().items.clone();
    harness.say(agent(), run_of(DRAFT), turn()).unwrap();
    assert_eq!(harness.outcome(DRAFT), Some(Outcome::Completed));
    assert_eq!(harness.row().items, before, "what the others have open stays open");
    let root = harness.run(ROOT);
    assert_eq!((root.node, root.slots, root.ending.is_none()), (NodeIx(0), 4, true));
}

#[test]
fn a_child_that_fails_ends_the_others_and_their_parent() {
    let mut harness = Harness::start();
    let (item, fence) = harness.lease("w-1", CHECKS[0]);
    let failure = WorkFailure::Reported { text: "no".into() };
    let fail = FailWork { item, fence, failure, cost: Micros(0), tokens: 0, unknown: false };
    harness.say(actor("w-1", Role::Worker), None, WorkCommand::Fail(fail)).unwrap();
    assert_eq!(
        (harness.outcome(ROOT), harness.outcome(CHECKS[0])),
        (Some(Outcome::Failed), Some(Outcome::Failed))
    );
    for run in [DRAFT, CHECKS[1], LISTENER] {
        assert_eq!(harness.outcome(run), Some(Outcome::Abandoned), "{run:?}");
    }
    assert!(harness.row().items.is_empty());
}

#[test]
fn cancelling_cancels_every_run() {
    let mut harness = Harness::start();
    let cancel = SessionCommand::Cancel(Cancel::written("enough"));
    harness.say(actor("kim", Role::Operator), None, cancel).unwrap();
    assert_eq!(harness.outcome(ROOT), Some(Outcome::Cancelled));
    for run in [DRAFT, CHECKS[0], CHECKS[1], LISTENER] {
        assert_eq!(harness.outcome(run), Some(Outcome::Abandoned), "{run:?}");
    }
    let session = harness.row();
    assert!(session.items.is_empty() && session.status.ended());
}

#[test]
fn each_run_goes_on_with_what_was_settled_about_it_during_a_pause() {
    let mut harness = Harness::start();
    let kim = || actor("kim", Role::Operator);
    harness.say(kim(), None, pause()).unwrap();
    for run in CHECKS {
        harness.complete("w-1", run, json!({ "by": run.0 }));
        assert!(harness.run(run).due.is_some(), "{run:?}");
    }
    assert_eq!(harness.active(), [2, 3, 4, 5], "nothing moves while the session is paused");
    assert_eq!(harness.refused(agent(), run_of(DRAFT), turn()), Reason::StateMismatch);
    harness.say(kim(), None, resume()).unwrap();
    assert_eq!(harness.active(), [2, 5]);
    for run in CHECKS {
        assert_eq!((harness.outcome(run), harness.run(run).due.is_none()), (Some(Outcome::Completed), true));
    }
}

#[test]
fn what_was_settled_about_a_run_counts_no_more_if_an_earlier_one_has_ended_it() {
    let mut harness = Harness::start();
    let kim = || actor("kim", Role::Operator);
    harness.say(kim(), None, pause()).unwrap();
    let (item, fence) = harness.lease("w-1", CHECKS[0]);
    let failure = WorkFailure::Reported { text: "no".into() };
    let fail = FailWork { item, fence, failure, cost: Micros(0), tokens: 0, unknown: false };
    harness.say(actor("w-1", Role::Worker), None, WorkCommand::Fail(fail)).unwrap();
    harness.complete("w-1", CHECKS[1], json!({}));
    harness.say(kim(), None, resume()).unwrap();
    assert_eq!(harness.outcome(CHECKS[1]), Some(Outcome::Abandoned), "its sibling has failed before it");
    assert_eq!(harness.row().status, Status::Failed);
}

#[test]
fn a_command_with_an_address_keeps_it_on_its_way_to_another_server() {
    let address = RunAddress { work: Some(OpenId(7)), run: Some(DRAFT), node: Some("draft".into()) };
    let plain = Command::of_server(TENANT, Scope::Session(SessionId([7; 16])), turn());
    let named = Command { address: Some(address), ..plain.clone() };
    for command in [plain, named] {
        assert_eq!(Command::decode(&command.encode()).unwrap(), command);
    }
}

#[test]
fn a_refusal_names_some_of_very_many_runs() {
    let mut machine = machine();
    let child = |at: usize| FixedChild { name: format!("c-{at}"), node: NodeIx(1) };
    let kids = Kids::Fixed((0..100).map(child).collect());
    let spawn = Spawn { kids, input: Vec::new(), result: Gives::Update };
    machine.nodes[0].acts = vec![Act { kind: ActKind::Spawn(spawn), then: Vec::new() }];
    let mut harness = Harness { rows: Rows::default(), session: SessionId([9; 16]), now: Time(9) };
    let machine = Arc::new(machine);
    let start = start_of("p", 1, machine.digest(), "agent");
    let install = CatalogueCommand::InstallMachine(InstallMachine { machine });
    harness.submit(Command::of_server(TENANT, Scope::Shard, install.into())).unwrap();
    harness.say(agent(), None, SessionCommand::Start(start)).unwrap();
    let refusal = harness.say(agent(), None, turn()).unwrap_err();
    assert_eq!(refusal.allowed.len(), 10);
    assert!(refusal.message.contains(" and more"), "{}", refusal.message);
    assert_eq!((harness.view().active.count, harness.view().active.runs.len()), (100, 100));
    assert!(harness.rows.session_at(&Key::session(TENANT, harness.session)).unwrap().is_some());
}
