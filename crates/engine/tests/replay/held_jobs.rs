//! What a server has done outside counts though a person is asked meanwhile whether the state may be left, and is not done
//! again because of that.

use serde_json::{Map, Value, json};
use std::sync::Arc;
use switchward_engine::{decide, evolve};
use switchward_formats::compile_file;
use switchward_machine::{Decision, Machine, Micros, OpenId, SessionId, TenantId, Time};
use switchward_state::approval::{ApprovalCommand, DecideGate};
use switchward_state::catalogue::{CatalogueCommand, InstallMachine, Role, Tenancy};
use switchward_state::limits::PENDING_INPUTS_MAX;
use switchward_state::run::{PendingFact, RecordEvent, ResultProblem, Run, RunCommand, RunEvent};
use switchward_state::seal::SEAL_NONCE_BYTES;
use switchward_state::session::{Session, SessionCommand, Start, Sweep};
use switchward_state::work::{
    CompleteWork, ExtendLease, FailWork, LeaseWork, Owed, ReleaseWork, SERVER_WORKER, WorkCommand, WorkEvent,
    WorkFailure,
};
use switchward_state::{
    Actor, Body, Command, Event, ItemKind, Key, OpenItem, Reason, Rejection, Reply, Row, Scope, View,
};
use switchward_testkit::{Rows, ring, start_of};

const TENANT: TenantId = TenantId(1);
const NOW: Time = Time(1_782_000_000_000);
const LEASE_MS: u64 = 90_000;
/// More than half of what the data of a run may have.
const LARGE_BYTES: usize = 600 * 1024;

/// A state that makes a request, and that a person is asked about as soon as an event has come.
fn source(into: &str, on_error: &str) -> String {
    format!(
        r#"
name: p
states:
  - name: push
    type: logic
    require_human_approval: true
    approval_contacts: [lead@example.com]
    {on_error}
    operations:
      - {{type: http_request, config: {{method: POST, url: "https://orders.example/", body: {{}}{into}}}}}
  - {{name: fine, type: conversation}}
  - {{name: sorry, type: conversation}}
transitions:
  - {{from: push, to: fine, guards: [{{type: external_event, config: {{event_key: paid}}}}]}}
  - {{from: push, port: error, to: sorry}}
"#
    )
}

const PORT: &str = "on_error: port";
const INTO: &str = ", into: answer";

/// A session of one definition, in which a person is asked while something else is open.
pub(crate) struct Held {
    /// The rows before the first decision.
    base: Rows,
    rows: Rows,
    log: Vec<switchward_state::Decision>,
    machine: Arc<Machine>,
    session: SessionId,
    item: OpenId,
    fence: u64,
    now: Time,
}

impl Held {
    /// Starts the session.
    pub(crate) fn start(source: &str) -> Self {
        let compiled = compile_file("p.yaml", source.as_bytes(), None);
        let definition = compiled.definition.unwrap_or_else(|| panic!("{:?}", compiled.findings));
        let key = switchward_state::approval::MailKey([5; 32]);
        let tenancy = Tenancy::first(key.sealed(ring(), TENANT, [0; SEAL_NONCE_BYTES]));
        let mut base = Rows::default();
        base.apply([(Key::tenancy(TENANT), Some(Arc::new(Row::Tenancy(tenancy))))].into());
        let mut held = Self {
            rows: base.clone(),
            base,
            log: Vec::new(),
            machine: Arc::new(definition.machine),
            session: SessionId::from_key(TENANT, "s"),
            item: OpenId(0),
            fence: 0,
            now: NOW,
        };
        let machine = Arc::clone(&held.machine);
        let install = CatalogueCommand::InstallMachine(InstallMachine { machine });
        held.submit_to(Scope::Shard, Actor::server(), Body::Catalogue(install)).0.unwrap();
        let start = start_of("p", 1, held.machine.digest(), "agent");
        let start = Start { key: Some("s".into()), ..start };
        held.submit(Body::Session(SessionCommand::Start(start))).0.unwrap();
        held
    }

    /// The same; its request is leased and not answered when a person is asked.
    fn begin(source: &str, worker: &str) -> Self {
        let mut held = Self::start(source);
        held.item = held.work().next().unwrap();
        held.fence = held.lease(worker).unwrap();
        held.event(Map::new()).unwrap();
        assert_eq!((held.at(), held.session().gates().count()), ("push", 1), "a person is asked");
        held
    }

    pub(crate) fn submit(&mut self, body: Body) -> (Result<Reply, Rejection>, Vec<Event>) {
        self.submit_to(Scope::Session(self.session), Actor::server(), body)
    }

