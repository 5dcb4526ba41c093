//! What happens to a call reaches its ledger in any order and any number of times, and comes to the same.

use switchward_engine::{decide, evolve};
use switchward_machine::{Digest, Limit, Micros, Period, SessionId, TenantId, Time};
use switchward_state::policy::{
    Confirm, LedgerRow, LedgerRule, LimitOutcome, PolicyCommand, Remaining, Reserve, Settle, check_limits,
};
use switchward_state::session::{SessionCommand, Sweep};
use switchward_state::{Body, Command, IndexKey, Key, Reason, Rejection, Reply, RequestId, Row, Scope, View};
use switchward_testkit::{Rng, Rows};

const TENANT: TenantId = TenantId(1);
const NOW: Time = Time(1_782_000_000_000);
const DAY_MS: u64 = 86_400_000;
const ESTIMATE: Micros = Micros(100);
const COST: Micros = Micros(30);
/// Orders that are tried.
const ORDERS: u64 = 1_000;

/// A ledger of one process, with its rows.
#[derive(Default)]
struct Ledger(Rows);

impl Ledger {
    fn submit(&mut self, request: Option<RequestId>, body: Body, now: Time) -> Result<Reply, Rejection> {
        let scope = Scope::Ledger("p".into());
        self.execute(Command { request, ..Command::of_server(TENANT, scope, body) }, now)
    }

    fn execute(&mut self, command: Command, now: Time) -> Result<Reply, Rejection> {
        let mut decided = decide(&[command], &self.0, now).unwrap();
        if let Some(decision) = decided.decision {
            let changes = evolve(&decision, &self.0).unwrap();
            self.0.apply(changes);
        }
        decided.answers.pop().unwrap()
    }

    /// Gives up what has lapsed by then.
    fn sweep(&mut self, now: Time) {
        let mut due = Vec::new();
        let list = &mut |entry: &Key, _: &_| {
            due.extend(IndexKey::due_of(entry).filter(|due| due.at <= now));
            std::ops::ControlFlow::Continue(())
        };
        self.0.scan(&IndexKey::due(), None, list).unwrap();
        for due in due.into_iter().filter(|due| due.key.is(switchward_state::Kind::Ledger)) {
            let scope = due.scope();
            let sweep = Body::Session(SessionCommand::Sweep(Sweep { key: due.key }));
            self.execute(Command::of_server(TENANT, scope, sweep), now).unwrap();
        }
    }

    fn rows(&self) -> Vec<(&Key, &LedgerRow)> {
        self.0.iter().filter_map(|(key, row)| Some((key, ledger(row)?))).collect()
    }
}

fn ledger(row: &Row) -> Option<&LedgerRow> {
    if let Row::Ledger(row) = row { Some(row) } else { None }
}

fn rule(capability: &str) -> LedgerRule {
    let limits = vec![
        Limit::Rate { max: 9, window_ms: DAY_MS },
        Limit::Money { max: Micros(1_000), period: Period::Day },
    ];
    let (process, layers) = ("p".into(), vec!["policy".into()]);
    LedgerRule { process, role: "agent".into(), capability: capability.into(), limits, layers }
}

fn name(call: &str) -> Digest {
    Digest::of(call.as_bytes())
}

/// What is sent to the ledger about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Reserve,
    Confirm,
    Settle,
    Release,
}

/// Sends it under the request id that a relay uses. A reservation may be refused: the call was counted.
fn send(ledger: &mut Ledger, call: &str, sent: Sent) {
    let (name, at) = (name(call), NOW);
    let session = SessionId::from_key(TENANT, call);
    let rules = vec![rule("a"), rule("b")];
    let settle = |release: bool| {
        // A rule that has come to hold since the call was counted is charged, too.
        let rules = if release { rules.clone() } else { [&rules[..], &[rule("c")]].concat() };
        let settle = Settle { call: Some(name), rules, cost: COST, at, release };
        let request = settle.request(session, u64::from(release));
        (Some(request), PolicyCommand::Settle(settle))
    };
    let (request, body) = match sent {
        Sent::Reserve => {
            (None, PolicyCommand::Reserve(Reserve { call: name, rules: rules.clone(), estimate: ESTIMATE }))
        }
        Sent::Confirm => {
            let confirm = Confirm { call: name, rules: rules.clone(), estimate: ESTIMATE, at };
            (Some(confirm.request()), PolicyCommand::Confirm(confirm))
        }
        Sent::Settle => settle(false),
        Sent::Release => settle(true),
    };
    let answer = ledger.submit(request, Body::Policy(body), NOW);
    let refused = answer.as_ref().is_err_and(|no| no.reason == Reason::RequestIdReused);
    assert!(answer.is_ok() || (refused && sent == Sent::Reserve), "{call} {sent:?}: {answer:?}");
}

