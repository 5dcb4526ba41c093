//! Backups: how one is begun, and how one is put into a new data folder.

pub(crate) mod erasures;
pub(crate) mod known;
pub(crate) mod restore;

use switchward_shard::{BackupRows, Cluster};
use switchward_store::BackupOf;

/// What a manifest calls this program.
pub(crate) const PROGRAM: &str = concat!("switchward ", env!("CARGO_PKG_VERSION"));

/// The rows of this moment, with all that was acknowledged before it, and what a manifest says of them.
///
/// # Errors
/// A shard does not answer, or the disk cannot be written.
pub(crate) async fn begin(cluster: &Cluster) -> anyhow::Result<(BackupOf, BackupRows)> {
    let taken_ms = cluster.now().0;
    let cut = cluster.cut().await?;
    Ok((BackupOf { program: PROGRAM.to_owned(), taken_ms, shards: cluster.shard_count() }, cut))
}