    fn submit_to(
        &mut self,
        scope: Scope,
        actor: Actor,
        body: Body,
    ) -> (Result<Reply, Rejection>, Vec<Event>) {
        let command = Command { actor, ..Command::of_server(TENANT, scope, body) };
        let mut decided = decide(&[command], &self.rows, self.now).unwrap();
        let mut events = Vec::new();
        if let Some(decision) = decided.decision {
            events = decision.turns.iter().flat_map(|turn| turn.events.clone()).collect();
            self.rows.apply(evolve(&decision, &self.rows).unwrap());
            self.log.push(decision);
        }
        (decided.answers.pop().unwrap(), events)
    }

    /// Leases the work; returns the number of the lease.
    fn lease(&mut self, worker: &str) -> Result<u64, Reason> {
        let lease = LeaseWork { item: self.item, worker: worker.to_owned(), lease_ms: LEASE_MS };
        match self.submit(Body::Work(WorkCommand::Lease(lease))).0 {
            Ok(Reply::Leased { fence, .. }) => Ok(fence),
            Ok(other) => panic!("{other:?} is no lease"),
            Err(no) => Err(no.reason),
        }
    }

    /// The event comes that the definition's exits ask for.
    pub(crate) fn event(&mut self, data: Map<String, Value>) -> Result<Reply, Rejection> {
        let event = RecordEvent {
            key: "paid".into(),
            data,
            state: None,
            model: false,
            token: None,
            webhook: None,
            once: None,
        };
        self.submit(Body::Run(RunCommand::RecordEvent(event))).0
    }

    /// A time passes, and what has fallen due of this kind is looked at.
    pub(crate) fn later(&mut self, ms: u64, kind: ItemKind) -> Vec<Event> {
        self.now = self.now.after_ms(ms);
        let mut events = Vec::new();
        for item in self.open(kind) {
            let sweep = Sweep { key: Key::item(TENANT, self.session, item) };
            let (reply, more) = self.submit(Body::Session(SessionCommand::Sweep(sweep)));
            reply.unwrap();
            events.extend(more);
        }
        events
    }

    fn complete(&mut self, result: Value) -> (Result<Reply, Rejection>, Vec<Event>) {
        let (item, fence, cost, tokens) = (self.item, self.fence, Micros(0), 0);
        self.submit(Body::Work(WorkCommand::Complete(CompleteWork {
            item,
            fence,
            result,
            cost,
            tokens,
            next: None,
        })))
    }

    fn fail(&mut self) -> (Result<Reply, Rejection>, Vec<Event>) {
        let (item, fence, cost, tokens) = (self.item, self.fence, Micros(0), 0);
        let fail = FailWork { item, fence, failure: WorkFailure::TooLarge, cost, tokens, unknown: true };
        self.submit(Body::Work(WorkCommand::Fail(fail)))
    }

    /// Each command that extends or ends the lease.
    fn about_lease(&self) -> [WorkCommand; 4] {
        let (item, fence, cost, tokens) = (self.item, self.fence, Micros(0), 0);
        let (result, failure) = (json!({ "status": 204, "body": null }), WorkFailure::TooLarge);
        [
            WorkCommand::Extend(ExtendLease { item, fence, lease_ms: LEASE_MS }),
            WorkCommand::Release(ReleaseWork { item, fence }),
            WorkCommand::Fail(FailWork { item, fence, failure, cost, tokens, unknown: false }),
            WorkCommand::Complete(CompleteWork { item, fence, result, cost, tokens, next: None }),
        ]
    }

    /// None of them is accepted from this caller, and nothing changes.
    fn lost_for(&mut self, subject: &str, role: Role) {
        for command in self.about_lease() {
            let caller = Actor { subject: subject.to_owned(), role };
            let (reply, events) = self.submit_to(Scope::Session(self.session), caller, Body::Work(command));
            assert_eq!(reply.unwrap_err().reason, Reason::LeaseLost, "{subject}");
            assert!(events.is_empty(), "{events:?}");
        }
    }

    /// The person decides the open gate.
    pub(crate) fn decide(&mut self, decision: Decision) -> Vec<Event> {
        let gate = self.session().gates().next().unwrap();
        let comment = String::new();
        let decide = DecideGate { gate, decision, comment, shown: None, limits: None, proof: None };
        let lead = Actor { subject: "lead@example.com".into(), role: Role::Approver };
        let body = Body::Approval(ApprovalCommand::DecideGate(decide));
        let (reply, events) = self.submit_to(Scope::Session(self.session), lead, body);
        reply.unwrap();
        events
    }

    fn row(&self, key: &Key) -> Row {
        Row::clone(&self.rows.row(key).unwrap().unwrap())
    }

