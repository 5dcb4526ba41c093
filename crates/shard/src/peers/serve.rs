//! Answers the messages of other servers.

use bytes::Bytes;
use futures::{Stream, StreamExt, future::join_all, stream};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use switchward_store::{GroupId, Snapshots};
use tokio::time::timeout;

use super::codec::{
    SnapshotAnswer, decode_append, decode_snapshot_header, decode_transfer, decode_vote,
    encode_append_answer, encode_snapshot_answer, encode_transfer_answer, encode_vote_answer,
};
use super::heartbeat;
use super::kind::Kind;
use super::receive::Receiving;
use super::succession;
use super::transport::{PeerRequest, PeerStream};
use crate::group::Group;
use crate::limits::APPEND_STREAM_IDLE;
use crate::log_store::LogStore;
use crate::shared::Shared;
use crate::types::{Raft, TypeConfig, Vote};

/// Answers the Raft messages of other servers, for the groups that are registered. It trusts that the transport has
/// checked who sends a message, and refuses what somebody sends in the name of another server.
pub struct RaftHandler {
    groups: RwLock<BTreeMap<u64, Member>>,
    receiving: Receiving,
}

/// A group's replica on this server.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) group: GroupId,
    pub(super) raft: Raft,
    pub(super) log: LogStore,
    pub(super) snapshots: Snapshots,
    shared: Arc<Shared>,
}

impl Member {
    /// Returns true if nothing bars this server from leading the group.
    pub(super) fn may_lead(&self) -> bool {
        self.shared.may_lead.may_lead()
    }
}

impl Default for RaftHandler {
    fn default() -> Self {
        Self { groups: RwLock::default(), receiving: Receiving::new() }
    }
}

impl RaftHandler {
    /// Makes a group reachable.
    pub fn register(&self, id: GroupId, group: &Group) {
        let (raft, log, snapshots) =
            (group.raft().clone(), group.log.clone(), group.shared.snapshots.clone());
        let shared = Arc::clone(&group.shared);
        self.groups.write().insert(id.0, Member { group: id, raft, log, snapshots, shared });
    }

    /// Makes a group unreachable. What it is sent is refused.
    pub fn unregister(&self, id: GroupId) {
        self.groups.write().remove(&id.0);
    }

    /// Returns true if a message of this kind is one of Raft's.
    #[must_use]
    pub fn serves(kind: u8) -> bool {
        Kind::of(kind).is_some()
    }

    /// Has the groups that the server leads elect another leader as soon as its lease has ended there. Called when it can no
    /// longer be reached; if others still reach it, it goes on. Ends when each group has another leader, or elects one anyway.
    pub async fn lost(&self, server: u64) {
        let groups: Vec<Member> = self.groups.read().values().cloned().collect();
        join_all(groups.iter().map(|member| succession::stand(member.group.0, member, server))).await;
    }

    /// Answers a message of a server.
    ///
    /// # Errors
    /// The message is not for a group of this server, is not readable or not the sender's own, or the group has
    /// stopped. Nothing has happened in the first two cases.
    pub async fn call(&self, from: u64, request: PeerRequest) -> Result<Bytes, String> {
        let member = self.member(&request)?;
        let Member { raft, log, .. } = &member;
        match kind(&request)? {
            Kind::Append => {
                let append = decode_append(&request.body).map_err(line)?;
                own(from, &append.vote)?;
                let answer = raft.append_entries(append).await.map_err(stopped)?;
                Ok(encode_append_answer(&answer))
            }
            Kind::Heartbeat => {
                let append = decode_append(&request.body).map_err(line)?;
                own(from, &append.vote)?;
                Ok(encode_append_answer(&heartbeat::answer(raft, log, append).await?))
            }
            Kind::Vote => {
                let question = decode_vote(&request.body).map_err(line)?;
                own(from, &question.vote)?;
                Ok(encode_vote_answer(&raft.vote(question).await.map_err(stopped)?))
            }
            Kind::PreVote => {
                let question = decode_vote(&request.body).map_err(line)?;
                own(from, &question.vote)?;
                Ok(encode_vote_answer(&raft.pre_vote(question).await.map_err(stopped)?))
            }
            Kind::TransferLeader => {
                let transfer = decode_transfer(&request.body).map_err(line)?;
                own(from, transfer.from_leader())?;
                // Others are informed too, so that they vote for the new leader.
                if transfer.to_node_id() == raft.node_id() && !member.may_lead() {
                    return Err("this server must not lead now".into());
                }
                Ok(encode_transfer_answer(&raft.handle_transfer_leader(transfer).await.map_err(stopped)?))
            }
            Kind::AppendStream | Kind::Snapshot => Err("a message of this kind needs a stream".into()),
        }
    }

