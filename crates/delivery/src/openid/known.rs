//! Caches a provider's metadata.

use std::sync::Arc;

use openidconnect::core::{CoreClientAuthMethod, CoreProviderMetadata};
use openidconnect::{AuthType, DiscoveryError, IssuerUrl};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::asking::Asking;
use super::{Problem, Unusable};
use crate::Failed;
use crate::guard::Target;
use crate::limits::{OPENID_FAILED_MS, OPENID_KEYS_MAX};

/// The last metadata, and when it was received, milliseconds since 1970.
#[derive(Default)]
struct CachedMetadata {
    metadata: Option<(Arc<CoreProviderMetadata>, u64)>,
    /// When the last request failed, if that was after the last success.
    failed: Option<u64>,
}

impl CachedMetadata {
    /// Returns the metadata if it is at most that old, or the failure if it is too recent for another attempt.
    fn at(&self, now_ms: u64, age_ms: u64) -> Option<Result<Arc<CoreProviderMetadata>, Problem>> {
        let within = |at: u64, ms: u64| now_ms.checked_sub(at).is_some_and(|age| age < ms);
        match (&self.metadata, self.failed) {
            (Some((metadata, at)), _) if within(*at, age_ms) => Some(Ok(Arc::clone(metadata))),
            (_, Some(at)) if within(at, OPENID_FAILED_MS) => Some(Err(Problem::Unavailable)),
            (Some(_) | None, _) => None,
        }
    }
}

/// The cache.
pub(super) struct Known {
    found: Mutex<CachedMetadata>,
    /// Held by the task that requests the metadata; the others wait for its result.
    asks: Semaphore,
}

impl Default for Known {
    fn default() -> Self {
        Self { found: Mutex::default(), asks: Semaphore::new(1) }
    }
}

impl Known {
    /// Returns the provider's metadata, at most `age_ms` old.
    pub(super) async fn get(
        &self,
        asking: &Asking<'_>,
        issuer: &IssuerUrl,
        now_ms: u64,
        age_ms: u64,
    ) -> Result<Arc<CoreProviderMetadata>, Problem> {
        if let Some(found) = self.found.lock().at(now_ms, age_ms) {
            return found;
        }
        let _asks = self.asks.acquire().await.map_err(|_| Problem::Unavailable)?;
        if let Some(found) = self.found.lock().at(now_ms, age_ms) {
            return found;
        }
        let outcome = discover(asking, issuer).await.map(Arc::new).map_err(|unusable| {
            tracing::warn!(%unusable, issuer = issuer.as_str(), "an OpenID provider cannot be used");
            Problem::Unavailable
        });
        let mut found = self.found.lock();
        match &outcome {
            Ok(metadata) => {
                *found = CachedMetadata { metadata: Some((Arc::clone(metadata), now_ms)), failed: None }
            }
            Err(_) => found.failed = Some(now_ms),
        }
        outcome
    }
}

/// Requests a provider's metadata and keys.
pub(super) async fn discover(
    asking: &Asking<'_>,
    issuer: &IssuerUrl,
) -> Result<CoreProviderMetadata, Unusable> {
    let found = CoreProviderMetadata::discover_async(issuer.clone(), asking).await;
    let metadata = found.map_err(|error| unusable(&error))?;
    usable(asking, &metadata).map_err(|why| Unusable(why.to_owned()))?;
    Ok(metadata)
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library may add variants; their own text is complete"
)]
fn unusable(error: &DiscoveryError<Failed>) -> Unusable {
    Unusable(match error {
        DiscoveryError::Request(failed) => failed.to_string(),
        DiscoveryError::Response(status, ..) => format!("the answer was {status}"),
        DiscoveryError::Parse(cause) => format!("its metadata cannot be read: {cause}"),
        other => other.to_string(),
    })
}

/// Checks that people can be sent to this provider, and that it does not have too many keys.
fn usable(asking: &Asking<'_>, metadata: &CoreProviderMetadata) -> Result<(), &'static str> {
    // The browser must not be sent to an address that this server may not request itself.
    let page = metadata.authorization_endpoint().as_str();
    Target::read(page, asking.egress).map_err(|_| "its authorization endpoint is not allowed")?;
    if metadata.token_endpoint().is_none() {
        return Err("it names no token endpoint");
    }
    if metadata.jwks().keys().len() > OPENID_KEYS_MAX {
        return Err("it has too many keys");
    }
    Ok(())
}

/// How the client's secret is sent to a provider: in a header, unless the provider accepts it only in the form.
pub(super) fn way_of_secret(metadata: &CoreProviderMetadata) -> AuthType {
    let ways = metadata.token_endpoint_auth_methods_supported();
    let takes = |way| ways.is_none_or(|ways| ways.contains(&way));
    if !takes(CoreClientAuthMethod::ClientSecretBasic) && takes(CoreClientAuthMethod::ClientSecretPost) {
        AuthType::RequestBody
    } else {
        AuthType::BasicAuth
    }
}
