//! Limits hold whatever the clocks of a session's shard and of its ledger's shard say, and however old a reservation is.

use std::sync::Arc;
use switchward_engine::policy::{Ledgers, Plan, plan};
use switchward_machine::{Bucket, Time};
use switchward_shard::{Clock, Failure, ManualClock};
use switchward_state::policy::{LedgerRow, PolicyCommand, Reserve};
use switchward_state::{Body, Command, Key, Reply, Row, Scope, View};
use switchward_testkit::until;

use crate::commands::{
    DEPLOY_GATE, TENANTS, authorize, create_tenants, definition, deploys, session, start, tenant,
};
use crate::limits::{HOUR_MS, allowed, carried, reason};
use crate::one_server::prepare;
use crate::server::{BEGIN, Server, Setup};
use crate::three_voters::{callers, hand_over, key_in};
use crate::trio::{NODES, Trio};

/// What the first example allows per hour.
const CALLS: usize = 50;
const PROCESS: &str = "deploy-gate";

fn ledger_bucket(key: &str) -> Bucket {
    Scope::Ledger(PROCESS.into()).bucket(tenant(key)).unwrap()
}

/// Executes a command on a server once it leads what the command needs.
async fn insist(trio: &Trio, node: u64, command: Command) -> Result<Reply, Failure> {
    let mut answer = Err(Failure::Electing);
    until("the server leads", async || {
        answer = trio.cluster(node).execute(command.clone()).await;
        answer != Err(Failure::Electing)
    })
    .await;
    answer
}

/// Makes the time of a group that of another server, which decides something as its leader, and gives it back.
async fn moved(trio: &Trio, group: usize, key: &str) {
    hand_over(trio, group, NODES[1]).await;
    let command = start(&definition(DEPLOY_GATE), key);
    until("it is decided", async || trio.shard(NODES[1], group).submit(command.clone()).await.is_ok()).await;
    hand_over(trio, group, NODES[0]).await;
}

/// Makes calls until long after the limit is full, while one of two groups is an hour ahead of the other.
async fn exhaust(trio: &Trio, ahead: usize, key: &str) {
    for group in 0..3 {
        hand_over(trio, group, NODES[0]).await;
    }
    let gate = definition(DEPLOY_GATE);
    for command in create_tenants().into_iter().chain(deploys(&gate, DEPLOY_GATE)) {
        insist(trio, NODES[0], command).await.unwrap();
    }
    insist(trio, NODES[0], start(&gate, key)).await.unwrap();
    // Sessions of both groups: the machine is there when another server moves the time.
    let same = |name: &str| {
        let mut keys = (0..).map(|number| key_in(trio, ahead, &format!("{name} {number}")));
        keys.find(|found| tenant(found) == tenant(key)).unwrap()
    };
    insist(trio, NODES[0], start(&gate, &same("before"))).await.unwrap();
    moved(trio, ahead, &same("after")).await;
    for number in 0..CALLS + 5 {
        let answer = insist(trio, NODES[0], authorize(key, &format!("call {number}"), "bash", None)).await;
        let Reply::Authorized(said) = answer.as_ref().unwrap() else { panic!("{answer:?}") };
        if number >= CALLS {
            assert_eq!(said.retry_after_ms, Some(HOUR_MS), "by the clock of the ledger");
        }
        let answer = answer.map_err(|failure| panic!("{failure}"));
        assert_eq!(allowed(&answer), number < CALLS, "call {number}: {:?}", reason(&answer));
    }
    for group in 1..3 {
        carried(trio.shard(NODES[0], group)).await;
    }
}

#[test]
fn limits_hold_exactly_between_shards_whose_clocks_differ_by_an_hour() {
    for session_ahead in [true, false] {
        let clocks = [BEGIN, BEGIN.after_ms(HOUR_MS), BEGIN].map(ManualClock::new);
        let trio = Trio::patient_of(clocks.map(|clock| Arc::new(clock) as Arc<dyn Clock>));
        callers().block_on(async {
            let group_of = |bucket: Bucket| {
                let shard = trio.cluster(NODES[0]).shard_of(bucket).number();
                usize::try_from(shard).unwrap()
            };
            let ledger = |key: &str| group_of(ledger_bucket(key));
            let mut keys = (0..).map(|number| format!("session {number}"));
            let key = keys.find(|key| group_of(session(key).bucket()) != ledger(key)).unwrap();
            let ahead = if session_ahead { group_of(session(&key).bucket()) } else { ledger(&key) };
            exhaust(&trio, ahead, &key).await;
        });
        trio.assert_sound();
    }
}

fn ledger(server: &Server, key: &str) -> LedgerRow {
    let row = Key::ledger(tenant(key), PROCESS, "agent", "bash");
    let shard = server.cluster().shard_of(ledger_bucket(key));
    server.run(async {
        for shard in server.cluster().all() {
            carried(shard).await;
        }
        let found = shard.read().await.unwrap().row(&row).unwrap();
        match found.as_deref() {
            Some(Row::Ledger(row)) => row.clone(),
            other => panic!("there is no ledger: {other:?}"),
        }
    })
}

/// Reserves a call as a server does that dies before it decides the call.
fn reserve(server: &Server, key: &str, call: &Command, now: Time) {
    let view = server.run(server.cluster().shard_of(session(key).bucket()).read()).unwrap();
    let plan = plan(&view, call, now).unwrap();
    let Plan::Reserve(Ledgers { call, rules, estimate }) = plan else { panic!("it has no limit: {plan:?}") };
    let body = Body::Policy(PolicyCommand::Reserve(Reserve { call, rules, estimate }));
    let reserve = Command::of_server(tenant(key), Scope::Ledger(PROCESS.into()), body);
    server.run(server.cluster().shard_of(ledger_bucket(key)).submit(reserve)).unwrap();
}

#[test]
fn a_call_is_permitted_on_a_reservation_of_any_age() {
    for age_ms in [59_000, 61_000, 5 * 60_000, 599_000, 11 * 60_000] {
        let folder = tempfile::tempdir().unwrap();
        let setup = Setup::new(folder.path());
        let server = Server::open(&setup);
        prepare(&server);
        let key = "session 0";
        assert_eq!(tenant(key), TENANTS[0]);
        server.run(server.cluster().execute(start(&definition(DEPLOY_GATE), key))).unwrap();
        let call = authorize(key, "one", "bash", None);
        reserve(&server, key, &call, setup.clock.now());
        setup.clock.advance(age_ms);
        let answer = server.run(server.cluster().execute(call));
        let answer = answer.map_err(|failure| panic!("after {age_ms} ms: {failure}"));
        assert!(allowed(&answer), "after {age_ms} ms: {:?}", reason(&answer));
        let row = ledger(&server, key);
        assert_eq!((row.calls, row.reservations), (vec![setup.clock.now()], vec![]), "after {age_ms} ms");
        server.shut_down();
    }
}
