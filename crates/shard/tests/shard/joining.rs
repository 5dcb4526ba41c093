//! Servers found a cluster, join it, start again, and are removed.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
use switchward_engine::session_view;
use switchward_machine::Status;
use switchward_shard::limits::APPEND_STREAMS_MAX;
use switchward_shard::{Cluster, MemberStart};
use switchward_state::catalogue::{ClusterMap, ServerState};
use switchward_state::{Command, Reply};
use switchward_testkit::until;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::commands::{DEPLOY_GATE, answer, definition, session, start, tenant};
use crate::ensemble::{CLUSTER, Ensemble, insist, prepare, set_server_state};
use crate::server::{Server, Setup};

/// Callers who work at the same time.
const CALLERS: usize = 4;

pub(crate) fn callers() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// The steps of a session from its start to its end.
fn steps(key: &str) -> Vec<Command> {
    let answers = (0..3).map(|at| answer(key, &format!("{key} answer {at}"), "yes"));
    [start(&definition(DEPLOY_GATE), key)].into_iter().chain(answers).collect()
}

/// What callers have been answered.
type Answered = Vec<(Command, Reply)>;

/// Callers who walk sessions through the gate, until they are stopped.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    pub(crate) done: Arc<AtomicUsize>,
    tasks: Vec<JoinHandle<Answered>>,
}

/// What callers do about a failure.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callers {
    /// They send the command again.
    Insist,
    /// There must be none.
    Strict,
}

