//! Operations on the files of this server, over all of its groups: scrubbing and a consistent cut.

use std::io;
use switchward_store::Cut;

use super::Cluster;
use crate::blocking::blocking;
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
    /// The rows of all groups of this server at one moment, the catalogue's first. The cut is no later than the
    /// return and includes everything that was acknowledged before the call.
    ///
    /// # Errors
    /// A shard has no leader here, or the disk cannot be written.
    pub async fn cut(&self) -> io::Result<Cut> {
        for shard in self.all() {
            shard.read().await.map_err(io::Error::other)?;
        }
        let groups = self.0.groups();
        let taken = blocking(move || {
            let states: Vec<_> = groups.iter().map(|group| group.shared.state.clone()).collect();
            Cut::take(&states, |freeze| {
                let still: Vec<_> = groups.iter().map(|group| group.shared.whole.read()).collect();
                freeze();
                drop(still);
            })
        });
        taken.await.map_err(io::Error::other)?.map_err(io::Error::other)
    }

    /// The number of shards that the buckets are spread over.
    #[must_use]
    pub fn shard_count(&self) -> u32 {
        u32::try_from(self.shards().len()).unwrap_or(u32::MAX)
    }
}
