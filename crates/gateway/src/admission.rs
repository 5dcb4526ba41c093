//! Who may send a body at all: the credential is looked at before any of the body is read, and the bodies that are being
//! read have a budget in bytes, of the server, of each tenant and of each connection. The call is counted against the
//! tenant's quota of requests per second, with these exceptions:
//!
//! - Health checks have no tenant, and what they may send is limited. Reflection is counted, as a call with a key.
//! - Calls of ClockService on a development server, whose clock stands until they move it.
//! - Decision pages: people end what is under way there, and whoever starts it was counted.
//! - Webhooks that come in: whoever sends them without a valid signature must not use up a tenant's quota. What is signed is
//!   limited for each source; see [`webhooks`](crate::webhooks).
//! - Mail that comes in: a mail server sends again what is refused, and a relay's key brings the mail of other tenants.

use std::sync::Arc;

use http::{Extensions, HeaderMap, header};
use switchward_engine::limits::WEIGHT_DEFAULT;
use switchward_engine::{Quotas, Role};
use switchward_machine::TenantId;
use tonic::metadata::MetadataMap;

use crate::auth;
use crate::bodies::{Bodies, Held};
use crate::connections::Open;
use crate::door::Door;
use crate::error::Refusal;
use crate::limits::LARGE_BYTES;
use crate::open_calls::OpenCalls;
use crate::quotas::Class;
use crate::reply_tokens;
use crate::shares::{Place, Shares};

/// Where reflection is found, which tells nothing of any tenant and is for those who have a key.
const REFLECTION: &str = "/grpc.reflection.";

/// Who is asked for a credential, and what their bodies may take. Cheap to clone.
#[derive(Clone, Default)]
pub struct Admission {
    /// Where credentials are looked up; `None`: nobody is asked for one, as in front of services of another kind.
    door: Option<Door>,
    bodies: Bodies,
    calls: OpenCalls,
    shares: Shares,
}

impl Admission {
    /// Asks for a credential of this server.
    #[must_use]
    pub fn of(door: &Door) -> Self {
        Self {
            door: Some(door.clone()),
            bodies: door.bodies.clone(),
            shares: door.shares.clone(),
            ..Self::default()
        }
    }

    /// Returns true if a path is called with a credential alone.
    pub(crate) fn guards(path: &str) -> bool {
        crate::calls::method_at(path).is_some() || path.starts_with(REFLECTION)
    }

    /// Looks at the credential of a call, and counts the call unless it is [`Counted`].
    ///
    /// # Errors
    /// CREDENTIAL_INVALID, and QUOTA_EXCEEDED above the tenant's quota of requests per second, of connections and of open calls.
    pub(crate) async fn admit(
        &self,
        path: &str,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<Hold, Refusal> {
        let open = extensions.get::<Arc<Open>>();
        let found = match &self.door {
            Some(door) => Some((door, tenant(door, headers).await?)),
            None => None,
        };
        let tenant = found.map(|(_, (tenant, ..))| tenant);
        if let Some(tenant) = tenant {
            self.shares.called(tenant);
        }
        let weight = found.and_then(|(_, (_, quotas, _))| quotas.weight).unwrap_or(WEIGHT_DEFAULT);
        if let Some((door, (tenant, quotas, role))) = found
            && extensions.get::<Counted>().is_none()
        {
            let class = Class::of(path, role, door.clock.is_some());
            if let Some(rate) = door.quotas.under(quotas).requests_per_second {
                door.rates.take(tenant, rate, class, door.cluster.now())?;
            }
            if let Some(open) = open {
                open.is_call(|| self.calls.begin(tenant, class))?;
                // A connection with a reply token alone can still be closed to make room for another one.
                if role.is_some() {
                    open.connection.has_key(tenant)?;
                }
            }
        }
        let share = TenantShare { shares: self.shares.clone(), tenant, weight };
        Ok(Hold { body: self.bodies.begin(tenant, extensions), share })
    }
}

/// Marks a request that was counted before and comes by here in another form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted;

/// The tenant that a credential opens, the quotas that are set for it, and the role of an API key; `None` for a reply token.
async fn tenant(door: &Door, headers: &HeaderMap) -> Result<(TenantId, Quotas, Option<Role>), Refusal> {
    let mut credential = HeaderMap::new();
    credential.extend(headers.get(header::AUTHORIZATION).map(|value| (header::AUTHORIZATION, value.clone())));
    let metadata = MetadataMap::from_headers(credential);
    let (caller, by_token) = match reply_tokens::of(&metadata).transpose()? {
        Some(token) => (door.caller_by_token(&token).await?, true),
        None => (auth::caller(&door.cluster, &metadata)?, false),
    };
    Ok((caller.tenant, caller.settings.quotas, (!by_token).then_some(caller.actor.role)))
}

/// What a call holds while its body is read and answered.
pub(crate) struct Hold {
    /// What its body takes of the budgets.
    pub(crate) body: Held,
    /// The tenant's share of the cores.
    pub(crate) share: TenantShare,
}

/// A tenant's share of the cores; without a tenant there is none.
#[derive(Clone)]
pub(crate) struct TenantShare {
    shares: Shares,
    tenant: Option<TenantId>,
    weight: u32,
}

impl TenantShare {
    /// Waits for a core to decode or write this many bytes on; `None` where they are few.
    ///
    /// # Errors
    /// As [`Shares::enter`].
    pub(crate) async fn place(&self, bytes: usize) -> Result<Option<Place>, Refusal> {
        match self.tenant {
            Some(tenant) if bytes > LARGE_BYTES => self.shares.enter(tenant, self.weight).await.map(Some),
            _ => Ok(None),
        }
    }
}
