//! A shard: the engine, replicated.
//!
//! One Raft group per shard; the groups of a server share its log and its state store. Each shard has one loop
//! that drains its queue, decides the commands on its state, replicates the decision as one log entry, and answers
//! when the entry is applied. One entry is in flight at a time, so a decision always sees all that came before it.
//!
//! - [`Cluster`] is what the gateway holds: it routes a command to the shard that owns its bucket, and carries out
//!   what needs several shards (a call that a limit counts, a machine that a shard has not got yet).
//! - [`Shard`] is one group's handle: submit, read, watch.
//! - [`Clock`] is the only source of time; [`MonotonicClock`] says what holds when a machine's clock jumps.
//! - [`TimerTransport`] takes what is due out of a shard, and [`Cluster::fire`] brings it back.
//! - [`RaftPeers`] sends Raft's messages to other servers over a [`Transport`], and [`RaftHandler`] answers theirs.
//! - [`MemberOptions`] make a server a member of a cluster; [`MemberHandler`] answers all that other members send.
//!
//! This crate must never know: formats, gRPC, mail, files (those are `store`'s). No other crate sees openraft.
//!
//! Chosen: openraft with one entry in flight through `client_write`. Rejected: two in flight or lingering for
//! company (both make throughput worse, because load makes batches bigger by itself), and bypassing openraft (no
//! gain beyond noise).

#[macro_use]
mod is_planted;

mod backup;
mod blocking;
mod clock;
mod clock_watch;
mod cluster;
mod codec;
mod contact;
mod contact_watch;
mod decide_loop;
mod deletions;
mod evolved;
mod failed;
mod failure;
mod group;
mod halt;
mod hand_over;
mod leader_tasks;
mod leadership;
mod leading;
mod level;
pub mod limits;
mod log_store;
mod maintenance;
mod mark;
mod marks;
mod may_lead;
mod members;
mod membership;
mod metrics;
mod no_peers;
mod outbox;
mod own_runtime;
mod owner_watch;
mod peers;
#[cfg(feature = "planted")]
pub mod planted;
mod propose;
mod puts;
mod queue;
mod readers;
mod ready_tasks;
mod record;
mod refused;
mod remote;
mod removals;
mod retention;
mod routes;
mod scrub;
mod shard;
mod shards;
mod shared;
#[cfg(feature = "simulation")]
pub mod simulation;
mod snapshot;
mod state_machine;
mod tenancies;
mod tenant_permits;
mod throttle;
mod timers;
mod traces;
mod types;
mod verify;
mod view;
mod watch;

pub use backup::{BackupRows, check_backup, restore_backup};
pub use clock::{
    Clock, ClockAgreement, ClockOffset, MachineClocks, ManualClock, MonotonicClock, RawClocks, SystemClock,
};
pub use cluster::{Cluster, ClusterOptions, KeysMissing, SealedUnder, check_keys, sealed_in_backup};
pub use codec::{decode_entry, encode_entry};
pub use contact::ContactWatch;
pub use failure::Failure;
pub use group::{Group, GroupOptions, GroupParts, GroupStart, RaftSettings};
pub use halt::OnFatal;
pub use hand_over::NotHandedOver;
pub use log_store::LogStore;
pub use members::{
    ClusterStatus, Follower, GroupStatus, HandOver, MemberHandler, MemberOptions, MemberStart, NotNow,
    ReplicaReport, ReplicaStatus, ServerAnswer, ServerReport, ServerStatus,
};
pub use metrics::ShardMetrics;
pub use no_peers::NoPeers;
pub use own_runtime::OwnRuntime;
pub use owner_watch::{MapChanges, OwnerWatch};
pub use peers::codec as raft_messages;
pub use peers::{
    Peer, PeerConnection, PeerError, PeerRequest, PeerStream, RaftHandler, RaftLink, RaftNetwork, RaftPeers,
    Transport,
};
pub use remote::{
    Answer, LeaderQuestion, LeaderRequest, QUESTION as LEADER_QUESTION, ToLeaders, decode_answer,
    decode_asked, encode_answer, encode_asked, serve,
};
pub use retention::LogRetention;
pub use shard::Shard;
pub use snapshot::{SnapshotExport, SnapshotSource, received};
pub use state_machine::StateMachine;
pub use tenant_permits::{TenantPermit, TenantPermits};
pub use throttle::Throttle;
pub use timers::{Fired, NotAccepted, TimerBatch, TimerCounts, TimerTransport};
pub use types::{Payload, Raft, TypeConfig};
pub use verify::{GroupVerification, NotVerified, ReplicaVerification, VerifyOutcome};
pub use view::StateView;
pub use watch::{LeadershipChanges, Watched};
