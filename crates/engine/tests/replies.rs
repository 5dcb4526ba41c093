//! Replies that a session remembers: by their age, never by their number or length.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use switchward_engine::{answered, decide, encode_loaded, evolve};
use switchward_formats::compile_file;
use switchward_machine::{Digest, Micros, SessionId, TenantId, Time};
use switchward_state::catalogue::{
    ActivateVersion, CatalogueCommand, Deploy, InstallMachine, Role, Settings,
};
use switchward_state::delivery::{AckEffect, DeliveryCommand};
use switchward_state::limits::{
    REPLIES_BYTES_MAX, REPLIES_BYTES_RESERVED, REPLIES_FORGOTTEN_MAX, REPLIES_KEPT_MS, REPLIES_LISTED_MAX,
    REPLIES_MAX, REPLIES_RESERVED, REQUESTS_KEPT_MS,
};
use switchward_state::policy::{PolicyCommand, ReportUsage};
use switchward_state::run::ResultProblem;
use switchward_state::session::{Cancel, Pause, Resume, Session, SessionCommand, Start, Sweep};
use switchward_state::{
    Actor, Body, Command, Decision, IndexKey, Key, Kind, Level, Reason, Rejection, Reply, RequestId, Row,
    Scope, TurnRecord, View,
};
use switchward_testkit::{Rows, start_of};

const TENANT: TenantId = TenantId(1);
const SOURCE: &str = r"
name: p
initial: a
states: {a: {question: q, answers: {y: {next: null}}}}
";
/// What a program that begins something leaves for others.
const UNRESERVED: usize = REPLIES_MAX - 2 * REPLIES_RESERVED;
/// The same of the bytes.
const UNRESERVED_BYTES: u64 = REPLIES_BYTES_MAX - 2 * REPLIES_BYTES_RESERVED;
/// A long reply, bytes.
const LONG_BYTES: usize = 10_000;

struct Harness {
    rows: Rows,
    session: SessionId,
    now: Time,
    /// Who sends the commands.
    role: Role,
    /// Rows that the last command changed.
    changed: usize,
}

fn report() -> Body {
    Body::Policy(PolicyCommand::ReportUsage(ReportUsage { cost: Micros(0), tokens: 1 }))
}

fn request(id: &str) -> RequestId {
    RequestId { id: id.to_owned(), body: Digest::of(b"the request") }
}

/// The tokens that a session had used after a report.
fn tokens(reply: Result<Reply, Rejection>) -> u64 {
    match reply {
        Ok(Reply::Metered { meters, .. }) => meters.tokens,
        other => panic!("a report got {other:?}"),
    }
}

impl Harness {
    fn start() -> Self {
        let definition = compile_file("p.yaml", SOURCE.as_bytes(), None).definition.unwrap();
        let machine = Arc::new(definition.machine);
        let session = SessionId::from_key(TENANT, "s");
        let mut harness = Self {
            rows: Rows::default(),
            session,
            now: Time(1_782_000_000_000),
            role: Role::Admin,
            changed: 0,
        };
        let start = Start { key: Some("s".into()), ..start_of("p", 1, machine.digest(), "agent") };
        let install = Body::Catalogue(CatalogueCommand::InstallMachine(InstallMachine { machine }));
        harness.submit(Scope::Shard, None, install).unwrap();
        harness.of_session(None, Body::Session(SessionCommand::Start(start))).unwrap();
        harness
    }

    /// Executes a command; its decision must give the same rows when it is replayed.
    fn submit(&mut self, scope: Scope, id: Option<&str>, body: Body) -> Result<Reply, Rejection> {
        let command = Command {
            tenant: TENANT,
            scope,
            request: id.map(request),
            expected_sequence: None,
            actor: Actor { subject: "kim".into(), role: self.role },
            settings: Settings::default(),
            trace: None,
            address: None,
            body,
        };
        let mut decided = decide(&[command], &self.rows, self.now).unwrap();
        self.changed = decided.changes.len();
        if let Some(decision) = decided.decision {
            assert_eq!(evolve(&decision, &self.rows).unwrap(), decided.changes);
            self.rows.apply(decided.changes);
        }
        decided.answers.pop().unwrap()
    }

