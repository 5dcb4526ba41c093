//! What a server reports of itself and its replicas.

use minicbor::{Decode, Encode};
use openraft::{Instant as _, async_runtime::WatchReceiver};
use switchward_machine::Time;

use crate::shard::Shard;
use crate::shards::Shards;

/// A server, as it reports itself.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ServerReport {
    /// Its replicas.
    #[n(0)]
    pub(crate) replicas: Vec<ReplicaReport>,
    /// The version of its program.
    #[n(1)]
    pub(crate) version: String,
    /// Free bytes of the disk of its data folder.
    #[n(2)]
    pub(crate) disk_free_bytes: Option<u64>,
    /// Until when its certificate is valid.
    #[n(3)]
    pub(crate) certificate_expires: Option<Time>,
    /// The time by its clock.
    #[n(4)]
    pub(crate) now: Time,
}

/// A replica of a group, as its own server reports it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ReplicaReport {
    /// The group.
    #[n(0)]
    pub(crate) group: u64,
    /// The leader that the replica knows.
    #[n(1)]
    pub(crate) leader: Option<u64>,
    /// Whether the replica itself leads, acknowledged by a majority.
    #[n(2)]
    pub(crate) leads: bool,
    /// Its term.
    #[n(3)]
    pub(crate) term: u64,
    /// Its last entry.
    #[n(4)]
    pub(crate) last: u64,
    /// The last entry that it has applied.
    #[n(5)]
    pub(crate) applied: u64,
    /// The voters that it knows.
    #[n(6)]
    pub(crate) voters: Vec<u64>,
    /// The learners that it knows.
    #[n(7)]
    pub(crate) learners: Vec<u64>,
    /// Why it has failed, if it has.
    #[n(8)]
    pub(crate) failed: Option<String>,
    /// The other members, if it leads.
    #[n(9)]
    pub(crate) followers: Vec<Follower>,
}

/// A member of a group, as its leader knows it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Follower {
    /// The server.
    #[n(0)]
    pub(crate) server: u64,
    /// The last entry that it is known to have.
    #[n(1)]
    pub(crate) matched: Option<u64>,
    /// How long ago it was last heard of, milliseconds.
    #[n(2)]
    pub(crate) silent_ms: Option<u64>,
}

/// This server.
pub(crate) fn report(shards: &Shards) -> ServerReport {
    ServerReport {
        replicas: shards.all().map(of).collect(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        disk_free_bytes: Some(shards.log().disk().free_bytes()).filter(|free| *free > 0),
        certificate_expires: shards.member().and_then(|member| member.handler.certificate_expires()),
        now: shards.now(),
    }
}

fn of(shard: &Shard) -> ReplicaReport {
    let group = shard.group();
    let metrics = group.raft().metrics();
    let now = metrics.borrow_watched();
    let members = now.membership_config.membership();
    let silent = |server: &u64| {
        let contact = now.heartbeat.as_ref()?.get(server).copied().flatten()?;
        u64::try_from(contact.elapsed().as_millis()).ok()
    };
    let followers = now.replication.iter().flatten().filter(|(server, _)| **server != now.id);
    let follower = |(server, matched): (&u64, &Option<_>)| Follower {
        server: *server,
        matched: matched.as_ref().map(|id: &crate::types::LogId| id.index),
        silent_ms: silent(server),
    };
    ReplicaReport {
        group: shard.number(),
        leader: now.current_leader,
        leads: shard.leads(),
        term: now.current_term,
        last: now.last_log_index.unwrap_or(0),
        applied: now.last_applied.map_or(0, |id| id.index),
        voters: members.voter_ids().collect(),
        learners: members.learner_ids().collect(),
        failed: group.failed().map(str::to_owned),
        followers: followers.map(follower).collect(),
    }
}
