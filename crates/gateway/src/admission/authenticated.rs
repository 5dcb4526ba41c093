//! What the guard has found out about the caller of a request, so that neither the service behind it nor the next request
//! over the same connection need look again.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
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
    found: Arc<Lookup>,
    /// The header that the key was in.
    header: Option<HeaderValue>,
}

/// A key that was valid when it was looked up.
struct Lookup {
    key: ValidKey,
    /// The last entry of the catalogue's log that this server had applied before it looked the key up.
    applied: Option<u64>,
}

impl Lookup {
    /// Returns true if another look would find the same now: the key has not expired, and this server has applied nothing to
    /// the catalogue since and may still trust its rows. An entry is applied before it is acknowledged, so a key that was
    /// revoked through this server is refused from then on.
    fn holds(&self, cluster: &Cluster) -> bool {
        applied(cluster) == self.applied
            && stale::trusts_catalogue(cluster)
            && auth::works(cluster, &self.key.key)
    }
}

impl Authenticated {
    /// Looks the key of these headers up, unless it is the one that came over the connection last and still holds.
    ///
    /// # Errors
    /// As [`auth::confirmed_key`].
    pub(super) async fn of(
        cluster: &Cluster,
        headers: &HeaderMap,
        last: Option<&LastKey>,
    ) -> Result<Self, Refusal> {
        let credential = auth::credential(headers);
        let found = match last.and_then(|last| last.held(cluster, credential)) {
            Some(found) => found,
            None => {
                // Before the key is read, so that whatever is applied while it is read counts as a change.
                let applied = applied(cluster);
                let key = auth::confirmed_key(cluster, credential).await?;
                let found = Arc::new(Lookup { key, applied });
                if let Some(last) = last {
                    *last.0.lock() = Some(Arc::clone(&found));
                }
                found
            }
        };
        Ok(Self { found, header: headers.get(AUTHORIZATION).cloned() })
    }

    /// The key, and the tenant that it opens.
    pub(super) fn valid_key(&self) -> &ValidKey {
        &self.found.key
    }

    /// Returns the caller with these headers if they have the key that was found, and a look at it [would find the same
    /// now](Lookup::holds).
    pub(crate) fn caller_now(&self, cluster: &Cluster, headers: &HeaderMap) -> Option<Caller> {
        let holds = headers.get(AUTHORIZATION) == self.header.as_ref() && self.found.holds(cluster);
        holds.then(|| self.found.key.caller())
    }
}

/// The API key that came over a connection last, so that a client that makes many calls has its key looked up once. Like the
/// rows, it has the hash of the key's secret, and not the secret.
#[derive(Default)]
pub(crate) struct LastKey(Mutex<Option<Arc<Lookup>>>);

impl LastKey {
    /// It, if this credential is it, and it still holds.
    fn held(&self, cluster: &Cluster, credential: Option<&str>) -> Option<Arc<Lookup>> {
        let last = self.0.lock().clone();
        last.filter(|last| last.holds(cluster) && auth::opens(credential, &last.key.key))
    }
}

impl fmt::Debug for LastKey {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastKey").finish_non_exhaustive()
    }
}

/// The last entry of the catalogue's log that this server has applied.
fn applied(cluster: &Cluster) -> Option<u64> {
    cluster.catalogue().group().applied()
}
