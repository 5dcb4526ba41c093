//! Has the leader of a group hand it over, whichever server that is.

use bytes::Bytes;
use openraft::async_runtime::WatchReceiver;

use super::barred::barred;
use super::message::{HAND_OVER, framed, unframed};
use super::options::MemberOptions;
use crate::hand_over::NotHandedOver;
use crate::limits::HAND_OVER_ASK_WAIT;
use crate::peers::{PeerConnection, PeerError, PeerRequest};
use crate::shard::Shard;
use crate::shards::Shards;

/// Why a group was not handed over on request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandOver {
    /// The cluster has no such group.
    #[error("there is no group {0}")]
    NoGroup(u64),
    /// No leader is known.
    #[error("the group has no leader now; try again")]
    NoLeader,
    /// The leader said why not, or did not answer.
    #[error("{0}")]
    Failed(String),
}

/// Returns the new leader.
///
/// # Errors
/// As [`HandOver`] says.
pub(crate) async fn hand_over(shards: &Shards, group: u64, to: Option<u64>) -> Result<u64, HandOver> {
    let shard = shards.all().find(|shard| shard.number() == group).ok_or(HandOver::NoGroup(group))?;
    if let (Some(member), Some(remote)) = (shards.member(), &shard.group().remote)
        && shard.group().failed().is_some()
    {
        return ask_in_turn(member, &remote.servers(), group, to).await;
    }
    let leader = shard.group().raft().server_metrics().borrow_watched().current_leader;
    let leader = leader.ok_or(HandOver::NoLeader)?;
    let member = shards.member().filter(|member| member.number != leader);
    let Some(member) = member else {
        return hand_over_here(shards, shard, to).await.map_err(|error| HandOver::Failed(error.to_string()));
    };
    let bytes = ask(member, leader, group, to).await.map_err(|error| failed(&error))?;
    unframed(&bytes).map_err(|error| HandOver::Failed(error.to_string()))
}

/// Asks one server after the other until one leads the group: this server's replica has failed and knows no leader.
async fn ask_in_turn(
    member: &MemberOptions,
    servers: &[u64],
    group: u64,
    to: Option<u64>,
) -> Result<u64, HandOver> {
    let mut outcome = Err(HandOver::NoLeader);
    for server in servers {
        match ask(member, *server, group, to).await {
            Ok(bytes) => return unframed(&bytes).map_err(|error| HandOver::Failed(error.to_string())),
            Err(PeerError::NotSent(_)) => {}
            Err(PeerError::Refused(why)) if why == NotHandedOver::NotLeading.to_string() => {}
            Err(error) => {
                outcome = Err(failed(&error));
                break;
            }
        }
    }
    outcome
}

async fn ask(member: &MemberOptions, server: u64, group: u64, to: Option<u64>) -> Result<Bytes, PeerError> {
    let request = PeerRequest { kind: HAND_OVER, group, body: framed(&to) };
    member.transport.call(server, PeerConnection::Control, request, HAND_OVER_ASK_WAIT).await
}

fn failed(error: &PeerError) -> HandOver {
    match error {
        PeerError::Refused(why) => HandOver::Failed(why.clone()),
        PeerError::NotSent(_) | PeerError::Unknown(_) | PeerError::TimedOut => {
            HandOver::Failed(error.to_string())
        }
    }
}

/// Hands over a group that this server leads, to no server that says that it must not lead. Returns the new leader.
///
/// # Errors
/// As [`NotHandedOver`] says.
pub(crate) async fn hand_over_here(
    shards: &Shards,
    shard: &Shard,
    to: Option<u64>,
) -> Result<u64, NotHandedOver> {
    shard.hand_over_but(to, &barred(shards).await).await
}