    fn of_session(&mut self, id: Option<&str>, body: Body) -> Result<Reply, Rejection> {
        self.submit(Scope::Session(self.session), id, body)
    }

    fn report(&mut self, number: usize) -> Result<Reply, Rejection> {
        self.by(Role::Agent, &format!("report-{number}"), report())
    }

    fn by(&mut self, role: Role, id: &str, body: Body) -> Result<Reply, Rejection> {
        let before = std::mem::replace(&mut self.role, role);
        let reply = self.of_session(Some(id), body);
        self.role = before;
        reply
    }

    /// An agent's command that ends nothing, as none is under way, and changes nothing.
    fn acknowledge(&mut self, id: &str) -> Result<Reply, Rejection> {
        let body = Body::Delivery(DeliveryCommand::AckEffect(AckEffect { number: 9_999 }));
        self.by(Role::Agent, id, body)
    }

    /// Has the session remember a long reply to a command that changed nothing.
    fn remember_long(&mut self, number: usize) {
        let wrong = Some(ResultProblem::UnknownField { field: "x".repeat(LONG_BYTES) });
        let reply = Reply::Worked { session: self.session, sequence: 1, wrong };
        let turn = TurnRecord {
            tenant: TENANT,
            scope: Scope::Session(self.session),
            by: Actor { subject: "kim".into(), role: Role::Agent },
            request: Some((format!("long-{number}"), Digest::of(b"the request"))),
            reply,
            events: Vec::new(),
        };
        let changes = evolve(&Decision::new(Level::FIRST, self.now, vec![turn]), &self.rows).unwrap();
        self.rows.apply(changes);
    }

    fn knows(&self, number: usize) -> bool {
        let scope = Scope::Session(self.session);
        answered(&self.rows, TENANT, &scope, &request(&format!("report-{number}"))).unwrap().is_some()
    }

    fn session(&self) -> Session {
        match self.rows.row(&Key::session(TENANT, self.session)).unwrap().as_deref() {
            Some(Row::Session(session)) => session.clone(),
            other => panic!("{other:?} is no session"),
        }
    }

