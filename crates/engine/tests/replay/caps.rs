//! What a session may have at most: mails of a day, and calls that are not reported.

use std::sync::Arc;
use switchward_engine::{decide, evolve};
use switchward_formats::compile_file;
use switchward_machine::{Micros, SessionId, TenantId, Time};
use switchward_state::catalogue::{CatalogueCommand, InstallMachine, Role, Settings};
use switchward_state::delivery::{Draft, Outgoing};
use switchward_state::limits::{CALLS_OPEN_MAX, MAILS_OF_DAY_MAX};
use switchward_state::policy::{Args, Authorize, PolicyCommand};
use switchward_state::session::{MailDay, SessionCommand, Start};
use switchward_state::{Actor, Body, Command, Key, Reason, Rejection, Reply, Row, Scope, View};
use switchward_testkit::{Rows, start_of};

const TENANT: TenantId = TenantId(1);
const DAY_MS: u64 = 86_400_000;
const SOURCE: &str =
    "name: p\ninitial: a\nstates:\n  a:\n    question: q\n    answers:\n      y: {next: null}\n";

fn submit(rows: &mut Rows, scope: Scope, body: Body, now: Time) -> Result<Reply, Rejection> {
    let command = Command {
        tenant: TENANT,
        scope,
        request: None,
        expected_sequence: None,
        actor: Actor { subject: "agent".into(), role: Role::Agent },
        settings: Settings::default(),
        trace: None,
        address: None,
        body,
    };
    let mut decided = decide(&[command], rows, now).unwrap();
    if let Some(decision) = decided.decision {
        let changes = evolve(&decision, rows).unwrap();
        rows.apply(changes);
    }
    decided.answers.pop().unwrap()
}

/// The rows of a session that has started at this time.
fn started(at: Time) -> (Rows, SessionId) {
    let mut rows = Rows::default();
    let machine = Arc::new(compile_file("p.yaml", SOURCE.as_bytes(), None).definition.unwrap().machine);
    let install =
        Body::Catalogue(CatalogueCommand::InstallMachine(InstallMachine { machine: Arc::clone(&machine) }));
    submit(&mut rows, Scope::Shard, install, Time(1)).unwrap();
    let id = SessionId::from_key(TENANT, "s");
    let start = Start { key: Some("s".into()), ..start_of("p", 1, machine.digest(), "agent") };
    submit(&mut rows, Scope::Session(id), Body::Session(SessionCommand::Start(start)), at).unwrap();
    (rows, id)
}

#[test]
fn a_session_sends_so_many_mails_in_a_day_and_then_the_next_day() {
    let day = Time(20 * DAY_MS + 5);
    let (mut rows, id) = started(day);
    let key = Key::session(TENANT, id);
    let Row::Session(session) = &*rows.row(&key).unwrap().unwrap() else { panic!("it is a session") };
    let mailed = Some(MailDay { day: 20, count: MAILS_OF_DAY_MAX - 2 });
    let session = switchward_state::session::Session { mailed, ..session.clone() };
    rows.apply([(key.clone(), Some(Arc::new(Row::Session(session))))].into());
    let send = |rows: &mut Rows, to: &[&str], now| {
        let to = to.iter().map(|&one| one.to_owned()).collect();
        let mail = Outgoing::new(Draft { to, ..Draft::default() }).unwrap();
        let call = mail.call(format!("{now:?}")).unwrap();
        submit(rows, Scope::Session(id), Body::Policy(PolicyCommand::Authorize(call)), now)
            .map_err(|no| no.reason)
    };
    // All recipients are counted before the first mail is queued.
    let three = ["a@a.example", "b@a.example", "c@a.example"];
    assert_eq!(send(&mut rows, &three, day).unwrap_err(), Reason::QuotaExceeded);
    assert!(send(&mut rows, &three[..2], day).is_ok());
    assert_eq!(send(&mut rows, &three[..1], Time(21 * DAY_MS - 1)).unwrap_err(), Reason::QuotaExceeded);
    assert!(send(&mut rows, &three[..1], Time(21 * DAY_MS)).is_ok());
    let Row::Session(session) = &*rows.row(&key).unwrap().unwrap() else { panic!("it is a session") };
    assert_eq!(session.mailed, Some(MailDay { day: 21, count: 1 }));
}

#[test]
fn calls_that_hold_nothing_keep_no_session_from_one_that_holds_money() {
    let now = Time(5);
    let (mut rows, id) = started(now);
    let make = |rows: &mut Rows, name: usize, estimate: Option<Micros>| {
        let call = Authorize {
            capability: "bash".into(),
            call_id: name.to_string(),
            args: Args::parse(b"{}").unwrap(),
            estimate,
            limits: None,
            mail: None,
        };
        submit(rows, Scope::Session(id), Body::Policy(PolicyCommand::Authorize(call)), now)
            .map_err(|no| no.reason)
    };
    for name in 0..CALLS_OPEN_MAX {
        make(&mut rows, name, None).unwrap();
    }
    // Nobody has reported any of them, and nobody has to.
    for name in CALLS_OPEN_MAX..2 * CALLS_OPEN_MAX {
        make(&mut rows, name, Some(Micros(3))).unwrap();
    }
    assert_eq!(
        make(&mut rows, 2 * CALLS_OPEN_MAX, Some(Micros(3))).unwrap_err(),
        Reason::QuotaExceeded,
        "as many hold money as may"
    );
    make(&mut rows, 2 * CALLS_OPEN_MAX, None).unwrap();
    let Row::Session(session) = &*rows.row(&Key::session(TENANT, id)).unwrap().unwrap() else {
        panic!("it is a session")
    };
    assert_eq!(session.calls.len(), CALLS_OPEN_MAX);
    assert_eq!(session.meters.reserved_micros, 3 * u64::try_from(CALLS_OPEN_MAX).unwrap());
}
