//! Operations on the files of this server, over all of its groups: scrubbing and a consistent cut.

use std::io;

use super::Cluster;
use crate::backup::{self, BackupRows};
use crate::scrub;

impl Cluster {
    /// Removes erased bytes from this server's files now, not at the next check. Returns true if nothing is left to
    /// do.
    ///
    /// # Errors
    /// The disk refuses.
    pub async fn scrub(&self) -> io::Result<bool> {
        Ok(scrub::run(&self.0).await?.unwrap_or_else(|| self.all().all(|shard| !shard.group().owes())))
    }
}

impl Cluster {
    /// The rows of all groups of this server at one moment of the whole cluster, for a backup. They include everything that
    /// was acknowledged before the call, by any server. The leaders decide nothing for some milliseconds.
    ///
    /// # Errors
    /// A group has no leader, the leaders could not stop together, or this server's replica of a group has failed or is too
    /// far behind.
    pub async fn cut(&self) -> io::Result<BackupRows> {
        backup::take(&self.0).await
    }

    /// The number of shards that the buckets are spread over.
    #[must_use]
    pub fn shard_count(&self) -> u32 {
        u32::try_from(self.shards().len()).unwrap_or(u32::MAX)
    }
}