    pub(crate) fn session(&self) -> Session {
        let Row::Session(session) = self.row(&Key::session(TENANT, self.session)) else {
            panic!("no session")
        };
        session
    }

    /// The session's run.
    pub(crate) fn run(&self) -> Run {
        let key = Key::run(TENANT, self.session, self.session().root);
        let Row::Run(run) = self.row(&key) else { panic!("no run") };
        run
    }

    /// The name of the state in which the session stands.
    pub(crate) fn at(&self) -> &str {
        &self.machine.node(self.run().node).unwrap().name
    }

    /// What is open of this kind.
    pub(crate) fn open(&self, kind: ItemKind) -> Vec<OpenId> {
        let items = self.session().items;
        items.into_iter().filter(|listed| listed.kind == kind).map(|listed| listed.item).collect()
    }

    /// The open work.
    fn work(&self) -> impl Iterator<Item = OpenId> + use<> {
        self.open(ItemKind::Work).into_iter()
    }

    fn owed(&self, item: OpenId) -> Owed {
        let Row::OpenItem(OpenItem::Work(work)) = self.row(&Key::item(TENANT, self.session, item)) else {
            panic!("{item:?} is no work")
        };
        work.body.owed
    }

    /// The run is still held, the outcome waits, and nobody does the work again.
    fn waits(&mut self, events: &[Event]) {
        let held = |event: &Event| matches!(event, Event::Run(RunEvent::Pending(PendingFact::Held { .. })));
        assert_eq!(events.iter().filter(|event| held(event)).count(), 1, "{events:?}");
        assert_eq!((self.at(), self.work().count()), ("push", 0));
        assert_eq!(self.lease(SERVER_WORKER), Err(Reason::LeaseLost));
    }

    /// The stored decisions lead to the same rows, and these are read back as they are.
    pub(crate) fn replayed(&self) {
        let mut rows = self.base.clone();
        for decision in &self.log {
            let stored = switchward_state::Decision::decode(&decision.encode()).unwrap();
            let changes = evolve(&stored, &rows).unwrap();
            rows.apply(changes);
        }
        self.rows.same(&rows, "a replay").unwrap();
        self.rows.same(&self.rows.reopened().unwrap(), "read again").unwrap();
    }
}

/// How an outcome is reported.
type Report = fn(&mut Held) -> (Result<Reply, Rejection>, Vec<Event>);

#[test]
fn a_result_without_data_waits_and_ends_the_state_that_is_not_left() {
    let mut held = Held::begin(&source("", PORT), SERVER_WORKER);
    let (reply, events) = held.complete(json!({ "status": 204, "body": null }));
    assert!(matches!(reply, Ok(Reply::Worked { wrong: None, .. })), "{reply:?}");
    held.waits(&events);
    held.decide(Decision::Refuse);
    assert_eq!((held.at(), held.work().count()), ("push", 0), "the work is done");
    assert_eq!(held.session().gates().count(), 1, "the state has ended, and a person is asked again");
    held.decide(Decision::Approve);
    assert_eq!(held.at(), "fine");
    held.replayed();
}

#[test]
fn a_failure_waits_and_counts_only_if_the_state_is_not_left() {
    let reports: [Report; 2] = [Held::fail, |held| held.complete(json!({ "status": 503, "body": null }))];
    for report in reports {
        for (decision, then) in [(Decision::Refuse, "sorry"), (Decision::Approve, "fine")] {
            let mut held = Held::begin(&source("", PORT), SERVER_WORKER);
            let (reply, events) = report(&mut held);
            assert!(reply.is_ok(), "{reply:?}");
            let wrong = |event: &Event| matches!(event, Event::Work(WorkEvent::Done { wrong: Some(_), .. }));
            assert!(events.iter().any(wrong), "{events:?}");
            held.waits(&events);
            held.decide(decision);
            assert_eq!((held.at(), held.work().count()), (then, 0));
            held.replayed();
        }
    }
}

#[test]
fn the_next_attempt_after_one_that_waited_has_its_name() {
    let retried = "on_error: retry_then_port\n    retry_policy: {max_attempts: 2}";
    let mut held = Held::begin(&source("", retried), SERVER_WORKER);
    let first = held.owed(held.item).known_as(held.item);
    let (reply, events) = held.fail();
    reply.unwrap();
    held.waits(&events);
    held.decide(Decision::Refuse);
    let next = held.work().next().unwrap();
    assert_ne!(next, held.item);
    assert_eq!(held.owed(next).known_as(next), first, "nobody knows whether the first was done");
    held.replayed();
}

