//! A task of every replica: erased data leaves this server's files, and the disk space of removed data is given back.
//!
//! An erasure removes rows. Their bytes stay in the log until it is purged, and in the files of the databases until
//! those are rewritten. A mark in the data folder says that this is owed, so a restart does not forget it.

use openraft::async_runtime::WatchReceiver;
use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Weak, atomic::Ordering};
use switchward_state::{IndexKey, View};
use switchward_store::StoreError;

use crate::blocking::blocking;
use crate::deletions;
use crate::group::Group;
use crate::limits::{FLUSH_WAIT, RECLAIM_PART, RECLAIM_ROWS_MIN, SCRUB_LOOK};
use crate::shards::Shards;
use crate::types::LogId;

/// Runs until the cluster is gone.
pub(crate) async fn work(cluster: Weak<Shards>) {
    loop {
        tokio::time::sleep(SCRUB_LOOK).await;
        let Some(cluster) = cluster.upgrade() else { return };
        match run(&cluster).await {
            Ok(Some(true)) => {}
            Ok(None) => {
                if let Err(error) = reclaim(&cluster).await {
                    tracing::warn!(%error, "failed to free the disk space of removed rows; trying again later");
                }
            }
            Ok(Some(false)) => {
                tracing::warn!("erased data is still in some files; trying again later")
            }
            Err(error) => {
                tracing::warn!(%error, "failed to remove erased data from the files; trying again later")
            }
        }
    }
}

/// Scrubs if that is owed. Returns true if nothing is owed afterwards, and `None` if nothing was owed.
pub(crate) async fn run(cluster: &Shards) -> io::Result<Option<bool>> {
    let groups: Vec<Group> = cluster.groups();
    let erased = |group: &Group| group.shared.erased.load(Ordering::SeqCst);
    let before: Vec<u64> = groups.iter().map(erased).collect();
    if before.iter().all(|at| *at == 0) || !groups.iter().all(rows_are_gone) {
        return Ok(None);
    }
    // Rewriting files needs space.
    if !cluster.log().disk().admits_growth() {
        return Ok(Some(false));
    }
    for group in &groups {
        if !purge(group).await? {
            return Ok(Some(false));
        }
    }
    let (log, shared) = (Arc::clone(cluster.log()), Arc::clone(&groups[0].shared));
    let files = blocking(move || {
        let state = shared.state.scrub()?;
        shared.snapshots.clear()?;
        Ok::<bool, StoreError>(log.scrub()? && state)
    });
    let whole = files.await.map_err(io::Error::other)?.map_err(io::Error::other)?;
    if !whole {
        return Ok(Some(false));
    }
    for (group, at) in groups.iter().zip(before) {
        // What was erased meanwhile is still owed.
        let _newer = group.shared.erased.compare_exchange(at, 0, Ordering::SeqCst, Ordering::SeqCst);
    }
    if groups.iter().all(|group| erased(group) == 0) {
        let state = &groups[0].shared.state;
        state.unmark().map_err(io::Error::other)?;
        if groups.iter().any(|group| erased(group) != 0) {
            state.mark().map_err(io::Error::other)?;
        }
    }
    Ok(Some(true))
}

/// Returns true if no erasure is under way that began no later than the last one that is owed.
fn rows_are_gone(group: &Group) -> bool {
    let erased = group.shared.erased.load(Ordering::SeqCst);
    let mut gone = true;
    let read = group.shared.view().scan(&IndexKey::removals(), None, &mut |entry, _| {
        gone = IndexKey::due_of(entry).is_none_or(|due| due.at.0 > erased);
        ControlFlow::Break(())
    });
    let tenants = deletions::under_way(&group.shared.view());
    let tenants = tenants.is_ok_and(|open| open.iter().all(|(_, begun)| begun.0 > erased));
    erased == 0 || (gone && tenants && read.is_ok())
}

/// Gives the disk space of removed rows back, if they are many: merges all tables of the state.
async fn reclaim(cluster: &Shards) -> io::Result<()> {
    let groups = cluster.groups();
    let counted = |group: &Group| group.shared.removed.load(Ordering::Relaxed);
    let removed: Vec<usize> = groups.iter().map(counted).collect();
    let (sum, rows) = (
        removed.iter().sum::<usize>(),
        groups.iter().map(|it| it.shared.state.rows_on_disk()).sum::<usize>(),
    );
    if sum < RECLAIM_ROWS_MIN || sum < rows / RECLAIM_PART || !cluster.log().disk().admits_growth() {
        return Ok(());
    }
    tracing::debug!(removed = sum, rows, "freeing the disk space of removed rows");
    let all = groups.clone();
    let merged = blocking(move || {
        all.iter().try_for_each(|group| group.shared.checkpoint())?;
        all[0].shared.state.scrub().map_err(io::Error::other)
    });
    // It has to wait while a backup is taken.
    if merged.await.map_err(io::Error::other)?? {
        for (group, removed) in groups.iter().zip(removed) {
            group.shared.removed.fetch_sub(removed, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Writes a group's rows and purges all of its log that they cover. Returns false if some entries are still needed.
pub(crate) async fn purge(group: &Group) -> io::Result<bool> {
    let index = |id: Option<LogId>| id.map(|id| id.index);
    let upto = index(group.raft.metrics().borrow_watched().last_applied);
    let Some(last) = upto else { return Ok(true) };
    group.raft.trigger().snapshot().await.map_err(io::Error::other)?;
    let built = group.raft.wait(Some(FLUSH_WAIT));
    if built.metrics(|now| index(now.snapshot) >= upto, "the rows are on disk").await.is_err() {
        return Ok(false);
    }
    group.raft.trigger().purge_log(last).await.map_err(io::Error::other)?;
    let purged = group.raft.wait(Some(FLUSH_WAIT));
    Ok(purged.metrics(|now| index(now.purged) >= upto, "the log is purged").await.is_ok())
}
