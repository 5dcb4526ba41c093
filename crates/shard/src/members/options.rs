//! How a server takes part in a cluster.

use std::fmt;
use std::sync::Arc;

use switchward_state::Levels;
use tokio::runtime::Handle;

use super::handler::MemberHandler;
use crate::group::RaftSettings;
use crate::peers::Transport;

/// What makes a server a member of a cluster. Its data folder must be bound to the cluster and to the number, see
/// [`DataDir::claim`](switchward_store::DataDir::claim).
#[derive(Clone)]
pub struct MemberOptions {
    /// The server's number, from 1; never given to another server.
    pub number: u64,
    /// Sends messages to the other servers.
    pub transport: Arc<dyn Transport>,
    /// Answers those that the transport receives.
    pub handler: Arc<MemberHandler>,
    /// Where other servers reach this one: `host:port`.
    pub address: String,
    /// How the server begins.
    pub start: MemberStart,
    /// Voters of each group, if the server founds its cluster: an odd number.
    pub voters: u32,
    /// Where Raft's tasks run. The best is where the connections of the transport are served, if nothing else runs there: then
    /// an entry, its answer and the notice that it is committed need no other thread than that of the log. `None` for threads
    /// of its own.
    pub runtime: Option<Handle>,
    /// Raft's timing; the same on all servers.
    pub raft: RaftSettings,
    /// The server's feature levels: [`Levels::OF_PROGRAM`], except in tests.
    pub levels: Levels,
}

/// How a member begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberStart {
    /// It founds a cluster of itself. Its data folder is new, or that of a server alone, whose number is 1. Repeated, it
    /// changes nothing.
    FoundCluster,
    /// It asks these servers until one of them has admitted it. Repeated, it changes nothing.
    Join {
        /// The servers to ask, by their numbers.
        peers: Vec<u64>,
    },
    /// It is a member already.
    Resume,
}

impl fmt::Debug for MemberOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, address, start, .. } = self;
        f.debug_struct("MemberOptions")
            .field("number", number)
            .field("address", address)
            .field("start", start)
            .finish_non_exhaustive()
    }
}
