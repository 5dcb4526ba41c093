//! Opening the groups of a server that stands alone.

use std::io;
use std::sync::Arc;
use switchward_store::{DataDir, GroupId, GroupLog, SegmentLog, Snapshots, StateStore};

use super::{ALONE, ClusterOptions, stop};
use crate::group::{Group, GroupOptions, GroupStart, RaftSettings};
use crate::no_peers::NoPeers;
use crate::raft_runtime::RaftRuntime;
use crate::retention::LogRetention;
use crate::shards::CATALOGUE;

/// Fails if the folder belongs to a server of a cluster: alone it would take the place of the others.
pub(super) fn check_stands_alone(data: &DataDir) -> io::Result<()> {
    match data.identity().cluster {
        None => Ok(()),
        Some(cluster) => {
            let message = format!(
                "the data folder {} belongs to {cluster}, and not to a server alone",
                data.path().display()
            );
            Err(io::Error::new(io::ErrorKind::InvalidData, message))
        }
    }
}

/// Opens the catalogue's group and `count` others. A group is initialised only if the folder is new: one that is gone
/// from an older folder has lost its votes and entries.
///
/// # Errors
/// A group cannot be opened, or is gone; those opened before are stopped.
pub(super) async fn open_groups(
    options: &ClusterOptions,
    count: u32,
    log: &Arc<SegmentLog>,
    raft: &RaftRuntime,
) -> io::Result<Vec<Group>> {
    let states = StateStore::open(&options.data).map_err(io::Error::other)?;
    let snapshots = Snapshots::open(&options.data).map_err(io::Error::other)?;
    let cache_bytes = options.cache_bytes / (usize::try_from(count).unwrap_or(1) + 1);
    let is_new = !options.data.is_initialized();
    let mut groups = Vec::new();
    for number in CATALOGUE..=u64::from(count) {
        let group = GroupOptions {
            group: GroupId(number),
            node: ALONE,
            start: if is_new { GroupStart::Initialize(vec![ALONE]) } else { GroupStart::Join },
            log: Arc::clone(log) as Arc<dyn GroupLog>,
            states: states.clone(),
            snapshots: snapshots.clone(),
            cache_bytes,
            ring: options.ring.clone(),
            raft: RaftSettings::default(),
            retention: LogRetention::default(),
            transport: None,
        };
        if let Err(error) = open_group(raft, group, &mut groups).await {
            stop(&groups).await;
            return Err(error);
        }
    }
    Ok(groups)
}

async fn open_group(raft: &RaftRuntime, options: GroupOptions, groups: &mut Vec<Group>) -> io::Result<()> {
    let number = options.group.0;
    let group = Group::open_on(raft.handle(), options, NoPeers).await?;
    groups.push(group.clone());
    // A replica that fails while it replays its log is opened all the same: it says that it has failed.
    if group.failed().is_some() || group.is_initialized().await? {
        return Ok(());
    }
    let message = format!("group {number} is gone from the data folder: it has neither a vote nor an entry");
    Err(io::Error::new(io::ErrorKind::InvalidData, message))
}
