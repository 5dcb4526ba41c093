//! What a query is, and the rows that it is evaluated on.

use minicbor::{Decode, Encode};
use switchward_machine::{Bucket, SessionId};
use switchward_shard::{Cluster, Failure, Shard, StateView};
use switchward_state::ViewError;

/// What one server can send to another.
pub trait Sent: Encode<()> + for<'b> Decode<'b, ()> {}

impl<T: Encode<()> + for<'b> Decode<'b, ()>> Sent for T {}

/// A typed read of the rows of one shard.
pub trait Evaluate {
    /// What it returns.
    type Answer: Sent;

    /// Reads the answer.
    ///
    /// # Errors
    /// A row cannot be read.
    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError>;
}

/// A query that one shard answers for the whole cluster. Other queries are asked of each shard.
pub trait Ask: Evaluate {
    /// The shard that has the rows.
    fn source(&self) -> Source;
}

/// A query that may be answered from rows as this server has them, however old: no map of the cluster moves these rows to
/// another shard. What belongs to a bucket is asked of the bucket's owner: this server may be the last one to learn that
/// the bucket has moved, and its replica of the new owner may not have the rows yet.
pub trait AskStale: Ask {}

/// The shard whose rows a query is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Group 0, which has the rows of tenants, keys and definitions.
    Catalogue,
    /// The one that owns a bucket.
    Bucket(Bucket),
    /// Any that owns buckets: each has these rows.
    Any,
}

impl Source {
    /// The shard of a session.
    pub fn session(id: SessionId) -> Self {
        Self::Bucket(id.bucket())
    }

    /// The shard of this server.
    pub fn shard(self, cluster: &Cluster) -> &Shard {
        match self {
            Self::Catalogue => cluster.catalogue(),
            Self::Bucket(bucket) => cluster.shard_of(bucket),
            Self::Any => cluster.shards().first().unwrap_or_else(|| cluster.catalogue()),
        }
    }
}

/// One shard's rows, for queries that follow each other: what a later one reads is not older than what an earlier one has
/// read.
#[derive(Clone)]
pub struct Reader(StateView);

impl Reader {
    /// The rows, not older than anything that was answered before.
    ///
    /// # Errors
    /// The shard cannot tell at the moment, as [`Failure`] says.
    pub async fn linearizable(shard: &Shard) -> Result<Self, Failure> {
        shard.read().await.map(Self)
    }

    /// The same of the shard that has what a query is about, by the newest map of the cluster.
    ///
    /// # Errors
    /// The shard cannot tell at the moment, as [`Failure`] says.
    pub async fn of_source(cluster: &Cluster, source: Source) -> Result<Self, Failure> {
        match source {
            Source::Bucket(bucket) => cluster.read_of(bucket).await.map(Self),
            Source::Catalogue | Source::Any => Self::linearizable(source.shard(cluster)).await,
        }
    }

    /// The rows as this server has them.
    pub fn stale(shard: &Shard) -> Self {
        Self(shard.read_stale())
    }

    /// Answers a query.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn answer<Q: Evaluate>(&self, query: &Q) -> Result<Q::Answer, ViewError> {
        query.evaluate(&self.0)
    }

    /// The rows themselves, for scans.
    pub(crate) fn rows(&self) -> &StateView {
        &self.0
    }
}
