//! Timers fire once, when they are due and never before, whatever clocks, transports and leaders do.

use openraft::async_runtime::WatchReceiver;
use std::collections::BTreeMap;
use std::sync::{Arc, atomic::Ordering};
use std::time::{Duration, Instant};
use switchward_engine::session_view;
use switchward_formats::Definition;
use switchward_machine::Status;
use switchward_shard::{
    Clock, Cluster, Fired, TimerBatch, TimerTransport,
    limits::{TIMERS_HEAD_MAX, TIMERS_IN_FLIGHT_MAX},
};
use switchward_state::catalogue::{CatalogueCommand, InstallMachine};
use switchward_state::{Body, Command, Key, Reply, Row, Scope, View as _};
use switchward_testkit::{PATIENCE, Rng, until};

use crate::commands::{TENANTS, command, definition, session, start, tenant};
use crate::jumping::{Faults, FaultyTransport, Jumping};
use crate::runs::each_seed;
use crate::server::{BEGIN, Server, Setup};
use crate::three_voters::{callers, hand_over};
use crate::trio::{NODES, Trio};

/// How long the sessions of a test wait, milliseconds.
const NAPS: [u64; 5] = [3_600, 7_200, 36_000, 372_000, 3_600_000];
const HOUR_MS: i64 = 3_600_000;
const FAULTS: Faults = Faults { lost: 12, refused: 12, twice: 4, late: 12 };

/// A conversation that waits this long and ends.
fn nap(ms: u64) -> Definition {
    let hours = ms as f64 / HOUR_MS as f64;
    definition(&format!(
        r#"{{
            "name": "nap-{ms}",
            "states": [
                {{ "name": "rest", "type": "wait", "wait_for": "timer", "timeout_hours": {hours} }},
                {{ "name": "up", "type": "output", "template": "Good morning.", "target": "conversation" }}
            ],
            "transitions": [{{ "from": "rest", "port": "received", "to": "up" }}]
        }}"#
    ))
}

/// Installs the machines in all shards of a cluster that leads them.
async fn install(cluster: &Cluster, naps: &[Definition]) {
    for shard in cluster.shards() {
        for (nap, tenant) in naps.iter().flat_map(|nap| TENANTS.map(|tenant| (nap, tenant))) {
            let body = Body::Catalogue(CatalogueCommand::InstallMachine(InstallMachine {
                machine: Arc::new(nap.machine.clone()),
            }));
            let reply = shard.submit(command(tenant, Scope::Shard, None, body)).await;
            assert_eq!(reply, Ok(Reply::Done));
        }
    }
}

/// Sleeping sessions by their keys, with when they are to wake, in milliseconds that have really passed.
#[derive(Default)]
struct Sleepers(BTreeMap<String, u64>);

impl Sleepers {
    /// The sequence of a session, if it has ended.
    fn over(cluster: &Cluster, key: &str) -> Option<u64> {
        let id = session(key);
        let view = cluster.shard_of(id.bucket()).read_stale();
        let found = view.consistent(|view| session_view(view, tenant(key), id)).unwrap()?;
        (found.session.status == Status::Completed).then_some(found.session.sequence)
    }

    /// Asserts that no session has ended before it was due.
    fn assert_none_early(&self, cluster: &Cluster, passed: u64) {
        let early = self.0.iter().filter(|(key, due)| **due > passed && Self::over(cluster, key).is_some());
        assert_eq!(early.collect::<Vec<_>>(), Vec::<(&String, &u64)>::new(), "at {passed}");
    }

    /// Waits until all due sessions have ended on this server.
    async fn woken(&self, cluster: &Cluster, passed: u64) {
        let begun = Instant::now();
        let mut changes = cluster.shards()[0].group().raft().metrics();
        loop {
            let mut due = self.0.iter().filter(|(_, due)| **due <= passed);
            let Some((late, _)) = due.find(|(key, _)| Self::over(cluster, key).is_none()) else { return };
            let counts: Vec<_> = cluster.shards().iter().map(|shard| shard.timer_counts()).collect();
            assert!(begun.elapsed() < PATIENCE, "{late} was never fired: {counts:?}");
            let _other_shard = tokio::time::timeout(Duration::from_millis(20), changes.changed()).await;
        }
    }

    /// Each was fired once: all have the same sequence.
    fn assert_alike(&self, cluster: &Cluster) {
        let ways: Vec<_> = self.0.keys().map(|key| Self::over(cluster, key)).collect();
        assert!(ways.windows(2).all(|two| two[0].is_some() && two[0] == two[1]), "{ways:?}");
    }
}

/// Does one step of a random run.
fn step(rng: &mut Rng, clocks: &[Jumping]) -> u64 {
    // A gap that lasts longer would be believed, and rightly.
    clocks.iter().filter(|clock| clock.stands() > 600_000).for_each(|clock| clock.jump(0));
    let clock = rng.pick(clocks);
    match rng.below(4) {
        0 => clock.jump(HOUR_MS),
        1 => clock.jump(-HOUR_MS),
        2 => clock.jump(0),
        _ => {}
    }
    match rng.below(3) {
        0 => rng.between(1, 2_000),
        1 => rng.between(1, 20_000),
        _ => rng.between(1, 100_000),
    }
}