#[test]
fn a_result_is_not_refused_because_much_waits_already() {
    let mut held = Held::begin(&source(INTO, PORT), SERVER_WORKER);
    for _ in 0..PENDING_INPUTS_MAX {
        held.event(Map::new()).unwrap();
    }
    assert_eq!(held.event(Map::new()).unwrap_err().reason, Reason::QuotaExceeded);
    let (reply, events) = held.complete(json!({ "status": 200, "body": "done" }));
    assert!(matches!(reply, Ok(Reply::Worked { wrong: None, .. })), "{reply:?}");
    held.waits(&events);
    let events = held.decide(Decision::Approve);
    let wrote = |event: &Event| matches!(event, Event::Run(RunEvent::Wrote { key, .. }) if key == "answer");
    assert!(events.iter().any(wrote), "{events:?}");
    assert_eq!(held.at(), "fine");
    held.replayed();
}

#[test]
fn a_result_that_does_not_fit_behind_what_waits_has_failed() {
    let large = || Value::String("x".repeat(LARGE_BYTES));
    let mut held = Held::begin(&source(INTO, PORT), SERVER_WORKER);
    held.event([("large".to_owned(), large())].into_iter().collect()).unwrap();
    let (reply, events) = held.complete(json!({ "status": 200, "body": large() }));
    let misfit = matches!(reply, Ok(Reply::Worked { wrong: Some(ResultProblem::Write(_)), .. }));
    assert!(misfit, "{reply:?}");
    held.waits(&events);
    held.decide(Decision::Refuse);
    assert_eq!(held.at(), "sorry");
    held.replayed();
}

#[test]
fn a_worker_waits_with_what_brings_no_data() {
    let reports: [Report; 3] = [
        Held::fail,
        |held| held.complete(json!({ "status": 503, "body": null })),
        |held| held.complete(json!({ "status": 204, "body": null })),
    ];
    for report in reports {
        let mut held = Held::begin(&source("", PORT), "w");
        assert_eq!(report(&mut held).0.unwrap_err().reason, Reason::ApprovalPending);
        assert_eq!(held.work().next(), Some(held.item), "the worker keeps its lease");
        held.decide(Decision::Refuse);
        assert!(report(&mut held).0.is_ok());
        assert_eq!(held.work().count(), 0);
        held.replayed();
    }
}

#[test]
fn only_servers_have_their_name_and_end_what_they_have_leased() {
    let mut held = Held::begin(&source("", PORT), SERVER_WORKER);
    let worker = SERVER_WORKER.to_owned();
    let lease = LeaseWork { item: held.item, worker, lease_ms: LEASE_MS };
    // A key may have the subject of the servers, and is none of theirs.
    let servers = Actor::server().subject;
    for subject in ["w", &servers] {
        held.lost_for(subject, Role::Worker);
        let actor = Actor { subject: subject.to_owned(), role: Role::Worker };
        let body = Body::Work(WorkCommand::Lease(lease.clone()));
        let (reply, events) = held.submit_to(Scope::Session(held.session), actor, body);
        assert_eq!(reply.unwrap_err().reason, Reason::FieldInvalid);
        assert!(events.is_empty(), "{events:?}");
    }
    let (reply, events) = held.complete(json!({ "status": 204, "body": null }));
    reply.unwrap();
    held.waits(&events);
}

#[test]
fn a_lease_is_extended_and_ended_only_for_the_subject_that_took_it() {
    let mut held = Held::begin(&source("", PORT), "w");
    let (item, fence) = (held.item, held.fence);
    held.submit(Body::Work(WorkCommand::Release(ReleaseWork { item, fence }))).0.unwrap();
    let kim = |role| Actor { subject: "kim".into(), role };
    let lease = LeaseWork { item, worker: "w".into(), lease_ms: LEASE_MS };
    let body = Body::Work(WorkCommand::Lease(lease));
    let (reply, _) = held.submit_to(Scope::Session(held.session), kim(Role::Worker), body);
    let Ok(Reply::Leased { fence, .. }) = reply else { panic!("{reply:?}") };
    held.fence = fence;
    // What the worker calls itself does not count, and neither does what else a key may do.
    for (subject, role) in [("w", Role::Worker), ("lee", Role::Admin), ("server", Role::Server)] {
        held.lost_for(subject, role);
    }
    held.decide(Decision::Refuse);
    let [extend, _, _, complete] = held.about_lease();
    for command in [extend, complete] {
        let body = Body::Work(command);
        held.submit_to(Scope::Session(held.session), kim(Role::Admin), body).0.unwrap();
    }
    assert_eq!(held.work().count(), 0, "two keys of one subject are one worker");
    held.replayed();
}
