//! The servers of a cluster: who may join, and under which number.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use switchward_engine::{decide, evolve};
use switchward_machine::{TenantId, Time};
use switchward_state::catalogue::{
    AssignVoters, CatalogueCommand, ClusterChange, ClusterMap, FoundCluster, JoinServer, RaiseLevel,
    ServerState, SetServerState,
};
use switchward_state::limits::SERVERS_MAX;
use switchward_state::{Body, Command, Key, Level, Levels, Reason, Rejection, Reply, Row, Scope, View as _};
use switchward_testkit::Rows;

#[derive(Default)]
struct Catalogue(Rows);

impl Catalogue {
    fn take(&mut self, command: CatalogueCommand) -> Result<ClusterChange, Rejection> {
        self.answer(command).map(|reply| {
            let Reply::Cluster(change) = reply else { panic!("unexpected reply {reply:?}") };
            *change
        })
    }

    /// Raises the level. Returns the level in force and the epoch.
    fn raise(&mut self, level: u32) -> Result<(u32, u64), Rejection> {
        self.answer(CatalogueCommand::RaiseLevel(RaiseLevel { level: Level(level) })).map(|reply| {
            let Reply::Level { level, epoch } = reply else { panic!("unexpected reply {reply:?}") };
            (level.0, epoch)
        })
    }

    fn answer(&mut self, command: CatalogueCommand) -> Result<Reply, Rejection> {
        let command = Command::of_server(TenantId(0), Scope::Catalogue, Body::Catalogue(command));
        let mut decided = decide(&[command], &self.0, Time(9)).unwrap();
        if let Some(decision) = &decided.decision {
            assert_eq!(evolve(decision, &self.0).unwrap(), decided.changes);
            self.0.apply(decided.changes);
        }
        decided.answers.pop().unwrap()
    }

    fn map(&self) -> ClusterMap {
        let row = self.0.row(&Key::cluster_map()).unwrap();
        let Some(Row::ClusterMap(map)) = row.as_deref() else { panic!("there is no map") };
        map.clone()
    }

    /// As many active servers as there may be.
    fn full() -> Self {
        let mut catalogue = Self::default();
        catalogue.take(found(7, 1)).unwrap();
        for number in 2..=u8::try_from(SERVERS_MAX).unwrap() {
            catalogue.join(u64::from(number), number).unwrap();
        }
        catalogue
    }

    fn join(&mut self, number: u64, folder: u8) -> Result<ClusterChange, Rejection> {
        self.take(CatalogueCommand::JoinServer(server(number, folder)))
    }

    fn set(&mut self, number: u64, state: ServerState) -> Result<ClusterChange, Rejection> {
        self.take(CatalogueCommand::SetServerState(SetServerState {
            number,
            state,
            replaced_by: None,
            epoch: None,
        }))
    }
}

fn levels(highest: u32) -> Levels {
    Levels { lowest: Level(1), highest: Level(highest) }
}

fn server(number: u64, folder: u8) -> JoinServer {
    JoinServer { number, folder: [folder; 16], address: format!("10.0.0.{number}:7001"), levels: levels(1) }
}

fn found(cluster: u8, folder: u8) -> CatalogueCommand {
    CatalogueCommand::FoundCluster(FoundCluster {
        cluster: [cluster; 16],
        server: server(1, folder),
        shards: 2,
        voters: 3,
    })
}

fn reason<T: std::fmt::Debug>(outcome: Result<T, Rejection>) -> Reason {
    outcome.unwrap_err().reason
}

#[test]
fn a_cluster_is_founded_once() {
    let mut catalogue = Catalogue::default();
    assert_eq!(reason(catalogue.join(2, 2)), Reason::NotFound, "a server alone is no cluster");
    let change = catalogue.take(found(7, 1)).unwrap();
    assert_eq!((change.map.epoch, change.map.shards()), (1, 2));
    assert_eq!(catalogue.take(found(7, 1)).unwrap(), change, "said again, it changes nothing");
    assert_eq!(reason(catalogue.take(found(8, 1))), Reason::AlreadyExists);
    assert_eq!(reason(catalogue.take(found(7, 2))), Reason::AlreadyExists);
}

