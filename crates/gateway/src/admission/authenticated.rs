//! What the guard has found out about the caller of a request, so that the service behind it need not look again.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use switchward_shard::Cluster;

use crate::auth::{self, Caller, ValidKey};
use crate::error::Refusal;
use crate::stale;

/// A request's API key that was valid when the request came. Only admission makes one, and it is in the extensions of the
/// request that was admitted, which nothing outside of this process can set.
///
/// It says nothing about later times by itself: a body may come long after its head, and the key may be revoked meanwhile.
#[derive(Clone)]
pub(crate) struct Authenticated {
    found: ValidKey,
    /// The header that the key was in.
    header: Option<HeaderValue>,
    /// The last entry of the catalogue's log that this server had applied before it looked the key up.
    applied: Option<u64>,
}

impl Authenticated {
    /// Looks the key of these headers up.
    ///
    /// # Errors
    /// As [`auth::confirmed_key`].
    pub(super) async fn of(cluster: &Cluster, headers: &HeaderMap) -> Result<Self, Refusal> {
        // Before the key is read, so that whatever is applied while it is read counts as a change.
        let applied = applied(cluster);
        let found = auth::confirmed_key(cluster, auth::credential(headers)).await?;
        Ok(Self { found, header: headers.get(AUTHORIZATION).cloned(), applied })
    }

    /// What was found.
    pub(super) fn found(&self) -> &ValidKey {
        &self.found
    }

    /// Returns the caller with these headers if a look at their key would find the same now: they have that key, the key has
    /// not expired, and this server has applied nothing to the catalogue since and may still trust its rows. An entry is
    /// applied before it is acknowledged, so a key that was revoked through this server is refused from then on.
    pub(crate) fn caller_now(&self, cluster: &Cluster, headers: &HeaderMap) -> Option<Caller> {
        let holds = headers.get(AUTHORIZATION) == self.header.as_ref()
            && applied(cluster) == self.applied
            && stale::trusts_catalogue(cluster)
            && auth::works(cluster, &self.found.key);
        holds.then(|| self.found.caller())
    }
}

/// The last entry of the catalogue's log that this server has applied.
fn applied(cluster: &Cluster) -> Option<u64> {
    cluster.catalogue().group().applied()
}
