//! Feature levels: what is written before and after the cluster's level rises, and what becomes of a server that does not
//! know it. Level 2 is one of these tests alone: decisions have a sample from it on.

use openraft::{EntryPayload, RaftLogReader};
use std::sync::Arc;
use switchward_shard::{LogStore, MemberStart, Payload};
use switchward_state::catalogue::{CatalogueCommand, RaiseLevel};
use switchward_state::{Body, Command, Decision, Level, Levels, Reason, Reply, Scope};
use switchward_store::{GroupId, GroupLog, LogOptions, SegmentLog};
use switchward_testkit::{PATIENCE, until};

use crate::commands::create_tenants;
use crate::ensemble::{Ensemble, insist};
use crate::joining::{Callers, Load, callers, verify};
use crate::server::unlocked;
use crate::trio::{NODES, Trio};

/// The version before.
const OLD: Levels = Levels { lowest: Level(1), highest: Level(1) };
/// The version after.
const NEW: Levels = Levels { lowest: Level(1), highest: Level(2) };

fn raise(level: u32) -> Command {
    let raise = CatalogueCommand::RaiseLevel(RaiseLevel { level: Level(level) });
    Command::of_server(switchward_machine::TenantId(0), Scope::Catalogue, Body::Catalogue(raise))
}

/// The decisions in the log of a server that does not run, of all groups.
fn decisions(ensemble: &Ensemble, number: u64) -> Vec<Decision> {
    let data = unlocked(&ensemble.path(number));
    let on_fatal = Box::new(|error: &switchward_store::StoreError| panic!("the log is lost: {error}"));
    let log = Arc::new(SegmentLog::open(&data, LogOptions { on_fatal, sync_fault: None }).unwrap());
    let mut decisions = Vec::new();
    for group in 0..ensemble.groups() {
        let group = GroupId(u64::try_from(group).unwrap());
        let Some((first, _)) = log.first_last(group).unwrap() else { continue };
        // Without a level of its own the store refuses what this program does not know: the bytes are read here.
        for record in log.read(group, first..u64::MAX, usize::MAX).unwrap() {
            let entry = switchward_shard::decode_entry(record.index, &record.bytes).unwrap();
            if let EntryPayload::Normal(Payload(bytes)) = entry.payload {
                decisions.push(Decision::decode(&bytes).unwrap());
            }
        }
    }
    decisions
}

/// Three servers of the old version, each of which was replaced by the new one.
fn upgraded(ensemble: &mut Ensemble) {
    for number in [2, 3, 1] {
        ensemble.shut_down(number);
        ensemble.knows(number, NEW);
        ensemble.begin(number, MemberStart::Resume).unwrap();
    }
}

#[test]
fn nothing_above_the_level_is_written_before_it_rises() {
    let runtime = callers();
    let mut ensemble = Ensemble::of_three(&runtime);
    upgraded(&mut ensemble);
    let all: Vec<_> = ensemble.numbers().into_iter().map(|number| ensemble.cluster(number).clone()).collect();
    let load = Load::begin(&runtime, "before", &all, Callers::Insist);
    let before = runtime.block_on(async {
        load.goes_on(40).await;
        load.end().await
    });
    runtime.block_on(verify(&ensemble, &before));
    drop(all);
    for number in [1, 2, 3] {
        ensemble.shut_down(number);
        let written = decisions(&ensemble, number);
        assert!(written.len() > 20, "{} decisions", written.len());
        assert!(written.iter().all(|decision| decision.level == Level(1) && decision.sample.is_none()));
    }
    ensemble.begin_all(&[1, 2, 3].map(|number| (number, MemberStart::Resume))).unwrap();
    runtime.block_on(async {
        until("all servers have said what they know", async || {
            let servers = ensemble.cluster(1).servers().unwrap();
            servers.iter().all(|server| server.levels == NEW)
        })
        .await;
        let raised = insist(ensemble.cluster(2), raise(2)).await;
        assert!(matches!(raised, Reply::Level { level: Level(2), .. }), "{raised:?}");
        until("all servers know the level", async || {
            let of = |number| ensemble.cluster(number).map().unwrap().unwrap().level;
            [1, 2, 3].map(of) == [Level(2); 3]
        })
        .await;
    });
    let all: Vec<_> = ensemble.numbers().into_iter().map(|number| ensemble.cluster(number).clone()).collect();
    let load = Load::begin(&runtime, "after", &all, Callers::Insist);
    let after = runtime.block_on(async {
        load.goes_on(40).await;
        load.end().await
    });
    runtime.block_on(verify(&ensemble, &after));
    drop(all);
    for number in [1, 2, 3] {
        ensemble.shut_down(number);
        let written = decisions(&ensemble, number);
        let sampled = written.iter().filter(|decision| decision.sample.is_some()).count();
        assert!(sampled > 20, "{sampled} of {} decisions", written.len());
        assert!(written.iter().all(|decision| decision.sample.is_some() == (decision.level == Level(2))));
    }
}

