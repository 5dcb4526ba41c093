//! What outlasts the servers of a node: they are started on it, and started again.

use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use switchward_shard::{Cluster, ClusterOptions, ManualClock, RaftSettings};
use switchward_state::seal::{KeyRing, RingKey};
use switchward_store::{DataDir, StoreError};
use switchward_testkit::until;
use switchward_testnet::{Network, Server, ServerOptions};
use tempfile::TempDir;

use super::{BEGUN, CACHE_BYTES, Node, PATIENT, SHARDS, Served};
use crate::quarantine_store::Memory;

/// See the module.
pub(super) struct Remains {
    pub(super) data: TempDir,
    pub(super) clock: ManualClock,
    pub(super) fatal: Arc<Mutex<Vec<String>>>,
    /// The mail that each server keeps, which is as many as there are servers once they have run.
    pub(super) quarantines: Vec<Arc<Memory>>,
}

impl Remains {
    pub(super) fn new() -> Self {
        Self {
            data: folder(),
            clock: ManualClock::new(BEGUN),
            fatal: Arc::default(),
            quarantines: std::iter::repeat_with(Arc::default).take(3).collect(),
        }
    }

    /// Opens a server alone.
    pub(super) async fn open_one(&self) -> Cluster {
        let reasons = Arc::clone(&self.fatal);
        let options = ClusterOptions {
            data: DataDir::open(self.data.path()).expect("a data folder"),
            shards: SHARDS,
            cache_bytes: CACHE_BYTES,
            clock: Arc::new(self.clock.clone()),
            ring: ring(),
            on_fatal: Box::new(move |why| reasons.lock().push(why.to_owned())),
            member: None,
        };
        Cluster::open(options).await.expect("a cluster")
    }

    /// Opens three servers of one cluster, which has to be founded if they are new.
    pub(super) async fn open_three(&self, network: &Network, raft: RaftSettings) -> Vec<Server> {
        let reasons = Arc::clone(&self.fatal);
        let options = ServerOptions {
            folder: self.data.path(),
            shards: u64::from(SHARDS),
            cache_bytes: CACHE_BYTES / 16,
            clocks: [(); 3].map(|()| Arc::new(self.clock.clone()) as _),
            ring: ring(),
            raft,
            on_fatal: Arc::new(move |why: &str| reasons.lock().push(why.to_owned())),
        };
        switchward_testnet::open_members(&options, network).await.expect("three servers")
    }

    /// Waits until nothing of the ended servers holds their files: connections and tasks end in their own time.
    async fn released(&self) {
        for folder in self.folders() {
            until("the data folder is released", async || match DataDir::open(&folder) {
                Err(StoreError::InUse { .. }) => false,
                opened => {
                    drop(opened.expect("a data folder"));
                    true
                }
            })
            .await;
        }
    }

    /// The data folder of each server.
    fn folders(&self) -> Vec<PathBuf> {
        let root = self.data.path();
        match self.quarantines.len() {
            1 => vec![root.to_owned()],
            servers => (1..=servers).map(|number| root.join(format!("server-{number}"))).collect(),
        }
    }
}

impl Node {
    /// Ends all servers, and starts them again on their data, at other ports. Their pages sign nobody in.
    pub(crate) async fn restarted(self) -> Self {
        let several = self.network.is_some();
        let kept = self.stop().await;
        kept.released().await;
        if !several {
            let cluster = kept.open_one().await;
            return Self::serving(vec![cluster], None, kept, None).await;
        }
        let network = Network::default();
        let servers = kept.open_three(&network, PATIENT).await;
        let clusters = servers.into_iter().map(|server| server.cluster).collect();
        Self::serving(clusters, Some(network), kept, None).await
    }

    /// Ends all servers; fails if one has stopped by itself.
    pub(super) async fn stop(self) -> Remains {
        let Self {
            cluster,
            clock,
            line,
            api,
            app,
            quarantine,
            quarantines,
            servers,
            network,
            fatal,
            data,
            ..
        } = self;
        drop((cluster, line, api, app, quarantine));
        quarantines.end();
        let mut stores = Vec::new();
        for Served { cluster, api, app, quarantine, through, stop, ended } in servers {
            drop(app);
            api.drain();
            stop.send(()).expect("the server runs");
            ended.await.expect("no panic");
            drop(through);
            cluster.shutdown().await.expect("the state is written");
            stores.push(quarantine);
        }
        // The network holds the servers.
        network.iter().for_each(|network| (1..=3).for_each(|node| network.leave(node)));
        assert_eq!(*fatal.lock(), Vec::<String>::new());
        Remains { data, clock, fatal, quarantines: stores }
    }
}

fn ring() -> KeyRing {
    KeyRing::of(vec![RingKey::of([1; 32])])
}

/// In memory if there is such a folder: no test here is about disks, and all of them would wait for the disk.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
}