    /// Serves a stream of a server, to its end.
    pub async fn stream(&self, from: u64, request: PeerRequest, stream: Arc<dyn PeerStream>) {
        let served = match (self.member(&request), kind(&request)) {
            (Ok(member), Ok(Kind::AppendStream)) => appends(from, &member.raft, &stream).await,
            (Ok(member), Ok(Kind::Snapshot)) => self.snapshot(from, &member, &request.body, &*stream).await,
            (
                Ok(_),
                Ok(Kind::Append | Kind::Heartbeat | Kind::Vote | Kind::PreVote | Kind::TransferLeader),
            ) => Err("a message of this kind needs no stream".into()),
            (Err(why), _) | (_, Err(why)) => Err(why),
        };
        if let Err(error) = served {
            tracing::debug!(from, group = request.group, error, "failed to serve a stream of another server");
        }
        if let Err(error) = stream.finish().await {
            tracing::debug!(from, group = request.group, %error, "failed to end a stream of another server");
        }
    }

    async fn snapshot(
        &self,
        from: u64,
        member: &Member,
        header: &Bytes,
        stream: &dyn PeerStream,
    ) -> Result<(), String> {
        let header = decode_snapshot_header(header).map_err(line);
        let header = header.and_then(|header| own(from, &header.vote).map(|()| header));
        let answer = match header {
            Ok(header) => self.receiving.receive(member, &header, stream).await.unwrap_or_else(|error| {
                tracing::warn!(snapshot = %header.id, %error, "failed to receive a snapshot");
                SnapshotAnswer::Refused(error.to_string())
            }),
            Err(why) => SnapshotAnswer::Refused(why),
        };
        stream.send(encode_snapshot_answer(&answer)).await.map_err(|error| error.to_string())
    }

    fn member(&self, request: &PeerRequest) -> Result<Member, String> {
        self.groups.read().get(&request.group).cloned().ok_or_else(|| "no such group here".into())
    }
}

/// Answers a stream of appends, in order.
async fn appends(from: u64, raft: &Raft, stream: &Arc<dyn PeerStream>) -> Result<(), String> {
    let mut answers = pin!(raft.stream_append(read(from, Arc::clone(stream))));
    while let Some(answer) = answers.next().await {
        let answer: AppendEntriesResponse<TypeConfig> = answer.map_err(stopped)?.into();
        stream.send(encode_append_answer(&answer)).await.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The appends of a stream, up to the first one that cannot be read.
fn read(
    from: u64,
    stream: Arc<dyn PeerStream>,
) -> impl Stream<Item = AppendEntriesRequest<TypeConfig>> + Send + 'static {
    stream::unfold(stream, move |stream| async move {
        let chunk = timeout(APPEND_STREAM_IDLE, stream.recv()).await.ok()?.ok()??;
        match decode_append(&chunk).map_err(line).and_then(|append| own(from, &append.vote).map(|()| append))
        {
            Ok(append) => Some((append, stream)),
            Err(error) => {
                tracing::warn!(from, error, "another server sends entries that cannot be taken");
                None
            }
        }
    })
}

fn kind(request: &PeerRequest) -> Result<Kind, String> {
    Kind::of(request.kind).ok_or_else(|| format!("no message has the kind {}", request.kind))
}

/// Checks that a message is in the name of its sender.
fn own(from: u64, vote: &Vote) -> Result<(), String> {
    if vote.leader_id.voted_for == from {
        Ok(())
    } else {
        Err("the message is in another server's name".into())
    }
}

fn line(error: io::Error) -> String {
    error.to_string()
}

pub(super) fn stopped(error: impl std::fmt::Display) -> String {
    format!("the group has stopped: {error}")
}