/// Calls that are reported, open, denied, and permitted at a second attempt and reported.
const CALLS: [(&str, &[Sent]); 4] = [
    ("reported", &[Sent::Reserve, Sent::Confirm, Sent::Settle]),
    ("open", &[Sent::Reserve, Sent::Confirm]),
    ("denied", &[Sent::Reserve, Sent::Release]),
    ("denied once", &[Sent::Reserve, Sent::Release, Sent::Confirm, Sent::Settle]),
];

#[test]
fn any_order_and_any_number_of_duplicates_come_to_the_same() {
    let of_call = |(call, all): (&'static str, &'static [Sent])| all.iter().map(move |sent| (call, *sent));
    let all: Vec<_> = CALLS.into_iter().flat_map(of_call).collect();
    let lapsed = NOW.after_ms(switchward_state::limits::RESERVATION_LAPSE_MS);
    let play = |order: &[(&str, Sent)]| {
        let mut ledger = Ledger::default();
        order.iter().for_each(|(call, sent)| send(&mut ledger, call, *sent));
        ledger.sweep(lapsed);
        ledger
    };
    let expected = play(&all);
    for capability in ["a", "b"] {
        let key = Key::ledger(TENANT, "p", "agent", capability);
        let (_, row) = *expected.rows().iter().find(|(known, _)| **known == key).unwrap();
        let held: Vec<_> = row.reservations.iter().map(|held| (held.call, held.estimate)).collect();
        assert_eq!((row.calls.len(), held), (3, vec![(name("open"), ESTIMATE)]));
    }
    for seed in 0..ORDERS {
        let mut rng = Rng::new(seed);
        let mut order = all.clone();
        for _ in 0..rng.below(2 * all.len()) {
            order.push(*rng.pick(&all));
        }
        for at in (1..order.len()).rev() {
            order.swap(at, rng.below(at + 1));
        }
        assert_eq!(play(&order).rows(), expected.rows(), "seed {seed}: {order:?}");
    }
}

#[test]
fn a_report_that_overtakes_its_confirmation_frees_nothing_before_the_call_counts() {
    let mut ledger = Ledger::default();
    send(&mut ledger, "one", Sent::Reserve);
    let left = |ledger: &Ledger| {
        let check = check_limits(&ledger.0, TENANT, &[rule("a")], Micros(0), NOW).unwrap();
        let LimitOutcome::Available { remaining } = check.outcome else { panic!("it is not full") };
        (remaining.calls.unwrap(), remaining.usd.unwrap())
    };
    assert_eq!(left(&ledger), (8, Micros(900)));
    send(&mut ledger, "one", Sent::Settle);
    assert_eq!(left(&ledger), (8, Micros(870)), "its reservation stays, and its cost is charged");
    send(&mut ledger, "one", Sent::Confirm);
    assert_eq!(left(&ledger), (8, Micros(970)), "it counts and holds nothing");
}

#[test]
fn a_reservation_is_renewed_while_it_is_held_and_made_again_after_it_has_lapsed() {
    let mut ledger = Ledger::default();
    let mut reserve = |now: Time| {
        let reserve = Reserve { call: name("one"), rules: vec![rule("a"), rule("b")], estimate: ESTIMATE };
        let before = ledger.0.clone();
        let answer = ledger.submit(None, Body::Policy(PolicyCommand::Reserve(reserve)), now).unwrap();
        let Reply::Limits(check) = answer else { panic!("a ledger answers about limits") };
        assert!(check.is_reserved());
        let written = ledger.0 != before;
        let held = ledger.rows().iter().map(|(_, row)| row.reservations.len()).max();
        assert_eq!(held, Some(1), "a call is reserved once");
        (check.age_ms, check.held_at("p"), check.outcome, written)
    };
    let left = Remaining { calls: Some(8), usd: Some(Micros(900)) };
    let available = || LimitOutcome::Available { remaining: left };
    let second = |seconds: u64| NOW.after_ms(seconds * 1_000);
    assert_eq!(reserve(second(0)), (0, Some(second(0)), available(), true));
    assert_eq!(reserve(second(29)), (29_000, Some(second(0)), available(), false), "it is young enough");
    assert_eq!(reserve(second(61)), (0, Some(second(61)), available(), true), "it is renewed");
    assert_eq!(reserve(second(600)), (0, Some(second(600)), available(), true), "it is renewed again");
    assert_eq!(reserve(second(2_000)), (0, Some(second(2_000)), available(), true), "it is made again");
    assert_eq!(reserve(second(2_000)), (0, Some(second(2_000)), available(), false));
}
