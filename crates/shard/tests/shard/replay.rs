//! The rows that a shard builds, with evictions, checkpoints, purges and crashes, are those that a replay of its log
//! builds in a map.

use futures::future::join_all;
use openraft::{EntryPayload, RaftLogReader};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use switchward_engine::evolve;
use switchward_machine::{Bucket, Time};
use switchward_shard::{
    Clock, Cluster, Failure, Group, GroupOptions, GroupStart, LogRetention, LogStore, ManualClock, NoPeers,
    Payload, RaftSettings, Shard,
};
use switchward_state::catalogue::CatalogueCommand;
use switchward_state::seal::KeyRing;
use switchward_state::{Body, Command, Decision, Key, Levels, Row, View, ViewError};
use switchward_store::{GroupId, GroupLog, LogOptions, SegmentLog, Snapshots, StateStore};
use switchward_testkit::{CommandGenerator, Rng, Rows};
use tokio::runtime::{Builder, Runtime};

use crate::one_server::{led, purge};
use crate::runs::each_seed;
use crate::server::{BEGIN, unlocked};

/// The catalogue's group and two shards.
const GROUPS: u64 = 3;
/// Rounds of commands of one run.
const ROUNDS: usize = 60;
/// Rows that all groups together keep in memory: next to none, so that most are read from disk.
const CACHE_BYTES: usize = 2_048;
/// Whole runs, each with its seed; more by `SHARD_TEST_RUNS`.
const RUNS: u64 = 4;

/// A server whose log this test can read too.
struct Life {
    runtime: Runtime,
    cluster: Cluster,
    log: Arc<SegmentLog>,
}

impl Life {
    fn open(path: &Path, clock: &ManualClock) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let data = unlocked(path);
        let on_fatal = Box::new(|error: &switchward_store::StoreError| panic!("the log is lost: {error}"));
        let log = Arc::new(SegmentLog::open(&data, LogOptions { on_fatal, sync_fault: None }).unwrap());
        let states = StateStore::open(&data).unwrap();
        let snapshots = Snapshots::open(&data).unwrap();
        let cluster = runtime.block_on(async {
            let mut groups = Vec::new();
            for group in (0..GROUPS).map(GroupId) {
                let options = GroupOptions {
                    group,
                    node: 1,
                    start: GroupStart::Initialize(vec![1]),
                    log: Arc::clone(&log) as Arc<dyn GroupLog>,
                    states: states.clone(),
                    snapshots: snapshots.clone(),
                    cache_bytes: CACHE_BYTES,
                    ring: switchward_scenario::ring().clone(),
                    raft: RaftSettings::default(),
                    leaders: None,
                    retention: LogRetention::default(),
                    levels: Levels::OF_PROGRAM,
                };
                groups.push(Group::open(options, NoPeers).await.unwrap());
            }
            // Whatever ends the server shows in the answers; errors while it is killed do not count.
            let on_fatal = Box::new(|line: &str| println!("the server must end: {line}"));
            let cluster =
                Cluster::of_groups(groups, Arc::new(clock.clone()), Arc::clone(&log), on_fatal).unwrap();
            for shard in cluster.all() {
                led(shard).await;
            }
            cluster
        });
        Self { runtime, cluster, log }
    }

    fn shard(&self, group: usize) -> &Shard {
        self.cluster.all().nth(group).unwrap()
    }

    /// Ends as SIGKILL does.
    fn crash(self) {
        let Self { runtime, cluster, log } = self;
        drop(runtime);
        drop((cluster, log));
    }
}

/// The rows of every shard, as a caller finds them.
struct Everywhere<'c>(&'c Cluster);

impl View for Everywhere<'_> {
    fn row(&self, key: &Key) -> Result<Option<Arc<Row>>, ViewError> {
        let bytes = key.as_bytes();
        let bucket = Bucket::new(u16::from_be_bytes([bytes[0], bytes[1]]));
        let shard = bucket.map_or(self.0.catalogue(), |bucket| self.0.shard_of(bucket));
        shard.read_stale().row(key)
    }

    fn scan(
        &self,
        _: &[u8],
        _: Option<&[u8]>,
        _: &mut dyn FnMut(&Key, &Arc<Row>) -> ControlFlow<()>,
    ) -> Result<(), ViewError> {
        Err(ViewError("a caller does not scan several shards".into()))
    }

    fn ring(&self) -> &KeyRing {
        switchward_scenario::ring()
    }
}

/// All decisions of every group, from the first one on.
#[derive(Default)]
struct Logs(BTreeMap<u64, (u64, Vec<Decision>)>);

impl Logs {
    /// Reads what is new; to be called before anything is purged.
    async fn read(&mut self, log: &Arc<SegmentLog>) {
        for group in 0..GROUPS {
            let (next, decisions) = self.0.entry(group).or_default();
            let mut store = LogStore::new(Arc::clone(log) as Arc<dyn GroupLog>, GroupId(group));
            for entry in store.try_get_log_entries(*next..).await.unwrap() {
                assert_eq!(entry.log_id.index, *next, "an entry was purged before it was read");
                *next += 1;
                if let EntryPayload::Normal(Payload(bytes)) = &entry.payload {
                    decisions.push(Decision::decode(bytes).unwrap());
                }
            }
        }
    }

    /// The rows that a group's decisions build in an empty map.
    fn replay(&self, group: u64) -> Rows {
        let mut rows = Rows::default();
        for decision in &self.0[&group].1 {
            let changes = evolve(decision, &rows).unwrap();
            rows.apply(changes);
        }
        rows
    }
}

