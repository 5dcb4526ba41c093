//! Endpoints: the receivers of a tenant's events.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{TenantId, Time};
use zeroize::Zeroizing;

use crate::delivery::{
    DeliveryDetail, DeliveryFailure, DisabledReason, FailureCode, PublishedType, SourceSecret, webhook_source,
};
use crate::limits::{ENDPOINT_NOTED_AGAIN_MS, ENDPOINT_NOTED_MS};
use crate::seal::{KeyRing, SecretOf};

/// A receiver of what happens in a tenant's sessions.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Endpoint {
    /// Its name; never changes.
    #[n(0)]
    pub id: String,
    /// Where messages go.
    #[n(1)]
    pub url: String,
    /// What messages are signed with: the one of now first, then the one before it while that is still good.
    #[n(2)]
    pub secrets: Vec<SourceSecret>,
    /// What it wants: `session.started`, `session.*` or `*`; empty for everything.
    #[n(3)]
    pub filters: Vec<String>,
    /// Why it is disabled; `None` if it is enabled.
    #[n(4)]
    pub disabled: Option<DisabledReason>,
    /// When it was made.
    #[n(5)]
    pub created: Time,
    /// Its health, as it was noted last; `None` before its first message. The catalogue's record alone is up to date.
    #[n(6)]
    pub health: Option<EndpointHealth>,
}

/// How an endpoint does. Not every attempt is noted: see [`EndpointHealth::after`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct EndpointHealth {
    /// The first failure since the last success; `None` while it takes what it is sent.
    #[n(0)]
    pub failing_since: Option<Time>,
    /// The last success that was noted.
    #[n(1)]
    pub succeeded: Option<Time>,
    /// The last failure that was noted.
    #[n(2)]
    pub failed: Option<DeliveryFailure>,
}

impl EndpointHealth {
    /// The note of an attempt that ended `now`, with what went wrong if something did; `None` if too little has changed.
    /// The end of failing is noted at once; its beginning once [`ENDPOINT_NOTED_MS`] have passed since the last note, so
    /// that an endpoint that fails now and then costs two notes in that time and no more; and what goes on as it was
    /// every [`ENDPOINT_NOTED_AGAIN_MS`].
    #[must_use]
    pub fn after(&self, failure: Option<&(FailureCode, Option<DeliveryDetail>)>, now: Time) -> Option<Self> {
        let noted = self.succeeded.max(self.failed.as_ref().map(|failed| failed.at));
        let passed = |ms| noted.is_none_or(|noted| now.since_ms(noted) >= ms);
        let Some((code, detail)) = failure else {
            let changed = self.failing_since.is_some() || passed(ENDPOINT_NOTED_AGAIN_MS);
            return changed.then(|| Self { failing_since: None, succeeded: Some(now), ..self.clone() });
        };
        let changed = if self.failing_since.is_some() {
            passed(ENDPOINT_NOTED_AGAIN_MS)
        } else {
            passed(ENDPOINT_NOTED_MS)
        };
        let failed = || Some(DeliveryFailure { code: code.clone(), detail: detail.clone(), at: now });
        let since = self.failing_since.unwrap_or(now);
        changed.then(|| Self { failing_since: Some(since), failed: failed(), ..self.clone() })
    }
}

impl Endpoint {
    /// Whether it receives events of this type.
    #[must_use]
    pub fn wants(&self, kind: PublishedType) -> bool {
        let kind = kind.word();
        let group = kind.split_once('.').map_or(kind, |(group, _)| group);
        let takes = |filter: &String| {
            filter == "*" || filter == kind || filter.strip_suffix(".*").is_some_and(|word| word == group)
        };
        self.disabled.is_none() && (self.filters.is_empty() || self.filters.iter().any(takes))
    }

    /// The secrets that are valid at this time, the newest first, opened. One that cannot be opened is left out.
    #[must_use]
    pub fn good_secrets(&self, ring: &KeyRing, tenant: TenantId, now: Time) -> Vec<Zeroizing<String>> {
        webhook_source::good(&self.secrets, ring, tenant, SecretOf::Endpoint(&self.id), now)
    }

    /// Stands for the endpoint as it is now: 16 hexadecimal digits, others after every change but those of its health.
    #[must_use]
    pub fn etag(&self) -> String {
        crate::catalogue::etag(&Self { health: None, ..self.clone() })
    }

    /// What it holds, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.url.len() + self.filters.iter().map(String::len).sum::<usize>()
    }
}
