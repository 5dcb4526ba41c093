//! One verification of a group, by any server.

use futures::future::join_all;
use std::collections::BTreeMap;
use switchward_state::catalogue::ServerState;
use tokio::time::{Duration, Instant, sleep};

use super::judge::{GroupVerification, judge};
use super::{answer, leader};
use crate::limits::{
    DIGEST_ANSWER_WAIT, DIGEST_BEHIND_MAX, DIGEST_CALL_WAIT, DIGEST_MAX, DIGEST_SILENT_MAX, FORWARD_AGAIN,
    LEADER_WAIT, MARK_ASK_WAIT,
};
use crate::members::{
    DIGEST, DigestAnswer, MARK, Marked, MemberOptions, OUTVOTED, Outvoted, framed, servers, unframed,
};
use crate::peers::{PeerConnection, PeerError, PeerRequest};
use crate::shard::Shard;
use crate::shards::Shards;

/// Why a group was not verified.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotVerified {
    /// The cluster has no such group.
    #[error("there is no group {0}")]
    NoGroup(u64),
    /// This server is verifying a group already.
    #[error("this server is verifying a group already; try again when it has finished")]
    Busy,
    /// No leader has written the entry at which the digests are taken.
    #[error("the leader of group {group} could not write the entry to verify at: {why}")]
    NotMarked {
        /// The number of the group; 0 is the catalogue.
        group: u64,
        /// Why not.
        why: String,
    },
}

/// Has all replicas of a group take their digests at a new mark, and compares them. Replicas that differ from a majority of
/// the voters fail.
///
/// # Errors
/// As [`NotVerified`] says.
pub(crate) async fn verify(shards: &Shards, group: u64) -> Result<GroupVerification, NotVerified> {
    let shard = shards.all().find(|shard| shard.number() == group).ok_or(NotVerified::NoGroup(group))?;
    let _alone = shards.verifying.try_lock().map_err(|_| NotVerified::Busy)?;
    let marked = mark(shards, shard).await.map_err(|why| NotVerified::NotMarked { group, why })?;
    let holders: Vec<u64> = marked.voters.iter().chain(&marked.learners).copied().collect();
    let asks = holders.iter().map(|server| digest_of(shards, shard, *server, marked.index));
    let said: BTreeMap<u64, _> = holders.iter().copied().zip(join_all(asks).await).collect();
    let seen = judge(group, &marked, said);
    if seen.differs() {
        let (index, agree, differ) = (seen.index, seen.agreeing(), seen.differing());
        tracing::error!(group, index, ?agree, ?differ, "the replicas of a group hold different rows");
    }
    if let Some(digest) = seen.digest.filter(|_| seen.is_decided()) {
        let verdict = Outvoted { index: seen.index, digest, servers: seen.agreeing() };
        join_all(seen.differing().into_iter().map(|server| outvote(shards, shard, server, &verdict))).await;
    }
    Ok(seen)
}

/// Has the leader write a mark, whichever server that is.
async fn mark(shards: &Shards, shard: &Shard) -> Result<Marked, String> {
    let until = Instant::now() + LEADER_WAIT;
    loop {
        let outcome = mark_once(shards, shard).await;
        if outcome.is_ok() || Instant::now() >= until {
            return outcome;
        }
        sleep(FORWARD_AGAIN).await;
    }
}

async fn mark_once(shards: &Shards, shard: &Shard) -> Result<Marked, String> {
    let member = shards.member().filter(|_| !shard.leads());
    let Some(member) = member else { return leader::write_digest_mark(shard).await };
    let present = servers(&shards.catalogue().read_stale()).unwrap_or_default().into_iter();
    let present = present.filter(|server| server.state != ServerState::Removed).map(|server| server.number);
    let known = shard.leader();
    let others = present.filter(|server| Some(*server) != known);
    let mut outcome = Err("the group has no leader now".to_owned());
    for server in known.into_iter().chain(others).filter(|server| *server != member.number) {
        let request = PeerRequest { kind: MARK, group: shard.number(), body: framed(&()) };
        outcome = match call(member, server, request, MARK_ASK_WAIT).await {
            Ok(bytes) => return unframed(&bytes).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
    }
    outcome
}

async fn call(
    member: &MemberOptions,
    server: u64,
    request: PeerRequest,
    wait: Duration,
) -> Result<bytes::Bytes, PeerError> {
    member.transport.call(server, PeerConnection::Control, request, wait).await
}

/// Asks a server for its digest until it has it, cannot have it, or takes too long.
async fn digest_of(shards: &Shards, shard: &Shard, server: u64, index: u64) -> Result<[u8; 32], String> {
    let began = Instant::now();
    let mut answered = began;
    while !shard.draining() {
        let asked = match shards.member().filter(|member| member.number != server) {
            None => Ok(answer::digest(shard, index).await),
            Some(member) => ask_digest(member, server, shard.number(), index).await,
        };
        match asked {
            Ok(DigestAnswer::Digest(digest)) => return Ok(digest),
            Ok(DigestAnswer::NoDigest(why)) => return Err(why),
            Ok(DigestAnswer::Behind) if began.elapsed() >= DIGEST_BEHIND_MAX => {
                return Err("it is too far behind".to_owned());
            }
            Ok(DigestAnswer::UnderWay) if began.elapsed() >= DIGEST_MAX => {
                return Err("it has not finished in time".to_owned());
            }
            Ok(DigestAnswer::Behind | DigestAnswer::UnderWay) => answered = Instant::now(),
            Err(error) if answered.elapsed() >= DIGEST_SILENT_MAX => return Err(error),
            Err(_) => sleep(DIGEST_ANSWER_WAIT).await,
        }
    }
    Err("the server that asks is shutting down".to_owned())
}

async fn ask_digest(
    member: &MemberOptions,
    server: u64,
    group: u64,
    index: u64,
) -> Result<DigestAnswer, String> {
    let request = PeerRequest { kind: DIGEST, group, body: framed(&index) };
    let bytes = call(member, server, request, DIGEST_CALL_WAIT).await.map_err(|error| error.to_string())?;
    unframed(&bytes).map_err(|error| error.to_string())
}

/// Informs a server that its replica differs from a majority.
async fn outvote(shards: &Shards, shard: &Shard, server: u64, verdict: &Outvoted) {
    let informed = match shards.member().filter(|member| member.number != server) {
        None => answer::outvoted(shard, verdict).await,
        Some(member) => {
            let request = PeerRequest { kind: OUTVOTED, group: shard.number(), body: framed(verdict) };
            let sent = call(member, server, request, DIGEST_CALL_WAIT).await;
            sent.map(drop).map_err(|error| error.to_string())
        }
    };
    if let Err(error) = informed {
        let group = shard.number();
        tracing::warn!(group, server, error, "a server was not informed that its replica is wrong");
    }
}