/// Lets the longest nap pass, so that all wake; with the clocks right, or their gaps would be believed.
async fn let_all_wake(sleepers: &Sleepers, clocks: &[Jumping], cluster: &Cluster) {
    clocks.iter().for_each(|clock| clock.jump(0));
    let longest = sleepers.0.values().max().copied().unwrap_or(0);
    clocks[0].pass(longest.saturating_sub(clocks[0].passed()));
    clocks.iter().for_each(Jumping::look);
    sleepers.woken(cluster, clocks[0].passed()).await;
}

#[test]
fn on_a_server_whose_clock_jumps_and_whose_bus_fails() {
    const STEPS: usize = 20;
    each_seed(1, 2, |rng| {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Jumping::new());
        let setup = Setup { shards: 2, ..Setup::new(folder.path()) };
        let server = Server::open_with(&setup, Arc::new(clock.clone()));
        let naps: Vec<_> = NAPS.into_iter().map(|ms| (ms, nap(ms))).collect();
        let mut sleepers = Sleepers::default();
        server.run(async {
            let cluster = server.cluster();
            install(cluster, &naps.iter().map(|(_, nap)| nap.clone()).collect::<Vec<_>>()).await;
            let transport = FaultyTransport::new(vec![cluster.clone()], rng.bits(), Some(FAULTS));
            cluster.set_timer_transport(Some(Arc::clone(&transport) as Arc<dyn TimerTransport>));
            for number in 0..STEPS {
                let mut starts = Vec::new();
                for one in 0..rng.below(30) {
                    let (ms, nap) = rng.pick(&naps);
                    let key = format!("nap {number} {one}");
                    starts.push(cluster.execute(start(nap, &key)));
                    sleepers.0.insert(key, clock.passed() + ms);
                }
                let started = futures::future::join_all(starts).await;
                assert!(started.iter().all(Result::is_ok), "{started:?}");
                let passes = step(rng, std::slice::from_ref(&clock));
                clock.look();
                sleepers.assert_none_early(cluster, clock.passed());
                clock.pass(passes);
                clock.look();
                sleepers.woken(cluster, clock.passed()).await;
                sleepers.assert_none_early(cluster, clock.passed());
            }
            let_all_wake(&sleepers, std::slice::from_ref(&clock), cluster).await;
            sleepers.assert_alike(cluster);
            assert!(transport.given.load(Ordering::SeqCst) > 0, "no batch went over the transport");
            assert!(transport.fired.load(Ordering::SeqCst) > 0, "no batch was fired when it came back");
            cluster.set_timer_transport(None);
        });
        server.shut_down();
    });
}

#[test]
fn with_three_voters_whose_leaders_change_and_whose_clocks_jump() {
    const STEPS: usize = 16;
    each_seed(1, 1, |rng| {
        let first = Jumping::new();
        let clocks = [first.clone(), first.another(), first.another()];
        let trio = Trio::of(clocks.each_ref().map(|clock| Arc::new(clock.clone()) as Arc<dyn Clock>));
        let runtime = callers();
        let naps: Vec<_> = NAPS.into_iter().map(|ms| (ms, nap(ms))).collect();
        let mut sleepers = Sleepers::default();
        runtime.block_on(async {
            for group in 1..3 {
                hand_over(&trio, group, 1).await;
                trio.shard(1, group).read().await.unwrap();
            }
            install(trio.cluster(1), &naps.iter().map(|(_, nap)| nap.clone()).collect::<Vec<_>>()).await;
            let takers: Vec<_> = NODES.iter().map(|node| trio.cluster(*node).clone()).collect();
            let transport = FaultyTransport::new(takers, rng.bits(), Some(FAULTS));
            for node in NODES {
                trio.cluster(node)
                    .set_timer_transport(Some(Arc::clone(&transport) as Arc<dyn TimerTransport>));
            }
            for number in 0..STEPS {
                for one in 0..rng.below(12) {
                    let (ms, nap) = rng.pick(&naps);
                    let key = format!("nap {number} {one}");
                    trio.callers().insist(start(nap, &key)).await.unwrap();
                    sleepers.0.insert(key, first.passed() + ms);
                }
                let passes = step(rng, &clocks);
                first.pass(passes);
                clocks.iter().for_each(Jumping::look);
                if rng.once_in(2) {
                    // In the middle of whatever has just fallen due.
                    let (group, to) = (1 + rng.below(2), rng.between(1, 3));
                    hand_over(&trio, group, to).await;
                }
                for node in NODES {
                    sleepers.woken(trio.cluster(node), first.passed()).await;
                    sleepers.assert_none_early(trio.cluster(node), first.passed());
                }
            }
            let_all_wake(&sleepers, &clocks, trio.cluster(1)).await;
            for replicas in trio.settled().await {
                assert!(replicas.iter().all(|digest| *digest == replicas[0]), "{replicas:?}");
            }
            sleepers.assert_alike(trio.cluster(1));
            assert!(transport.given.load(Ordering::SeqCst) > 0, "no batch went over the transport");
            for node in NODES {
                trio.cluster(node).set_timer_transport(None);
            }
        });
        trio.assert_sound();
    });
}