#[test]
fn a_number_belongs_to_one_folder_for_ever() {
    let mut catalogue = Catalogue::default();
    catalogue.take(found(7, 1)).unwrap();
    let joined = catalogue.join(2, 2).unwrap();
    assert_eq!((joined.map.epoch, joined.map.replicas(1)), (2, [1, 2].as_slice()));
    assert_eq!(catalogue.join(2, 2).unwrap(), joined, "said again, it changes nothing");
    assert_eq!(reason(catalogue.join(2, 3)), Reason::AlreadyExists);
    let moved = JoinServer { address: "10.0.0.9:7001".into(), ..server(2, 2) };
    let moved = catalogue.take(CatalogueCommand::JoinServer(moved)).unwrap();
    assert_eq!((moved.map.epoch, moved.server.address.as_str()), (3, "10.0.0.9:7001"));
    assert_eq!(catalogue.set(2, ServerState::Draining).unwrap().map.epoch, 4);
    assert_eq!(catalogue.set(2, ServerState::Draining).unwrap().map.epoch, 4);
    let removed = catalogue.set(2, ServerState::Removed).unwrap();
    assert_eq!((removed.map.epoch, removed.map.replicas(0)), (5, [1].as_slice()));
    assert_eq!(reason(catalogue.join(2, 2)), Reason::StateMismatch);
    assert_eq!(reason(catalogue.set(2, ServerState::Active)), Reason::StateMismatch);
    assert_eq!(reason(catalogue.set(1, ServerState::Removed)), Reason::StateMismatch, "it is the only one");
    assert_eq!(reason(catalogue.set(5, ServerState::Active)), Reason::NotFound);
}

#[test]
fn a_cluster_has_as_many_servers_as_the_limit_says() {
    let mut catalogue = Catalogue::full();
    assert_eq!(reason(catalogue.join(100, 100)), Reason::QuotaExceeded);
    catalogue.set(3, ServerState::Removed).unwrap();
    catalogue.join(100, 100).unwrap();
    let malformed =
        [JoinServer { number: 0, ..server(1, 9) }, JoinServer { address: String::new(), ..server(101, 7) }];
    for join in malformed {
        assert_eq!(reason(catalogue.take(CatalogueCommand::JoinServer(join))), Reason::FieldInvalid);
    }
    let old = JoinServer { levels: levels(0), ..server(100, 100) };
    assert_eq!(reason(catalogue.take(CatalogueCommand::JoinServer(old))), Reason::StateMismatch);
}

#[test]
fn a_lost_server_of_the_largest_cluster_is_replaced_by_one_more() {
    let mut catalogue = Catalogue::full();
    let replace = |replaced_by, epoch| {
        let state = ServerState::Draining;
        CatalogueCommand::SetServerState(SetServerState { number: 3, state, replaced_by, epoch })
    };
    assert_eq!(reason(catalogue.take(replace(Some(100), None))), Reason::StateMismatch, "there is none");
    assert_eq!(
        reason(catalogue.take(replace(Some(3), None))),
        Reason::StateMismatch,
        "nobody replaces itself"
    );
    catalogue.take(replace(None, None)).unwrap();
    let joined = catalogue.join(100, 100).unwrap();
    assert_eq!(joined.map.replicas(1).len(), SERVERS_MAX + 1);
    assert_eq!(reason(catalogue.set(3, ServerState::Active)), Reason::QuotaExceeded);
    let old = joined.map.epoch - 1;
    assert_eq!(reason(catalogue.take(replace(Some(100), Some(old)))), Reason::EtagMismatch);
    let replaced = catalogue.take(replace(Some(100), Some(joined.map.epoch))).unwrap();
    assert_eq!(replaced.server.replaced_by, Some(100));
    assert_eq!(catalogue.take(replace(Some(100), Some(old))).unwrap(), replaced, "it is so already");
    assert_eq!(reason(catalogue.join(101, 101)), Reason::QuotaExceeded);
}

#[test]
fn a_cluster_is_founded_with_an_odd_number_of_voters() {
    for (voters, refused) in [(0, true), (1, false), (2, true), (3, false), (4, true), (5, false), (7, true)]
    {
        let found = FoundCluster { cluster: [7; 16], server: server(1, 1), shards: 2, voters };
        let answer = Catalogue::default().take(CatalogueCommand::FoundCluster(found));
        assert_eq!(answer.is_err_and(|no| no.reason == Reason::FieldInvalid), refused, "{voters}");
    }
}