#[test]
fn the_level_does_not_rise_while_a_server_has_the_old_version() {
    let runtime = callers();
    let mut ensemble = Ensemble::of_three(&runtime);
    upgraded(&mut ensemble);
    // One goes back, which nothing forbids at level 1.
    ensemble.shut_down(3);
    ensemble.knows(3, OLD);
    ensemble.begin(3, MemberStart::Resume).unwrap();
    runtime.block_on(async {
        until("the others know its version", async || {
            let servers = ensemble.cluster(1).servers().unwrap();
            servers.iter().all(|server| (server.levels == OLD) == (server.number == 3))
        })
        .await;
        let refused = refused(&ensemble, raise(2)).await;
        assert_eq!((refused.reason, refused.fact_named("server")), (Reason::StateMismatch, Some("3")));
        let status = ensemble.cluster(2).status().await.unwrap();
        assert_eq!((status.level, status.servers[2].levels), (Level(1), OLD));
    });
    ensemble.assert_sound();
}

/// The refusal of a command, once the catalogue has a leader.
async fn refused(ensemble: &Ensemble, command: Command) -> switchward_state::Rejection {
    let refused = async {
        loop {
            match ensemble.cluster(1).execute(command.clone()).await {
                Err(switchward_shard::Failure::Rejected(rejection)) => return rejection,
                Ok(reply) => panic!("it was not refused: {reply:?}"),
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, refused).await.expect("the catalogue answers")
}

#[test]
fn a_server_with_the_old_version_does_not_start_in_a_cluster_of_the_new_level() {
    let runtime = callers();
    let mut ensemble = Ensemble::of_three(&runtime);
    upgraded(&mut ensemble);
    runtime.block_on(async {
        until("all servers have said what they know", async || {
            let servers = ensemble.cluster(1).servers().unwrap();
            servers.iter().all(|server| server.levels == NEW)
        })
        .await;
        insist(ensemble.cluster(1), raise(2)).await;
        until("server 3 knows the level", async || {
            ensemble.cluster(3).map().unwrap().unwrap().level == Level(2)
        })
        .await;
    });
    ensemble.shut_down(3);
    ensemble.knows(3, OLD);
    let refused = ensemble.begin(3, MemberStart::Resume).unwrap_err().to_string();
    assert!(refused.contains("feature level 2") && refused.contains("run a newer version"), "{refused}");
    ensemble.knows(4, OLD);
    let refused = ensemble.begin(4, MemberStart::Join { peers: vec![1, 2] }).unwrap_err().to_string();
    assert!(refused.contains("the cluster writes feature level 2"), "{refused}");
    ensemble.knows(3, NEW);
    ensemble.begin(3, MemberStart::Resume).unwrap();
    runtime.block_on(ensemble.agree());
    ensemble.assert_sound();
}

#[test]
fn a_follower_that_meets_a_higher_level_stops_before_it_acknowledges() {
    let runtime = callers();
    // Nothing has refused the third server: it stands for one that no check has found.
    let mut trio = Trio::patient_at([NEW, NEW, OLD]);
    let mut callers = trio.callers();
    runtime.block_on(async {
        for command in create_tenants() {
            callers.insist(command).await.unwrap();
        }
        let replica = trio.shard(NODES[2], 0).group();
        until("the replica has failed", async || replica.failed().is_some()).await;
        let why = replica.failed().unwrap();
        assert!(why.contains("is of feature level 2, and this server knows levels up to 1"), "{why}");
    });
    trio.kill(NODES[2]);
    // It has written none of it down, and has what the others have once it runs the new version.
    assert!(levels_in(&trio, NODES[2]).iter().all(|level| *level <= Level(1)));
    trio.knows(NODES[2], NEW);
    trio.begin(NODES[2]);
    let digests = runtime.block_on(trio.settled());
    assert!(digests.iter().all(|[one, two, three]| one == two && two == three));
}

/// The levels of the decisions in the catalogue's log on a server that does not run.
fn levels_in(trio: &Trio, node: u64) -> Vec<Level> {
    let data = unlocked(&trio.path(node));
    let on_fatal = Box::new(|error: &switchward_store::StoreError| panic!("the log is lost: {error}"));
    let log = Arc::new(SegmentLog::open(&data, LogOptions { on_fatal, sync_fault: None }).unwrap());
    let mut store = LogStore::new(log as Arc<dyn GroupLog>, GroupId(0));
    let entries = callers().block_on(store.try_get_log_entries(0..)).unwrap();
    let level = |payload| {
        if let EntryPayload::Normal(Payload(bytes)) = payload { Decision::level_of(&bytes) } else { None }
    };
    entries.into_iter().filter_map(|entry| level(entry.payload)).collect()
}