/// A copy of all rows that a view shows.
fn copied(view: &dyn View) -> Rows {
    let mut rows = Vec::new();
    let copy = &mut |key: &Key, row: &Arc<Row>| {
        rows.push((key.clone(), Arc::clone(row)));
        ControlFlow::Continue(())
    };
    view.scan(&[], None, copy).unwrap();
    rows.into_iter().collect()
}

async fn execute(life: &Life, caller: &mut CommandGenerator, commands: Vec<Command>) {
    let all = join_all(commands.iter().map(|command| life.cluster.execute(command.clone()))).await;
    for (command, outcome) in commands.iter().zip(all) {
        match outcome {
            Ok(reply) => caller.answered(command, &reply),
            Err(Failure::Rejected(_)) => {}
            Err(failure) => panic!("{command:?}: {failure}"),
        }
    }
}

/// Commands that are sent together, so that some are decided together.
fn round(rng: &mut Rng, caller: &mut CommandGenerator, cluster: &Cluster, now: Time) -> Vec<Command> {
    let mut commands = Vec::new();
    for _ in 0..1 + rng.below(12) {
        commands.push(caller.next(rng, &Everywhere(cluster), now));
    }
    // No caller addresses a shard as a whole.
    commands.retain(|command| !matches!(command.body, Body::Catalogue(CatalogueCommand::InstallMachine(_))));
    commands
}

/// Sends an answered command again, perhaps to an earlier life of the server: the answer is the same.
fn repeat(life: &Life, caller: &CommandGenerator, rng: &mut Rng) {
    let Some((command, reply)) = caller.again(rng) else { return };
    let asked = command.clone();
    let remembered = || switchward_engine::is_remembered(&Everywhere(&life.cluster), &asked).unwrap();
    // An answer that changed nothing is computed again.
    if !remembered() {
        return;
    }
    let answer = life.runtime.block_on(life.cluster.execute(command));
    // A day after its session's end it is forgotten, and that may happen at any moment.
    if remembered() {
        assert_eq!(answer, Ok(reply));
    }
}

fn compare(life: &Life, logs: &Logs) {
    for group in 0..GROUPS {
        let live = copied(&life.shard(usize::try_from(group).unwrap()).read_stale());
        logs.replay(group).same(&live, "a replay builds other rows").unwrap();
        live.indexed().unwrap();
    }
}

#[test]
fn what_a_shard_builds_is_what_a_replay_builds() {
    each_seed(1, RUNS, |rng| {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::new(BEGIN);
        let (mut caller, mut logs) = (CommandGenerator::default(), Logs::default());
        let mut life = Life::open(folder.path(), &clock);
        for command in caller.first(rng) {
            life.runtime.block_on(execute(&life, &mut caller, vec![command]));
        }
        for _ in 0..ROUNDS {
            let commands = round(rng, &mut caller, &life.cluster, clock.now());
            life.runtime.block_on(execute(&life, &mut caller, commands));
            repeat(&life, &caller, rng);
            let group = rng.below(usize::try_from(GROUPS).unwrap());
            match rng.below(12) {
                0..=2 => life.shard(group).group().checkpoint().unwrap(),
                3 => life.runtime.block_on(async {
                    logs.read(&life.log).await;
                    purge(life.shard(group).group()).await;
                }),
                4 | 5 => {
                    life.crash();
                    life = Life::open(folder.path(), &clock);
                }
                6 => {
                    life.runtime.block_on(life.cluster.shutdown()).unwrap();
                    life.runtime.block_on(logs.read(&life.log));
                    compare(&life, &logs);
                    life.crash();
                    life = Life::open(folder.path(), &clock);
                }
                7 => _ = clock.advance(*rng.pick(&[1_000, 60_001, 3_600_000, 90_000_000])),
                _ => {}
            }
        }
        life.runtime.block_on(life.cluster.shutdown()).unwrap();
        life.runtime.block_on(logs.read(&life.log));
        compare(&life, &logs);
        let decisions: usize = logs.0.values().map(|(_, decisions)| decisions.len()).sum();
        assert!(decisions > 4 * ROUNDS / 3, "{decisions} decisions");
        life.crash();
    });
}

/// Commands that come one by one, with a crash and a start from the disk after each.
const STEPS: usize = 24;

#[test]
fn a_shard_that_starts_again_after_every_step_is_the_one_that_never_stopped() {
    each_seed(100, 2, |rng| {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::new(BEGIN);
        let (mut caller, mut logs) = (CommandGenerator::default(), Logs::default());
        let mut life = Life::open(folder.path(), &clock);
        for command in caller.first(rng) {
            life.runtime.block_on(execute(&life, &mut caller, vec![command]));
        }
        for step in 0..STEPS {
            let commands = round(rng, &mut caller, &life.cluster, clock.now());
            life.runtime.block_on(execute(&life, &mut caller, commands.into_iter().take(1).collect()));
            repeat(&life, &caller, rng);
            let group = rng.below(usize::try_from(GROUPS).unwrap());
            if step % 3 == 0 {
                life.shard(group).group().checkpoint().unwrap();
            }
            if step % 8 == 0 {
                life.runtime.block_on(async {
                    logs.read(&life.log).await;
                    purge(life.shard(group).group()).await;
                });
            }
            _ = clock.advance(*rng.pick(&[1, 1_000, 3_600_000]));
            life.crash();
            life = Life::open(folder.path(), &clock);
        }
        life.runtime.block_on(life.cluster.shutdown()).unwrap();
        life.runtime.block_on(logs.read(&life.log));
        compare(&life, &logs);
        life.crash();
    });
}
