//! Puts a backup into a new data folder, holds its effects and repeats erasures.

use anyhow::Context as _;
use std::path::{Path, PathBuf};
use switchward_machine::Time;
use switchward_shard::{Cluster, check_keys, restore_backup, sealed_in_backup};
use switchward_state::delivery::{DeliveryCommand, HoldEffects};
use switchward_state::seal::RingKeyId;
use switchward_state::{Body, Command};
use switchward_store::{Backup, DataDir, StoreError};

use super::erasures;
use super::erasures::Erasure;
use crate::exit::Exit;
use crate::key_ring::{self, KeyRingLocation};

/// A data folder filled from a backup, and the work left before it may serve.
pub(crate) struct Restoring {
    /// The folder; no server opens it before [`Restoring::finish`] is done.
    pub(crate) data: DataDir,
    taken: Time,
    erasures: Vec<Erasure>,
}

/// What came of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Restored {
    /// The time of the backup.
    pub(crate) taken: Time,
    /// Tenants whose effects are held.
    pub(crate) held: usize,
    /// Sessions that were erased or deleted again.
    pub(crate) removed: usize,
}

/// Verifies a backup and reads the lists of removals, then puts the backup into a new data folder. Blocks.
///
/// # Errors
/// The backup is damaged, a list cannot be read, a key that its secrets are sealed under is not among these, or the data
/// folder is there already.
pub(crate) fn prepare(
    backup: &Path,
    lists: &[PathBuf],
    data: &Path,
    keys: &[RingKeyId],
    location: &KeyRingLocation,
) -> Result<Restoring, Exit> {
    let erasures = erasures::read(lists).context("--erasures")?;
    let backup = Backup::open(backup).map_err(|error| refused(error, data))?;
    let under = sealed_in_backup(&backup).with_context(|| "the backup cannot be restored".to_owned())?;
    if let Err(missing) = check_keys(&under, keys) {
        let message = format!("the backup cannot be restored: {missing}");
        return Err(Exit::conflict(message).next(key_ring::lacking(location)));
    }
    let data = DataDir::begin_restore(data).map_err(|error| refused(error, data))?;
    restore_backup(&backup, &data).context("failed to restore the backup")?;
    Ok(Restoring { data, taken: Time(backup.manifest().taken_ms), erasures })
}

fn refused(error: StoreError, data: &Path) -> Exit {
    if matches!(error, StoreError::FolderExists { .. }) {
        let message = format!("the data folder {} already exists", data.display());
        return Exit::conflict(message)
            .next("start the server without --restore, or set data_dir to a folder that is new or empty");
    }
    if matches!(error, StoreError::NoBackup { .. }) {
        return Exit::missing(error.to_string());
    }
    Exit::failed(error.into())
}

impl Restoring {
    /// Holds the effects of all tenants, and removes again what was removed after the backup. The data folder is one as any
    /// other then.
    ///
    /// # Errors
    /// A shard does not answer, or the disk refuses.
    pub(crate) async fn finish(self, cluster: &Cluster) -> anyhow::Result<Restored> {
        let tenants = cluster.tenants_by_name().await?;
        for tenant in tenants.values() {
            let body = Body::Delivery(DeliveryCommand::HoldEffects(HoldEffects { held: true }));
            cluster.execute(Command::in_own_scope(*tenant, body)).await?;
        }
        let removed = erasures::repeat(cluster, &tenants, &self.erasures).await?;
        if removed > 0 {
            anyhow::ensure!(
                cluster.scrub().await?,
                "the rows that were removed again are still in the files"
            );
        }
        self.data.end_restore()?;
        Ok(Restored { taken: self.taken, held: tenants.len(), removed })
    }
}
