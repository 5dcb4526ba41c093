//! Every read of the delivery role, as a typed question about one shard.
//!
//! Questions that the core answers by itself, such as [`mail_counts`](switchward_state::delivery::mail_counts), are asked of
//! [`ShardView::rows`].

mod destinations;
mod effects;
mod leases;
mod queues;
mod records;

pub use destinations::{Destinations, Entries};
pub use effects::{EffectKey, QueuedEffect};
pub use leases::{LeasedJob, LeasedPart};
pub use queues::{Queue, WorkName};

use switchward_machine::{Bucket, Time};
use switchward_shard::{Cluster, Failure, Shard, StateView};
use switchward_state::seal::KeyRing;
use switchward_state::{View, ViewError};

/// What one shard knows, for questions that follow each other: what a later one reads is not older than what an earlier one
/// has read.
pub struct ShardView(StateView);

impl ShardView {
    /// Not older than anything that was answered before.
    ///
    /// # Errors
    /// The shard cannot tell at the moment, as [`Failure`] says.
    pub async fn linearizable(shard: &Shard) -> Result<Self, Failure> {
        shard.read().await.map(Self)
    }

    /// The same of the shard that owns a bucket, by the newest map of the cluster.
    ///
    /// # Errors
    /// The shard cannot tell at the moment, as [`Failure`] says.
    pub async fn of_bucket(cluster: &Cluster, bucket: Bucket) -> Result<Self, Failure> {
        cluster.read_of(bucket).await.map(Self)
    }

    /// As this server has it.
    pub fn stale(shard: &Shard) -> Self {
        Self(shard.read_stale())
    }

    /// The rows, for questions that the core answers.
    pub fn rows(&self) -> &dyn View {
        &self.0
    }

    /// What opens the secrets in the rows.
    pub fn ring(&self) -> &KeyRing {
        self.0.ring()
    }

    /// See [`StateView::due_by`].
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn due_by(&self, now: Time) -> Result<Time, ViewError> {
        self.0.due_by(now)
    }
}
