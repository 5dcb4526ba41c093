//! The servers of a cluster: who may join, and under which number.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use switchward_engine::decide;
use switchward_machine::{TenantId, Time};
use switchward_state::catalogue::{
    CatalogueCommand, ClusterChange, FoundCluster, JoinServer, ServerState, SetServerState,
};
use switchward_state::limits::SERVERS_MAX;
use switchward_state::{Body, Command, Reason, Rejection, Reply, Scope, evolve};
use switchward_testkit::Rows;

#[derive(Default)]
struct Catalogue(Rows);

impl Catalogue {
    fn take(&mut self, command: CatalogueCommand) -> Result<ClusterChange, Rejection> {
        let command = Command::of_server(TenantId(0), Scope::Catalogue, Body::Catalogue(command));
        let mut decided = decide(&[command], &self.0, Time(9)).unwrap();
        if let Some(decision) = &decided.decision {
            assert_eq!(evolve(decision, &self.0).unwrap(), decided.changes);
            self.0.apply(decided.changes);
        }
        decided.answers.pop().unwrap().map(|reply| {
            let Reply::Cluster(change) = reply else { panic!("unexpected reply {reply:?}") };
            *change
        })
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

fn server(number: u64, folder: u8) -> JoinServer {
    JoinServer { number, folder: [folder; 16], address: format!("10.0.0.{number}:7001"), level: 1 }
}

fn found(cluster: u8, folder: u8) -> CatalogueCommand {
    CatalogueCommand::FoundCluster(FoundCluster {
        cluster: [cluster; 16],
        server: server(1, folder),
        shards: 2,
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
fn a_cluster_has_five_servers_at_most() {
    let mut catalogue = Catalogue::default();
    catalogue.take(found(7, 1)).unwrap();
    for number in 2..=u8::try_from(SERVERS_MAX).unwrap() {
        catalogue.join(u64::from(number), number).unwrap();
    }
    assert_eq!(reason(catalogue.join(6, 6)), Reason::QuotaExceeded);
    catalogue.set(3, ServerState::Removed).unwrap();
    catalogue.join(6, 6).unwrap();
    let malformed =
        [JoinServer { number: 0, ..server(1, 9) }, JoinServer { address: String::new(), ..server(7, 7) }];
    for join in malformed {
        assert_eq!(reason(catalogue.take(CatalogueCommand::JoinServer(join))), Reason::FieldInvalid);
    }
    let old = JoinServer { level: 0, ..server(6, 6) };
    assert_eq!(reason(catalogue.take(CatalogueCommand::JoinServer(old))), Reason::StateMismatch);
}

#[test]
fn a_lost_server_of_five_is_replaced_by_a_sixth() {
    let mut catalogue = Catalogue::default();
    catalogue.take(found(7, 1)).unwrap();
    for number in 2..=5 {
        catalogue.join(number, u8::try_from(number).unwrap()).unwrap();
    }
    let replace = |replaced_by, epoch| {
        let state = ServerState::Draining;
        CatalogueCommand::SetServerState(SetServerState { number: 3, state, replaced_by, epoch })
    };
    assert_eq!(reason(catalogue.take(replace(Some(6), None))), Reason::StateMismatch, "there is no server 6");
    assert_eq!(
        reason(catalogue.take(replace(Some(3), None))),
        Reason::StateMismatch,
        "nobody replaces itself"
    );
    catalogue.take(replace(None, None)).unwrap();
    let joined = catalogue.join(6, 6).unwrap();
    assert_eq!(joined.map.replicas(1), [1, 2, 3, 4, 5, 6]);
    assert_eq!(reason(catalogue.set(3, ServerState::Active)), Reason::QuotaExceeded);
    let old = joined.map.epoch - 1;
    assert_eq!(reason(catalogue.take(replace(Some(6), Some(old)))), Reason::EtagMismatch);
    let replaced = catalogue.take(replace(Some(6), Some(joined.map.epoch))).unwrap();
    assert_eq!(replaced.server.replaced_by, Some(6));
    assert_eq!(catalogue.take(replace(Some(6), Some(old))).unwrap(), replaced, "it is so already");
    assert_eq!(reason(catalogue.join(7, 7)), Reason::QuotaExceeded);
}
