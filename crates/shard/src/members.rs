//! The servers of a cluster: how one becomes a member, what its peers may ask of it, and how the membership of each group
//! follows the catalogue's map.

mod announce;
mod balance;
mod balancer;
mod barred;
mod checks;
mod handler;
mod join;
mod message;
mod options;
mod peers;
mod placement;
mod plan;
mod ready;
mod report;
#[cfg(test)]
mod samples;
mod serve;
mod status;
mod task;
mod transfer;

pub use checks::NotNow;
pub use handler::MemberHandler;
pub use options::{MemberOptions, MemberStart};
pub use report::{Follower, ReplicaReport, ServerReport};
pub use status::{ClusterStatus, GroupStatus, ReplicaStatus, ServerAnswer, ServerStatus};
pub use transfer::HandOver;

pub(crate) use announce::Announcement;
pub(crate) use balancer::work as balance;
pub(crate) use barred::barred;
pub(crate) use join::{check_claimed, found, join};
pub(crate) use message::{
    BACKUP_MARK, BACKUP_PAUSE, BACKUP_RESUME, DIGEST, DigestAnswer, MARK, Marked, OUTVOTED, Outvoted, framed,
    unframed,
};
pub(crate) use peers::{map, servers, work as publish_peers};
pub(crate) use ready::ready;
pub(crate) use report::report;
pub(crate) use serve::Served;
pub(crate) use status::status;
pub(crate) use task::work;
pub(crate) use transfer::hand_over;
