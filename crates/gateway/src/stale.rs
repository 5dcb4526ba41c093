//! Reads of rows as this server has them, for what every call needs: keys, tenants, webhook sources. A change of them holds
//! on every server within a second; a server that is cut off from the catalogue's leader trusts its rows no longer than
//! [`CATALOGUE_AGE_MAX`]. What belongs to a bucket, which may move, is never read so: it is asked of the bucket's owner.

use std::time::Duration;
use switchward_query::{AskStale, Reader, Source};
use switchward_shard::Cluster;

use crate::error::{Reason, Refusal};
use crate::limits::CATALOGUE_AGE_MAX;
use crate::refusals::{refusal, unreadable};

/// How soon it is worth trying again: a second and more pass until the server has found a leader.
const RETRY: Duration = Duration::from_secs(1);

/// Answers a query from the rows as this server has them.
///
/// # Errors
/// SHARD_ELECTING if the rows are the catalogue's and may be older than [`CATALOGUE_AGE_MAX`]; INTERNAL_ERROR if a row cannot
/// be read.
pub(crate) fn answer<Q: AskStale>(cluster: &Cluster, query: &Q) -> Result<Q::Answer, Refusal> {
    let rows = match query.source() {
        Source::Catalogue => catalogue(cluster)?,
        source @ (Source::Bucket(_) | Source::Any) => Reader::stale(source.shard(cluster)),
    };
    rows.answer(query).map_err(unreadable)
}

/// The catalogue's rows as this server has them, for several queries.
///
/// # Errors
/// SHARD_ELECTING if they may be older than [`CATALOGUE_AGE_MAX`].
pub(crate) fn catalogue(cluster: &Cluster) -> Result<Reader, Refusal> {
    if trusts_catalogue(cluster) { Ok(Reader::stale(cluster.catalogue())) } else { Err(cut_off()) }
}

/// Returns true if the catalogue's rows of this server are not older than [`CATALOGUE_AGE_MAX`].
pub(crate) fn trusts_catalogue(cluster: &Cluster) -> bool {
    cluster.catalogue().confirmed_within(CATALOGUE_AGE_MAX)
}

/// The same; what this server does not have is looked for once more in rows that hold everything that was acknowledged
/// before, because another server may have created it a moment ago.
///
/// # Errors
/// As [`answer`]; SHARD_ELECTING if no leader answers.
pub(crate) async fn find<Q, T>(cluster: &Cluster, query: &Q) -> Result<Option<T>, Refusal>
where
    Q: AskStale<Answer = Option<T>>,
{
    if let Some(found) = answer(cluster, query)? {
        return Ok(Some(found));
    }
    let rows = Reader::of_source(cluster, query.source()).await.map_err(refusal)?;
    rows.answer(query).map_err(unreadable)
}

fn cut_off() -> Refusal {
    let message = format!(
        "this server has not reached the leader of the catalogue for {} seconds, so it cannot check credentials; try \
         another server, or again",
        CATALOGUE_AGE_MAX.as_secs()
    );
    Refusal::new(Reason::ShardElecting, message).retry_after(RETRY)
}