impl Load {
    /// Each step goes to the next of these servers.
    pub(crate) fn begin(runtime: &Runtime, name: &str, clusters: &[Cluster], callers: Callers) -> Self {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let work = |caller: usize| {
            let (stop, done, clusters) = (Arc::clone(&stop), Arc::clone(&done), clusters.to_vec());
            let name = name.to_owned();
            runtime.spawn(async move {
                let mut answered = Vec::new();
                for number in 0.. {
                    if stop.load(Ordering::SeqCst) {
                        break;
                    }
                    for (at, step) in steps(&format!("{name} {caller} {number}")).into_iter().enumerate() {
                        let cluster = &clusters[(caller + number + at) % clusters.len()];
                        let reply = match callers {
                            Callers::Insist => insist(cluster, step.clone()).await,
                            Callers::Strict => cluster.execute(step.clone()).await.unwrap(),
                        };
                        answered.push((step, reply));
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                }
                answered
            })
        };
        let tasks = (0..CALLERS).map(work).collect();
        Self { stop, done, tasks }
    }

    /// Waits until the callers have done this many steps more.
    pub(crate) async fn goes_on(&self, steps: usize) {
        let before = self.done.load(Ordering::SeqCst);
        until("the callers go on", async || self.done.load(Ordering::SeqCst) >= before + steps).await;
    }

    pub(crate) async fn end(self) -> Answered {
        self.stop.store(true, Ordering::SeqCst);
        let mut all = Vec::new();
        for task in self.tasks {
            all.extend(task.await.unwrap());
        }
        all
    }
}

/// Each server gives the same answers again, and all have the same rows.
pub(crate) async fn verify(ensemble: &Ensemble, answered: &Answered) {
    assert!(!answered.is_empty());
    let numbers = ensemble.numbers();
    for (at, (step, reply)) in answered.iter().enumerate() {
        let cluster = ensemble.cluster(numbers[at % numbers.len()]);
        assert_eq!(insist(cluster, step.clone()).await, *reply);
    }
    ensemble.agree().await;
    ensemble.assert_sound();
}

fn map(ensemble: &Ensemble, number: u64) -> ClusterMap {
    ensemble.cluster(number).map().unwrap().unwrap()
}

fn join(peers: &[u64]) -> MemberStart {
    MemberStart::Join { peers: peers.to_vec() }
}

#[test]
fn two_servers_join_one_under_load_and_nothing_is_lost() {
    let runtime = callers();
    let mut ensemble = Ensemble::new();
    ensemble.begin(1, MemberStart::FoundCluster).unwrap();
    runtime.block_on(prepare(ensemble.cluster(1)));
    let map_of_one = map(&ensemble, 1);
    assert_eq!((map_of_one.cluster, map_of_one.epoch, map_of_one.shards()), (CLUSTER.0, 1, 2));
    let load = Load::begin(&runtime, "join", &[ensemble.cluster(1).clone()], Callers::Insist);
    runtime.block_on(load.goes_on(20));
    ensemble.begin(2, join(&[1])).unwrap();
    // Two servers have one voter.
    runtime.block_on(ensemble.votes(&[1]));
    // A server that is no leader passes the request on.
    ensemble.begin(3, join(&[9, 2])).unwrap();
    runtime.block_on(async {
        ensemble.votes(&[1, 2, 3]).await;
        load.goes_on(20).await;
        let answered = load.end().await;
        until("all servers know the map", async || {
            [1, 2, 3].iter().all(|number| map(&ensemble, *number).replicas(2) == [1, 2, 3])
        })
        .await;
        verify(&ensemble, &answered).await;
        let servers = ensemble.cluster(3).servers().unwrap();
        let addresses: Vec<&str> = servers.iter().map(|server| server.address.as_str()).collect();
        assert_eq!(addresses, ["10.0.0.1:7001", "10.0.0.2:7001", "10.0.0.3:7001"]);
        assert_eq!(ensemble.cluster(3).shard_count(), 2);
    });
    for number in [2, 3] {
        // A scrub would purge a log that another server may lack.
        assert!(
            !ensemble.path(number).join("SCRUB").exists(),
            "server {number} had nothing before its snapshot"
        );
    }
}

#[test]
fn all_groups_together_have_a_few_streams_to_another_server() {
    let runtime = callers();
    let shards = u32::try_from(APPEND_STREAMS_MAX).unwrap() + 2;
    let mut ensemble = Ensemble::with_shards(shards);
    ensemble.begin(1, MemberStart::FoundCluster).unwrap();
    // It does not vote, so the first server leads all groups.
    ensemble.begin(2, join(&[1])).unwrap();
    runtime.block_on(async {
        // The first append of a group is sent by itself.
        for _ in 0..3 {
            for group in 0..=u64::from(shards) {
                let seen = ensemble.cluster(1).verify(group).await.unwrap();
                assert_eq!(seen.agreeing(), [1, 2], "{seen:?}");
            }
        }
        ensemble.agree().await;
    });
    let streams = ensemble.network.entry_streams_max();
    assert!((2..=APPEND_STREAMS_MAX).contains(&streams), "{streams} streams are open");
    ensemble.assert_sound();
}

#[test]
fn all_servers_start_again_and_know_what_they_knew() {
    let runtime = callers();
    let mut ensemble = Ensemble::of_three(&runtime);
    let all = ensemble.numbers().into_iter().map(|number| ensemble.cluster(number).clone());
    let load = Load::begin(&runtime, "again", &all.collect::<Vec<_>>(), Callers::Strict);
    let answered = runtime.block_on(async {
        load.goes_on(40).await;
        load.end().await
    });
    for number in [1, 2, 3] {
        ensemble.kill(number);
    }
    // Those that joined may be told again to join, and the first one to found the cluster.
    ensemble.begin_all(&[(1, MemberStart::FoundCluster), (2, join(&[1])), (3, MemberStart::Resume)]).unwrap();
    runtime.block_on(verify(&ensemble, &answered));
    assert_eq!(map(&ensemble, 2).epoch, 3, "nothing was changed by the restart");
}

#[test]
fn a_server_that_starts_again_at_another_address_comes_back() {
    let runtime = callers();
    let mut ensemble = Ensemble::of_three(&runtime);
    for (number, address) in [(3, "10.0.0.33:7001"), (1, "10.0.0.11:7001")] {
        ensemble.kill(number);
        ensemble.moves(number, address);
        // No leader reaches it before the cluster knows its address.
        ensemble.begin(number, MemberStart::Resume).unwrap();
        runtime.block_on(async {
            ensemble.agree().await;
            let shard = ensemble.shard(number, 0);
            until("a leader reaches it", async || shard.read().await.is_ok()).await;
            until("the others know its address", async || {
                let servers = ensemble.cluster(2).servers().unwrap();
                servers.iter().any(|server| (server.number, server.address.as_str()) == (number, address))
            })
            .await;
        });
    }
    runtime.block_on(ensemble.votes(&[1, 2, 3]));
    ensemble.assert_sound();
}

#[test]
fn a_server_alone_becomes_the_first_one_of_a_cluster() {
    let runtime = callers();
    let mut ensemble = Ensemble::new();
    let setup = Setup { shards: 2, ..Setup::new(&ensemble.path(1)) };
    let server = Server::open(&setup);
    server.run(prepare(server.cluster()));
    let begun = server.run(server.cluster().execute(steps("alone")[0].clone())).unwrap();
    assert_eq!(server.cluster().map().unwrap(), None);
    server.shut_down();
    ensemble.begin(1, MemberStart::FoundCluster).unwrap();
    for number in [2, 3] {
        ensemble.begin(number, join(&[1])).unwrap();
    }
    runtime.block_on(async {
        ensemble.votes(&[1, 2, 3]).await;
        verify(&ensemble, &vec![(steps("alone")[0].clone(), begun)]).await;
    });
}

#[test]
fn the_number_of_a_wiped_or_removed_server_is_refused() {
    let runtime = callers();
    let mut ensemble = Ensemble::of_three(&runtime);
    ensemble.kill(3);
    std::fs::remove_dir_all(ensemble.path(3)).unwrap();
    let refused = ensemble.begin(3, join(&[1, 2])).unwrap_err().to_string();
    assert!(refused.contains("the number belongs to a server with another data folder"), "{refused}");
    let removed = runtime.block_on(set_server_state(ensemble.cluster(2), 3, ServerState::Removed));
    assert_eq!(removed.map.replicas(0), [1, 2]);
    std::fs::remove_dir_all(ensemble.path(3)).unwrap();
    let refused = ensemble.begin(3, join(&[1, 2])).unwrap_err().to_string();
    assert!(refused.contains("its number cannot be used again"), "{refused}");
    runtime.block_on(async {
        until("one of the two others votes", async || {
            let leader = ensemble.leader(1).await;
            ensemble.shard(leader, 1).group().raft().voter_ids().count() == 1
        })
        .await;
    });
    // Another one takes its part.
    ensemble.begin(4, join(&[1, 2])).unwrap();
    runtime.block_on(async {
        ensemble.votes(&[1, 2, 4]).await;
        let load = Load::begin(&runtime, "four", &[ensemble.cluster(4).clone()], Callers::Strict);
        load.goes_on(20).await;
        verify(&ensemble, &load.end().await).await;
    });
}

#[test]
fn a_server_that_has_not_joined_does_not_begin_by_itself() {
    let mut ensemble = Ensemble::new();
    let refused = ensemble.begin(2, MemberStart::Resume).unwrap_err().to_string();
    assert_eq!(refused, "server 2 has not joined its cluster yet");
    let refused = ensemble.begin(2, join(&[2])).unwrap_err().to_string();
    assert_eq!(refused, "a server that joins needs another server to ask");
}

#[test]
fn a_follower_reads_its_own_write_and_any_server_answers_alike() {
    let runtime = callers();
    let ensemble = Ensemble::of_three(&runtime);
    runtime.block_on(async {
        for (at, key) in ["one 0", "two 1", "three 0", "four 1"].into_iter().enumerate() {
            for (step, command) in steps(key).into_iter().enumerate() {
                let number = [1, 2, 3][(at + step) % 3];
                let cluster = ensemble.cluster(number);
                let reply = insist(cluster, command.clone()).await;
                let Reply::Session { sequence, .. } = &reply else { panic!("{reply:?}") };
                // Whatever it had before, who reads there finds its own write.
                let shard = cluster.shard_of(session(key).bucket());
                let seen = |view: &switchward_shard::StateView| {
                    session_view(view, tenant(key), session(key)).unwrap().unwrap().session.sequence
                };
                assert_eq!(seen(&shard.read().await.unwrap()), *sequence);
                for other in [1, 2, 3] {
                    let shard = ensemble.cluster(other).shard_of(session(key).bucket());
                    assert_eq!(seen(&shard.read().await.unwrap()), *sequence, "server {other}");
                    assert_eq!(insist(ensemble.cluster(other), command.clone()).await, reply);
                }
            }
            let shard = ensemble.cluster(2).shard_of(session(key).bucket());
            let found = session_view(&shard.read().await.unwrap(), tenant(key), session(key)).unwrap();
            assert_eq!(found.unwrap().session.status, Status::Completed);
        }
    });
    ensemble.assert_sound();
}

#[test]
fn any_server_shows_the_status_of_all() {
    let runtime = callers();
    let mut ensemble = Ensemble::of_three(&runtime);
    runtime.block_on(async {
        until("each group has a leader", async || {
            let status = ensemble.cluster(2).status().await.unwrap();
            status.groups.iter().all(|group| group.leader.is_some() && group.voters.len() == 3)
                && status.servers.iter().all(|server| server.reachable)
        })
        .await;
        let status = ensemble.cluster(2).status().await.unwrap();
        assert_eq!((status.cluster, status.own, status.epoch), (Some(CLUSTER.0), 2, 3));
        let led: usize = status.servers.iter().map(|server| server.leads.len()).sum();
        assert_eq!(led, status.groups.len());
        assert!(status.groups.iter().all(|group| group.replicas.iter().all(|one| one.failed.is_none())));
    });
    ensemble.kill(3);
    runtime.block_on(async {
        until("the dead server is missed", async || {
            let status = ensemble.cluster(2).status().await.unwrap();
            let reachable: Vec<bool> = status.servers.iter().map(|server| server.reachable).collect();
            reachable == [true, true, false]
        })
        .await;
    });
}
