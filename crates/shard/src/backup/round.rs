//! Taking the rows of all groups, on any server.

use bytes::Bytes;
use futures::future::{join_all, try_join_all};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use switchward_store::Cut;
use tokio::time::timeout;

use super::{BackupRows, leader};
use crate::limits::{BACKUP_ASK_WAIT, BACKUP_BEHIND_MAX, BACKUP_TRIES};
use crate::mark::ID_BYTES;
use crate::marks::MarkedRows;
use crate::members::{BACKUP_MARK, BACKUP_PAUSE, BACKUP_RESUME, framed};
use crate::peers::{PeerConnection, PeerRequest};
use crate::shard::Shard;
use crate::shards::Shards;

/// The rows of all groups of this server at one moment, which is after the call.
///
/// # Errors
/// The leaders could not stop together, or a replica of this server does not reach its mark.
pub(crate) async fn take(shards: &Shards) -> io::Result<BackupRows> {
    let mut outcome = Err("no attempt was made".to_owned());
    for _ in 0..BACKUP_TRIES {
        for shard in shards.all() {
            // Waits for a leader, and that this replica has what was acknowledged.
            shard.read().await.map_err(io::Error::other)?;
        }
        outcome = attempt(shards, draw()).await;
        if outcome.is_ok() {
            break;
        }
    }
    outcome.map_err(io::Error::other)
}

/// An id that no other backup has.
fn draw() -> [u8; ID_BYTES] {
    let mut id = [0; ID_BYTES];
    for part in id.chunks_mut(8) {
        part.copy_from_slice(&RandomState::new().hash_one(0_u8).to_be_bytes());
    }
    id
}

async fn attempt(shards: &Shards, id: [u8; ID_BYTES]) -> Result<BackupRows, String> {
    shards.all().for_each(|shard| shard.group().shared.marks.want(id));
    let taken = marked(shards, id).await;
    shards.all().for_each(|shard| shard.group().shared.marks.want_none(id));
    let groups = taken?.into_iter().map(|taken| (taken.index, taken.rows)).collect();
    Ok(BackupRows(Cut::of(groups)))
}

async fn marked(shards: &Shards, id: [u8; ID_BYTES]) -> Result<Vec<MarkedRows>, String> {
    let all: Vec<(&Shard, Option<u64>)> =
        shards.all().map(|shard| (shard, leader_of(shards, shard))).collect();
    let stopped = join_all(all.iter().map(|(shard, at)| ask(shards, shard, *at, Step::Pause, id))).await;
    let mut done = stopped.into_iter().collect::<Result<(), String>>();
    if done.is_ok() {
        let marks = join_all(all.iter().map(|(shard, at)| ask(shards, shard, *at, Step::Mark, id))).await;
        done = marks.into_iter().collect();
    }
    if done.is_err() {
        join_all(all.iter().map(|(shard, at)| ask(shards, shard, *at, Step::Resume, id))).await;
    }
    done?;
    try_join_all(all.iter().map(|(shard, _)| reached(shard, id))).await
}

/// What a leader is asked for.
#[derive(Debug, Clone, Copy)]
enum Step {
    Pause,
    Mark,
    Resume,
}

/// The other server that leads a group, as far as is known; `None` if it is this one, or if this server is alone.
fn leader_of(shards: &Shards, shard: &Shard) -> Option<u64> {
    shards.member().filter(|_| !shard.leads()).and_then(|_| shard.leader())
}

async fn ask(
    shards: &Shards,
    shard: &Shard,
    at: Option<u64>,
    step: Step,
    id: [u8; ID_BYTES],
) -> Result<(), String> {
    let group = shard.number();
    let in_group = |error: String| format!("group {group}: {error}");
    let other = shards.member().zip(at).filter(|(member, at)| member.number != *at);
    let Some((member, at)) = other else {
        return match step {
            Step::Pause => leader::pause(shard, id).await,
            Step::Mark => leader::mark(shard, id).await.map(drop),
            Step::Resume => {
                leader::resume(shard, id);
                Ok(())
            }
        }
        .map_err(in_group);
    };
    let kind = match step {
        Step::Pause => BACKUP_PAUSE,
        Step::Mark => BACKUP_MARK,
        Step::Resume => BACKUP_RESUME,
    };
    let request = PeerRequest { kind, group, body: framed(&minicbor::bytes::ByteArray::from(id)) };
    let answer: Result<Bytes, _> =
        member.transport.call(at, PeerConnection::Control, request, BACKUP_ASK_WAIT).await;
    answer.map(drop).map_err(|error| in_group(error.to_string()))
}

/// Waits until this server's replica has applied its mark.
async fn reached(shard: &Shard, id: [u8; ID_BYTES]) -> Result<MarkedRows, String> {
    let marks = &shard.group().shared.marks;
    let mut changes = marks.watch();
    let waits = async {
        loop {
            if let Some(taken) = marks.take_wanted(id) {
                return Ok(taken);
            }
            if changes.changed().await.is_err() {
                return Err("the replica has stopped".to_owned());
            }
        }
    };
    let group = shard.number();
    let late =
        || Err(format!("this server's replica of group {group} is too far behind; try another server"));
    timeout(BACKUP_BEHIND_MAX, waits).await.unwrap_or_else(|_| late())
}
