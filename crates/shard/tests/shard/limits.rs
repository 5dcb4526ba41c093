//! Limits span sessions and shards: exactly as many calls are allowed as each of two tenants may make, whatever dies
//! meanwhile.

use openraft::async_runtime::WatchReceiver;
use std::ops::ControlFlow;
use std::time::Instant;
use switchward_machine::Micros;
use switchward_shard::Shard;
use switchward_state::policy::CallEffect;
use switchward_state::{IndexKey, Reply, View};
use switchward_testkit::{PATIENCE, Rng};

use crate::commands::{
    DEPLOY_GATE, TENANTS, authorize, create_tenants, definition, deploys, report, start, tenant,
};
use crate::live::{Answered, Live};
use crate::runs::each_seed;
use crate::server::Setup;

/// Sessions, each of which asks for one call of every kind.
const SESSIONS: usize = 500;
const CALLERS: usize = 64;
/// Kills in each storm of calls.
const KILLS: usize = 2;
/// Whole runs, each with its seed; more by `SHARD_TEST_RUNS`.
const RUNS: u64 = 1;

pub(crate) const HOUR_MS: u64 = 3_600_000;

/// Calls of `pay` cost money: at most 5 dollars an hour.
const SPENDER: &str = r#"{
    "name": "spender",
    "initial": "pay",
    "states": { "pay": { "question": "Paid?", "answers": { "yes": { "next": null, "action": "complete" } } } },
    "policy": {
        "role": "agent",
        "allow": [{ "capability": "pay", "budget_limit": { "max_usd": 5.00, "period": "hourly" } }]
    }
}"#;

fn key(number: usize) -> String {
    format!("session {number}")
}

/// A server with all sessions of a definition.
fn begin(setup: &Setup, source: &str) -> Live {
    let mut live = Live::open(setup);
    let definition = definition(source);
    for command in create_tenants().into_iter().chain(deploys(&definition, source)) {
        live.execute(command).unwrap();
    }
    let starts = (0..SESSIONS).map(|number| start(&definition, &key(number))).collect();
    let started = live.execute_all(starts, CALLERS, &[]);
    assert!(started.iter().all(Result::is_ok));
    let used = live.server().cluster().shards().iter().filter(|shard| shard.group().digest().is_ok());
    assert_eq!(used.count(), 4, "the sessions use all shards");
    live
}

/// One call of each session, under kills. Returns the numbers of those that were allowed.
fn storm(live: &mut Live, rng: &mut Rng, name: &str, capability: &str, cost: Option<Micros>) -> Vec<usize> {
    let call = |number: usize| authorize(&key(number), &format!("{name} {number}"), capability, cost);
    let calls: Vec<_> = (0..SESSIONS).map(call).collect();
    let mut kills: Vec<usize> = (0..KILLS).map(|_| 1 + rng.below(SESSIONS - 1)).collect();
    kills.sort_unstable();
    let answers = live.execute_all(calls.clone(), CALLERS, &kills);
    let again = live.execute_all(calls, CALLERS, &kills[..1]);
    assert_eq!(answers, again, "the same request has the same reply");
    let reasons = answers.iter().filter_map(reason);
    let odd: Vec<_> =
        reasons.filter(|reason| !["RATE_LIMITED", "BUDGET_EXHAUSTED"].contains(&reason.as_str())).collect();
    assert_eq!(odd, Vec::<String>::new());
    answers.iter().enumerate().filter(|(_, answer)| allowed(answer)).map(|(number, _)| number).collect()
}

/// How many of these sessions belong to each tenant.
fn of_each(numbers: &[usize]) -> [usize; 2] {
    TENANTS.map(|wanted| numbers.iter().filter(|number| tenant(&key(**number)) == wanted).count())
}

pub(crate) fn allowed(answer: &Answered) -> bool {
    matches!(answer, Ok(Reply::Authorized(said)) if said.effect == CallEffect::Allow)
}

/// Why a call was not allowed.
pub(crate) fn reason(answer: &Answered) -> Option<String> {
    match answer {
        Ok(Reply::Authorized(said)) => said.reason.map(|reason| reason.code().to_owned()),
        Ok(other) => Some(format!("{other:?}")),
        Err(rejection) => Some(rejection.reason.code().to_owned()),
    }
}

/// Waits until no effect is on its way from one shard to another.
pub(crate) async fn carried(shard: &Shard) {
    let mut changes = shard.group().raft().metrics();
    let begun = Instant::now();
    loop {
        let mut waiting = false;
        let look = &mut |_: &_, _: &_| {
            waiting = true;
            ControlFlow::Break(())
        };
        shard.read().await.unwrap().scan(&IndexKey::relay(), None, look).unwrap();
        if !waiting {
            return;
        }
        let change = tokio::time::timeout(PATIENCE.saturating_sub(begun.elapsed()), changes.changed()).await;
        change.expect("every effect reaches its shard").unwrap();
    }
}

fn all_carried(live: &Live) {
    live.server().run(async {
        for shard in live.server().cluster().all() {
            carried(shard).await;
        }
    });
}

#[test]
fn fifty_calls_an_hour_are_exactly_fifty() {
    each_seed(1, RUNS, |rng| {
        let folder = tempfile::tempdir().unwrap();
        let setup = Setup::new(folder.path());
        let mut live = begin(&setup, DEPLOY_GATE);
        assert_eq!(of_each(&storm(&mut live, rng, "first", "bash", None)), [50, 50]);
        assert_eq!(of_each(&storm(&mut live, rng, "second", "bash", None)), [0, 0]);
        setup.clock.advance(HOUR_MS);
        assert_eq!(of_each(&storm(&mut live, rng, "third", "bash", None)), [50, 50]);
        live.end();
    });
}

#[test]
fn money_is_spent_to_the_last_cent_and_no_further() {
    let cents = |cents: u64| Micros(cents * 10_000);
    each_seed(1, RUNS, |rng| {
        let folder = tempfile::tempdir().unwrap();
        let setup = Setup::new(folder.path());
        let mut live = begin(&setup, SPENDER);
        let first = storm(&mut live, rng, "first", "pay", Some(cents(10)));
        assert_eq!(of_each(&first), [50, 50], "5 dollars hold 50 estimates of 10 cents");
        let reports = first.iter().map(|number| report(&key(*number), &format!("first {number}"), cents(4)));
        let reports: Vec<_> = reports.collect();
        let reported = live.execute_all(reports.clone(), CALLERS, &[1 + rng.below(first.len() - 1)]);
        assert!(reported.iter().all(Result::is_ok));
        assert_eq!(live.execute_all(reports, CALLERS, &[]), reported);
        all_carried(&live);
        let second = storm(&mut live, rng, "second", "pay", Some(cents(10)));
        assert_eq!(of_each(&second), [30, 30], "50 reports of 4 cents leave 3 dollars");
        all_carried(&live);
        let third = storm(&mut live, rng, "third", "pay", Some(cents(1)));
        assert_eq!(of_each(&third), [0, 0], "the whole budget is reserved");
        setup.clock.advance(HOUR_MS);
        let fourth = storm(&mut live, rng, "fourth", "pay", Some(cents(10)));
        assert_eq!(
            of_each(&fourth),
            [20, 20],
            "the new hour has 5 dollars, of which 30 open calls still hold 3"
        );
        live.end();
    });
}
