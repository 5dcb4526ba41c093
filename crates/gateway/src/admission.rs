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

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Extensions, HeaderMap, header};
use parking_lot::Mutex;
use switchward_engine::limits::WEIGHT_DEFAULT;
use switchward_engine::{Quotas, Role};
use switchward_machine::TenantId;
use tonic::metadata::MetadataMap;

use crate::auth;
use crate::connections::{Connection, Open};
use crate::door::Door;
use crate::error::{Reason, Refusal};
use crate::limits::{
    BODIES_BYTES_MAX, BODIES_OF_CONNECTION_BYTES_MAX, BODIES_OF_TENANT_BYTES_MAX, LARGE_BYTES,
};
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
    bodies: Arc<Bodies>,
    calls: OpenCalls,
    shares: Shares,
}

impl Admission {
    /// Asks for a credential of this server.
    #[must_use]
    pub fn of(door: &Door) -> Self {
        Self { door: Some(door.clone()), shares: door.shares.clone(), ..Self::default() }
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
        let connection = open.map(|open| Arc::clone(&open.connection));
        Ok(Hold { bodies: Arc::clone(&self.bodies), share, tenant, connection, bytes: 0 })
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

/// Bytes of bodies that are being read, or are being answered.
#[derive(Default)]
struct Bodies {
    server: AtomicUsize,
    tenants: Mutex<HashMap<TenantId, usize>>,
}

/// What one body takes of the budgets, as long as it is kept.
pub(crate) struct Hold {
    bodies: Arc<Bodies>,
    /// The tenant's share of the cores.
    pub(crate) share: TenantShare,
    tenant: Option<TenantId>,
    connection: Option<Arc<Connection>>,
    bytes: usize,
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

impl Hold {
    /// Adds this many bytes of the body to the budgets.
    ///
    /// # Errors
    /// QUOTA_EXCEEDED where a budget has no room for them; it names the budget.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.bytes += bytes;
        let server = self.bodies.server.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let of_connection = self.connection.as_ref().map_or(0, |connection| connection.add_bytes(bytes));
        let of_tenant = self.tenant.map_or(0, |tenant| {
            let mut tenants = self.bodies.tenants.lock();
            let held = tenants.entry(tenant).or_default();
            *held += bytes;
            *held
        });
        let budgets = [
            ("connection", of_connection, BODIES_OF_CONNECTION_BYTES_MAX),
            ("tenant", of_tenant, BODIES_OF_TENANT_BYTES_MAX),
            ("server", server, BODIES_BYTES_MAX),
        ];
        match budgets.into_iter().find(|(_, held, most)| held > most) {
            None => Ok(()),
            Some((whose, _, most)) => {
                let message = format!(
                    "requests of this {whose} that are being read and answered take more than {most} bytes; send it again later"
                );
                Err(Refusal::new(Reason::QuotaExceeded, message.clone()).quota("bodies_in_flight", message))
            }
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.bodies.server.fetch_sub(self.bytes, Ordering::Relaxed);
        if let Some(connection) = &self.connection {
            connection.take_bytes(self.bytes);
        }
        let Some(tenant) = self.tenant else { return };
        let mut tenants = self.bodies.tenants.lock();
        if let Some(held) = tenants.get_mut(&tenant) {
            *held -= self.bytes;
            if *held == 0 {
                tenants.remove(&tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_budget_refuses_what_it_has_no_room_for_and_has_it_back() {
        let (bodies, one, other) = (Arc::<Bodies>::default(), TenantId(1), TenantId(2));
        let hold = |tenant, connection: Option<&Arc<Connection>>| Hold {
            bodies: Arc::clone(&bodies),
            share: TenantShare { shares: Shares::default(), tenant: None, weight: WEIGHT_DEFAULT },
            tenant: Some(tenant),
            connection: connection.cloned(),
            bytes: 0,
        };
        let refused = |hold: &mut Hold, bytes: usize| {
            let refusal = hold.grow(bytes).expect_err("there is no room");
            assert_eq!(refusal.reason(), Reason::QuotaExceeded);
        };
        let connection = Arc::<Connection>::default();
        let mut on_it = hold(one, Some(&connection));
        on_it.grow(BODIES_OF_CONNECTION_BYTES_MAX).expect("there is room");
        refused(&mut hold(one, Some(&connection)), 1);
        let mut rest = hold(one, None);
        rest.grow(BODIES_OF_TENANT_BYTES_MAX - BODIES_OF_CONNECTION_BYTES_MAX).expect("there is room");
        refused(&mut hold(one, None), 1);
        // Another tenant has its own, until the server's is used up.
        let mut others: Vec<Hold> = Vec::new();
        for number in 2.. {
            let mut next = hold(TenantId(number), None);
            let went = next.grow(BODIES_OF_TENANT_BYTES_MAX);
            others.push(next);
            if went.is_err() {
                break;
            }
        }
        refused(&mut hold(other, None), 1);
        drop((on_it, rest, others));
        hold(one, Some(&connection)).grow(BODIES_OF_CONNECTION_BYTES_MAX).expect("all of it is back");
        assert_eq!((bodies.server.load(Ordering::Relaxed), bodies.tenants.lock().len()), (0, 0));
    }
}