    /// How many rows of replies the session has.
    fn stored(&self) -> usize {
        let mut count = 0;
        let prefix = Key::prefix_of_session(TENANT, self.session, Kind::Reply);
        self.rows
            .scan(&prefix, None, &mut |_, _| {
                count += 1;
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
        count
    }
}

#[test]
fn rows_that_are_sent_with_a_reply_do_not_grow_with_what_the_session_remembers() {
    let mut harness = Harness::start();
    let mut sent = |number: usize| {
        let resume = Body::Session(SessionCommand::Resume(Resume { comment: String::new() }));
        let mut paused = harness.of_session(None, pause()).unwrap();
        harness.of_session(None, resume).unwrap();
        for number in number..number + REPLIES_LISTED_MAX {
            harness.report(number).unwrap();
        }
        encode_loaded(&paused.take_loaded()).unwrap()
    };
    let (first, later) = (sent(0), sent(REPLIES_LISTED_MAX));
    assert_eq!(first, later, "only what is shown of it is sent");
}

#[test]
fn many_replies_within_seconds_are_kept_and_further_requests_are_refused() {
    let mut harness = Harness::start();
    for number in 0..UNRESERVED + 100 {
        harness.now = harness.now.after_ms(1);
        let reply = harness.report(number);
        if number < UNRESERVED {
            assert_eq!(tokens(reply), u64::try_from(number).unwrap() + 1);
            assert!(harness.changed <= 6, "{} rows were changed", harness.changed);
        } else {
            let refusal = reply.unwrap_err();
            assert_eq!((refusal.reason, harness.changed), (Reason::QuotaExceeded, 0));
            let waits = refusal.retry_after_ms.unwrap();
            let took = u64::try_from(UNRESERVED + 100).unwrap();
            assert!((REPLIES_KEPT_MS - took..REPLIES_KEPT_MS).contains(&waits), "{waits}");
        }
    }
    for number in [0, 1, 2_000, UNRESERVED - 1] {
        assert_eq!(tokens(harness.report(number)), u64::try_from(number).unwrap() + 1, "as it was then");
        assert_eq!(harness.changed, 0);
    }
    let session = harness.session();
    assert_eq!(session.replies.listed().len(), REPLIES_LISTED_MAX, "the session's row stays small");
    assert_eq!(harness.stored(), UNRESERVED - REPLIES_LISTED_MAX);
    harness.rows.indexed().unwrap();

    // Without an id nothing is remembered, so nothing is refused; and what ends something has a reserve.
    let before = harness.session().meters.tokens;
    assert_eq!(tokens(harness.of_session(None, report())), before + 1);
    let cancel = Body::Session(SessionCommand::Cancel(Cancel::written("")));
    harness.of_session(Some("cancel"), cancel).unwrap();
    harness.rows.indexed().unwrap();
}

fn reason(outcome: &Result<Reply, Rejection>) -> Reason {
    outcome.as_ref().unwrap_err().reason
}

fn pause() -> Body {
    Body::Session(SessionCommand::Pause(Pause { comment: String::new() }))
}

#[test]
fn an_agent_that_uses_up_all_it_can_stops_neither_approvers_nor_admins() {
    let mut harness = Harness::start();
    for number in 0..UNRESERVED {
        tokens(harness.report(number));
    }
    assert_eq!(reason(&harness.report(UNRESERVED)), Reason::QuotaExceeded);
    // What ends something has a reserve, of which an agent leaves another one.
    for number in 0..REPLIES_RESERVED {
        harness.acknowledge(&format!("end-{number}")).unwrap();
    }
    assert_eq!(reason(&harness.acknowledge("one more")), Reason::QuotaExceeded);
    assert_eq!(harness.session().replies.count(), REPLIES_MAX - REPLIES_RESERVED);
    harness.by(Role::Approver, "approver", pause()).unwrap();
    let resume = Body::Session(SessionCommand::Resume(Resume { comment: String::new() }));
    harness.by(Role::Admin, "admin", resume).unwrap();
    harness.rows.indexed().unwrap();
}

#[test]
fn long_replies_are_bounded_by_their_bytes_which_count_for_the_tenant() {
    let mut harness = Harness::start();
    let mut given = 0;
    while harness.session().replies.bytes() < UNRESERVED_BYTES {
        tokens(harness.report(given));
        harness.remember_long(given);
        given += 1;
        assert!(given < UNRESERVED, "the bytes are counted");
    }
    assert!(given * LONG_BYTES <= usize::try_from(UNRESERVED_BYTES).unwrap());
    assert_eq!(reason(&harness.report(given)), Reason::QuotaExceeded);
    assert!(harness.knows(0) && harness.knows(given - 1), "none is forgotten early");
    harness.rows.indexed().unwrap();

    harness.acknowledge("the reserve").unwrap();
    while harness.session().replies.bytes() < REPLIES_BYTES_MAX - REPLIES_BYTES_RESERVED {
        harness.remember_long(given);
        given += 1;
    }
    assert_eq!(reason(&harness.acknowledge("one more")), Reason::QuotaExceeded);
    harness.by(Role::Admin, "stop", pause()).unwrap();
    harness
        .of_session(Some("go"), Body::Session(SessionCommand::Resume(Resume { comment: String::new() })))
        .unwrap();

    harness.now = harness.now.after_ms(REPLIES_KEPT_MS);
    tokens(harness.report(given));
    let most = UNRESERVED_BYTES + u64::try_from(LONG_BYTES).unwrap();
    assert!(harness.session().replies.bytes() < most, "enough of them are forgotten at once");
    harness.rows.indexed().unwrap();
}

#[test]
fn replies_are_forgotten_after_their_time_a_few_with_each_command() {
    let mut harness = Harness::start();
    for number in 0..100 {
        tokens(harness.report(number));
    }
    harness.now = harness.now.after_ms(REPLIES_KEPT_MS - 1);
    tokens(harness.report(100));
    assert!(harness.knows(0), "a millisecond is left");
    harness.now = harness.now.after_ms(1);
    for number in 101..=150 {
        tokens(harness.report(number));
        let gone = (number - 100) * REPLIES_FORGOTTEN_MAX;
        assert!(!harness.knows(gone - 1) && (gone >= 100 || harness.knows(gone)), "{number}");
        harness.rows.indexed().unwrap();
        harness.rows.same(&harness.rows.reopened().unwrap(), "read again").unwrap();
    }
    let used = harness.session().meters.tokens;
    assert_eq!(tokens(harness.report(7)), used + 1, "a forgotten request is a new one");
    assert_eq!(tokens(harness.report(100)), 101, "the others are answered as they were");
}

#[test]
fn a_session_that_is_full_takes_requests_again_when_the_oldest_are_old_enough() {
    let mut harness = Harness::start();
    for number in 0..UNRESERVED {
        tokens(harness.report(number));
    }
    harness.now = harness.now.after_ms(REPLIES_KEPT_MS - 1);
    let waits = harness.report(UNRESERVED).unwrap_err().retry_after_ms;
    assert_eq!(waits, Some(1));
    harness.now = harness.now.after_ms(1);
    for number in UNRESERVED..UNRESERVED + 500 {
        tokens(harness.report(number));
    }
    assert_eq!(harness.session().replies.count(), UNRESERVED - 500, "two go with each that comes");
    harness.rows.indexed().unwrap();
}

#[test]
fn after_the_end_all_replies_are_forgotten_a_day_later() {
    let mut harness = Harness::start();
    for number in 0..1_000 {
        tokens(harness.report(number));
    }
    let cancel = Body::Session(SessionCommand::Cancel(Cancel::written("")));
    harness.of_session(Some("cancel"), cancel).unwrap();
    harness.now = harness.now.after_ms(REQUESTS_KEPT_MS - 1);
    assert!(harness.knows(0) && harness.knows(999));
    let mut sweeps = 0;
    loop {
        harness.now = harness.now.after_ms(1);
        let mut due = None;
        harness
            .rows
            .scan(&IndexKey::due(), None, &mut |entry, _| {
                due = IndexKey::due_of(entry);
                std::ops::ControlFlow::Break(())
            })
            .unwrap();
        let Some(due) = due.filter(|due| due.at <= harness.now) else { break };
        let scope = due.scope();
        harness.submit(scope, None, Body::Session(SessionCommand::Sweep(Sweep { key: due.key }))).unwrap();
        harness.rows.indexed().unwrap();
        sweeps += 1;
    }
    assert!(sweeps > 1, "no step forgets all of them");
    assert!(harness.session().replies.is_empty());
    assert_eq!(harness.stored(), 0);
}

#[test]
fn a_command_that_changes_nothing_is_answered_again_as_it_was() {
    let mut harness = Harness::start();
    let deploy = |question: &str| {
        let source = SOURCE.replace("question: q", &format!("question: {question}"));
        let definition = compile_file("p.yaml", source.as_bytes(), None).definition.unwrap();
        Body::Catalogue(CatalogueCommand::Deploy(Deploy {
            name: "p".into(),
            format: "checkpoint".into(),
            files: Vec::new(),
            source: definition.source,
            machine: Arc::new(definition.machine),
            activate: true,
            etag: String::new(),
            findings: Vec::new(),
        }))
    };
    let activate = |version| {
        let (name, etag) = ("p".into(), String::new());
        Body::Catalogue(CatalogueCommand::ActivateVersion(ActivateVersion { name, version, etag }))
    };
    harness.submit(Scope::Catalogue, None, deploy("one")).unwrap();
    harness.submit(Scope::Catalogue, None, deploy("two")).unwrap();
    let first = harness.submit(Scope::Catalogue, Some("active"), activate(2)).unwrap();
    harness.submit(Scope::Catalogue, Some("other"), activate(1)).unwrap();
    assert_eq!(harness.submit(Scope::Catalogue, Some("active"), activate(2)), Ok(first));
    assert_eq!(harness.changed, 0);
    let now = harness.submit(Scope::Catalogue, None, activate(1)).unwrap();
    assert!(matches!(now, Reply::Definition(row) if row.active == Some(1)));
    assert_eq!(harness.changed, 0, "without an id nothing is written");
}

#[test]
fn replies_of_a_session_outlast_its_pauses() {
    let mut harness = Harness::start();
    let resume = || Body::Session(SessionCommand::Resume(Resume { comment: String::new() }));
    let paused = harness.of_session(Some("pause"), pause()).unwrap();
    harness.of_session(Some("resume"), resume()).unwrap();
    assert_eq!(harness.of_session(Some("pause"), pause()), Ok(paused));
    assert_eq!(harness.of_session(Some("again"), resume()).unwrap_err().reason, Reason::StateMismatch);
}