#[test]
fn one_voter_of_a_group_moves_at_a_time() {
    let mut catalogue = Catalogue::default();
    catalogue.take(found(7, 1)).unwrap();
    for number in 2..=5 {
        catalogue.join(number, u8::try_from(number).unwrap()).unwrap();
    }
    assert_eq!((catalogue.map().epoch, catalogue.map().voters_of(2)), (5, [1, 2, 3].as_slice()));
    let assign = |group, voters: &[u64], epoch| {
        CatalogueCommand::AssignVoters(AssignVoters { group, voters: voters.to_vec(), epoch })
    };
    for (what, group, voters, epoch, expected) in [
        ("no such group", 3, &[1, 2, 4][..], 5, Reason::NotFound),
        ("an old map", 2, &[1, 2, 4], 4, Reason::EtagMismatch),
        ("two that are new", 2, &[1, 4, 5], 5, Reason::StateMismatch),
        ("two that go", 2, &[1], 5, Reason::StateMismatch),
        ("more than there may be", 2, &[1, 2, 3, 4], 5, Reason::StateMismatch),
        ("no server", 2, &[1, 2, 9], 5, Reason::StateMismatch),
        ("another order", 2, &[2, 1, 4], 5, Reason::StateMismatch),
    ] {
        assert_eq!(reason(catalogue.answer(assign(group, voters, epoch))), expected, "{what}");
    }
    assert_eq!(catalogue.answer(assign(2, &[1, 2, 4], 5)), Ok(Reply::Done));
    assert_eq!(catalogue.answer(assign(2, &[1, 2, 4], 5)), Ok(Reply::Done), "said again, it changes nothing");
    let map = catalogue.map();
    assert_eq!((map.epoch, map.voters_of(1), map.voters_of(2)), (6, &[1, 2, 3][..], &[1, 2, 4][..]));
    assert_eq!(map.replicas(2), [1, 2, 3, 4, 5]);
    // A free seat goes to the next server that joins.
    catalogue.set(4, ServerState::Removed).unwrap();
    assert_eq!(catalogue.map().voters_of(2), [1, 2]);
    assert_eq!(catalogue.join(6, 6).unwrap().map.voters_of(2), [1, 2, 6]);
}

/// A server that knows levels up to this one joins, or starts again.
fn at_level(number: u64, highest: u32) -> CatalogueCommand {
    let folder = u8::try_from(number).unwrap();
    CatalogueCommand::JoinServer(JoinServer { levels: levels(highest), ..server(number, folder) })
}

#[test]
fn the_level_rises_when_all_servers_know_it_and_never_falls() {
    let mut catalogue = Catalogue::default();
    assert_eq!(reason(catalogue.raise(2)), Reason::NotFound, "a server alone has no cluster");
    catalogue.take(found(7, 1)).unwrap();
    catalogue.take(at_level(2, 2)).unwrap();
    catalogue.take(at_level(3, 3)).unwrap();
    let refused = catalogue.raise(2).unwrap_err();
    assert_eq!((refused.reason, refused.fact_named("server")), (Reason::StateMismatch, Some("1")));
    let known = catalogue.take(at_level(1, 2)).unwrap();
    assert_eq!((known.server.levels, known.map.level), (levels(2), Level(1)), "it does not rise by itself");
    assert_eq!(catalogue.raise(2).unwrap(), (2, known.map.epoch + 1));
    assert_eq!(catalogue.raise(2).unwrap(), (2, known.map.epoch + 1), "said again, it changes nothing");
    assert_eq!(reason(catalogue.raise(1)), Reason::StateMismatch);
    assert_eq!(reason(catalogue.raise(3)), Reason::StateMismatch);
    let again = catalogue.take(at_level(3, 3)).unwrap();
    assert_eq!((again.map.level, again.map.epoch), (Level(2), known.map.epoch + 1));
    assert_eq!(reason(catalogue.take(at_level(2, 1))), Reason::StateMismatch, "an older version");
    assert_eq!(reason(catalogue.take(at_level(4, 1))), Reason::StateMismatch);
}

#[test]
fn a_removed_server_does_not_hold_the_level_back() {
    let mut catalogue = Catalogue::default();
    catalogue.take(found(7, 1)).unwrap();
    catalogue.take(at_level(1, 2)).unwrap();
    catalogue.take(at_level(2, 1)).unwrap();
    catalogue.set(2, ServerState::Draining).unwrap();
    assert_eq!(reason(catalogue.raise(2)), Reason::StateMismatch, "it still holds replicas");
    catalogue.set(2, ServerState::Removed).unwrap();
    assert_eq!(catalogue.raise(2).unwrap().0, 2);
}

#[test]
fn a_server_that_writes_only_higher_levels_is_refused() {
    let mut catalogue = Catalogue::default();
    catalogue.take(found(7, 1)).unwrap();
    let levels = Levels { lowest: Level(2), highest: Level(3) };
    let refused =
        catalogue.take(CatalogueCommand::JoinServer(JoinServer { levels, ..server(2, 2) })).unwrap_err();
    assert!(refused.message.contains("raise the cluster's level first"), "{}", refused.message);
}
