//! What leaves this server's files, for all of its groups.

use std::io;
use std::sync::Arc;
use switchward_store::FjallLog;

use super::{Cluster, Inner};
use crate::group::Group;
use crate::scrub;
use crate::shard::Shard;

impl Cluster {
    /// Has what was erased leave the files of this server now, and not at the next look; true where nothing is left to do.
    ///
    /// # Errors
    /// The disk refuses.
    pub async fn scrub(&self) -> io::Result<bool> {
        Ok(scrub::run(&self.0).await?.unwrap_or_else(|| self.all().all(|shard| !shard.group().owes())))
    }
}

impl Inner {
    /// All groups of this server, the catalogue's first.
    pub(crate) fn groups(&self) -> Vec<Group> {
        let shards = std::iter::once(&self.catalogue).chain(&self.shards);
        shards.map(|shard| shard.group().clone()).collect()
    }

    /// The shards that own buckets.
    pub(crate) fn shards(&self) -> &[Shard] {
        &self.shards
    }

    pub(crate) fn log(&self) -> Arc<FjallLog> {
        Arc::clone(&self.log)
    }
}
