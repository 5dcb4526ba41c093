//! Receives a snapshot.

use bytes::Bytes;
use openraft::async_runtime::WatchReceiver;
use parking_lot::Mutex;
use std::io;
use switchward_store::{GroupId, SnapshotFile, SnapshotReceiver};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::codec::{
    SnapshotAnswer, SnapshotEnd, SnapshotHeader, SnapshotPart, decode_snapshot_part, encode_snapshot_answer,
};
use super::send::owned_by;
use super::serve::Member;
use super::transport::PeerStream;
use crate::blocking;
use crate::limits::{NO_SPACE_REPORT, SNAPSHOT_BYTES_MAX, SNAPSHOT_IDLE, SNAPSHOTS_AT_ONCE};
use crate::snapshot::received;
use crate::types::{LogId, Snapshot, Vote};

/// Why a snapshot is refused that would fill the disk: what other groups write on it goes on.
const NO_SPACE: &str = "the disk has too little space for a snapshot";

/// The snapshots that this server receives.
pub(super) struct Receiving {
    turns: Semaphore,
    /// When it was last logged that one is refused for lack of space.
    reported: Mutex<Option<Instant>>,
}

impl Receiving {
    /// None yet.
    pub(super) fn new() -> Self {
        Self { turns: Semaphore::new(SNAPSHOTS_AT_ONCE), reported: Mutex::default() }
    }

    /// Receives a snapshot and installs it. Returns the answer for its sender.
    ///
    /// # Errors
    /// The stream broke, or what came is not a whole snapshot of this group.
    pub(super) async fn receive(
        &self,
        member: &Member,
        header: &SnapshotHeader,
        stream: &dyn PeerStream,
    ) -> io::Result<SnapshotAnswer> {
        let own = vote_of(member);
        let leads = header.vote >= own;
        if !leads {
            return Ok(SnapshotAnswer::Voted(own));
        }
        let Ok(_turn) = self.turns.try_acquire() else {
            return Ok(SnapshotAnswer::Refused("another snapshot is being received".into()));
        };
        if !member.snapshots.disk().has_space_for(0) {
            if self.reports_no_space() {
                tracing::warn!(snapshot = %header.id, "refused a snapshot: {NO_SPACE}");
            }
            return Ok(SnapshotAnswer::Refused(NO_SPACE.into()));
        }
        stream.send(encode_snapshot_answer(&SnapshotAnswer::Ready)).await.map_err(io::Error::other)?;
        tracing::info!(snapshot = %header.id, "receiving a snapshot");
        let file = file(member, stream).await?;
        let snapshot = received(file)?;
        check(member, header, &snapshot)?;
        let installed = member.raft.install_full_snapshot(header.vote, snapshot).await;
        let vote = installed.map_err(io::Error::other)?.vote;
        tracing::info!(snapshot = %header.id, "a snapshot is installed");
        Ok(SnapshotAnswer::Voted(vote))
    }

    /// Returns true if it is time to log that a snapshot is refused for lack of space: its sender tries again several times a
    /// second.
    fn reports_no_space(&self) -> bool {
        let (mut reported, now) = (self.reported.lock(), Instant::now());
        if reported.is_some_and(|at| now.duration_since(at) < NO_SPACE_REPORT) {
            return false;
        }
        *reported = Some(now);
        true
    }
}

fn vote_of(member: &Member) -> Vote {
    member.raft.metrics().borrow_watched().vote
}

/// Checks a snapshot before openraft sees it, which ends a replica over one that no leader can have sent.
fn check(member: &Member, header: &SnapshotHeader, snapshot: &Snapshot) -> io::Result<()> {
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidData, why.to_owned()));
    let Some(position) = snapshot.meta.last_log_id else {
        return refused("a snapshot has no position");
    };
    if !owned_by(position, &header.vote) {
        return refused("a snapshot holds entries of a later term than its sender leads in");
    }
    if position < header.last {
        return refused("a snapshot ends before the position that its header names");
    }
    let applied: Option<LogId> = member.raft.metrics().borrow_watched().last_applied;
    if applied.is_some_and(|applied| position > applied && position.index <= applied.index) {
        return refused("a snapshot contradicts entries that are applied here");
    }
    Ok(())
}

/// Receives all pieces into a file, and verifies it. The file has no name any more, so that the disk gets its space back when
/// it is installed, or refused.
async fn file(member: &Member, stream: &dyn PeerStream) -> io::Result<SnapshotFile> {
    let (snapshots, group) = (member.snapshots.clone(), member.group);
    let mut receiver = blocking(move || snapshots.receive(group)).await?;
    let mut counted = SnapshotEnd::default();
    loop {
        match part(stream).await? {
            SnapshotPart::Piece(piece) => {
                counted.count(&piece);
                if counted.bytes > SNAPSHOT_BYTES_MAX {
                    return Err(cut_off(member.group, "is too long"));
                }
                // What was received is written into the state once more.
                if !member.snapshots.disk().has_space_for(counted.bytes) {
                    return Err(io::Error::new(io::ErrorKind::StorageFull, NO_SPACE));
                }
                receiver = blocking(move || write(receiver, &piece)).await?;
            }
            SnapshotPart::End(end) if end == counted => break,
            SnapshotPart::End(_) => return Err(cut_off(member.group, "lacks pieces")),
        }
    }
    let snapshots = member.snapshots.clone();
    blocking(move || {
        let file = receiver.finish()?;
        snapshots.remove(group)?;
        Ok(file)
    })
    .await
}

fn write(
    mut receiver: SnapshotReceiver,
    piece: &Bytes,
) -> Result<SnapshotReceiver, switchward_store::StoreError> {
    receiver.write(piece).map(|()| receiver)
}

async fn part(stream: &dyn PeerStream) -> io::Result<SnapshotPart> {
    let chunk = timeout(SNAPSHOT_IDLE, stream.recv()).await?.map_err(io::Error::other)?;
    decode_snapshot_part(&chunk.ok_or(io::ErrorKind::UnexpectedEof)?)
}

fn cut_off(group: GroupId, how: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a snapshot of group {} {how}", group.0))
}

async fn blocking<T: Send + 'static>(
    what: impl FnOnce() -> Result<T, switchward_store::StoreError> + Send + 'static,
) -> io::Result<T> {
    blocking::blocking(what).await.map_err(io::Error::other)?.map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lack_of_space_is_logged_once_in_a_while() {
        let receiving = Receiving::new();
        assert!(receiving.reports_no_space() && !receiving.reports_no_space());
        tokio::time::advance(NO_SPACE_REPORT).await;
        assert!(receiving.reports_no_space() && !receiving.reports_no_space());
    }
}