#[test]
fn of_what_is_due_at_once_so_much_is_under_way_and_no_more() {
    const SESSIONS: usize = 2_500;
    let (folder, clock) = (tempfile::tempdir().unwrap(), Jumping::new());
    let setup = Setup { shards: 1, ..Setup::new(folder.path()) };
    let server = Server::open_with(&setup, Arc::new(clock.clone()));
    let nap = nap(72_000);
    server.run(async {
        let cluster = server.cluster();
        install(cluster, std::slice::from_ref(&nap)).await;
        let transport = FaultyTransport::new(vec![cluster.clone()], 1, None);
        cluster.set_timer_transport(Some(Arc::clone(&transport) as Arc<dyn TimerTransport>));
        let mut sleepers = Sleepers::default();
        // All belong to one tenant: if several share a shard, its batches are short.
        let keys: Vec<String> = (0..SESSIONS).map(|number| format!("nap {}", 2 * number)).collect();
        for some in keys.chunks(500) {
            let starts: Vec<Command> = some.iter().map(|key| start(&nap, key)).collect();
            let started =
                futures::future::join_all(starts.into_iter().map(|start| cluster.execute(start))).await;
            assert!(started.iter().all(Result::is_ok), "{started:?}");
            sleepers.0.extend(some.iter().map(|key| (key.clone(), 72_000)));
        }
        let entries = cluster.shards()[0].group().metrics().entries.load(Ordering::Relaxed);
        assert_eq!(cluster.shards()[0].timer_counts().waiting, SESSIONS);
        clock.pass(72_000);
        clock.look();
        let watched = cluster.clone();
        let watch = tokio::spawn(async move {
            let mut most = 0;
            loop {
                let counts = watched.shards()[0].timer_counts();
                most = most.max(counts.in_flight);
                assert!(counts.waiting <= TIMERS_HEAD_MAX && counts.in_flight <= TIMERS_IN_FLIGHT_MAX);
                if counts.fired >= u64::try_from(SESSIONS).unwrap() {
                    return most;
                }
                tokio::task::yield_now().await;
            }
        });
        sleepers.woken(cluster, clock.passed()).await;
        let most = tokio::time::timeout(PATIENCE, watch).await.unwrap().unwrap();
        assert!(most > 0, "they were seen in flight");
        sleepers.assert_alike(cluster);
        let entries = cluster.shards()[0].group().metrics().entries.load(Ordering::Relaxed) - entries;
        // How many go together depends on the speed of the disk: an entry takes what has arrived while the one before
        // was written.
        assert!(entries <= SESSIONS as u64 / 10, "too few timers share an entry: {entries} entries");
        assert_eq!(
            transport.fired.load(Ordering::SeqCst),
            SESSIONS,
            "each timer is fired once, by the batch that came back"
        );
        cluster.set_timer_transport(None);
    });
    server.shut_down();
}

#[test]
fn what_was_waited_for_when_a_server_ended_fires_on_the_next_one() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Jumping::new());
    let setup = Setup { shards: 1, ..Setup::new(folder.path()) };
    let nap = nap(72_000);
    let mut sleepers = Sleepers::default();
    let server = Server::open_with(&setup, Arc::new(clock.clone()));
    server.run(async {
        let cluster = server.cluster();
        install(cluster, std::slice::from_ref(&nap)).await;
        cluster.execute(start(&nap, "nap")).await.unwrap();
        let batch = TimerBatch { shard: 9, term: 1, number: 1, timers: Vec::new() };
        assert_eq!(cluster.fire(&batch).await, Ok(Fired::Stale), "the shard does not exist");
        let batch = TimerBatch { shard: 1, ..batch };
        assert_eq!(cluster.fire(&batch).await, Ok(Fired::Stale), "the shard has handed out nothing");
    });
    sleepers.0.insert("nap".into(), 72_000);
    server.shut_down();
    clock.pass(71_999);
    // The next server's clock is an hour behind, and continues from the log's time.
    clock.jump(-HOUR_MS);
    let clock = clock.reboot();
    let server = Server::open_with(&setup, Arc::new(clock.clone()));
    server.run(async {
        let cluster = server.cluster();
        let stands = cluster.shards()[0].read().await.unwrap().row(&Key::clock()).unwrap();
        let Some(Row::Clock(stands)) = stands.as_deref() else { panic!("{stands:?}") };
        until("the clock has reached the log's time", async || clock.now() >= *stands).await;
        let rest = BEGIN.0 + 72_000 - stands.0;
        clock.pass(rest - 1);
        clock.look();
        cluster.execute(start(&nap, "another")).await.unwrap();
        assert_eq!(Sleepers::over(cluster, "nap"), None, "the timer is due in a millisecond");
        clock.pass(1);
        clock.look();
        sleepers.woken(cluster, clock.passed()).await;
    });
    server.shut_down();
}
