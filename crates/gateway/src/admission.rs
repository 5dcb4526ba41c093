//! Who may send a body at all: the credential is looked at before any of the body is read, at a gateway by asking a server.
//! The bodies that are being read have a budget in bytes, of the server, of each tenant and of each connection. A server
//! counts the call against the tenant's quota of requests per second, with these exceptions:
//!
//! - Health checks have no tenant, and what they may send is limited. Reflection is counted, as a call with a key.
//! - Calls of ClockService on a development server, whose clock stands until they move it.
//! - Decision pages: they end what is in progress, and starting it was already counted.
//! - Incoming webhooks: a sender without a valid signature must not use up a tenant's quota. Signed messages are limited
//!   per source, and those with a reply token per token; see [`webhooks`](crate::webhooks).
//! - Inbound mail: a mail server resends refused messages, and a relay's key brings the mail of other tenants.

mod authenticated;

use http::{Extensions, HeaderMap};
use std::sync::Arc;
use switchward_machine::TenantId;
use switchward_state::catalogue::{Quotas, Role};
use switchward_state::limits::WEIGHT_DEFAULT;

use crate::api::Api;
use crate::bodies::{Bodies, Held};
use crate::connections::Open;
use crate::cpu_shares::{CpuPermit, CpuShares};
use crate::error::Refusal;
use crate::limits::LARGE_BYTES;
use crate::open_calls::OpenCalls;
use crate::proxy::{Holder, Holders, HoldersElsewhere};
use crate::quotas::Class;
use crate::{auth, reply_tokens};
pub(crate) use authenticated::{Authenticated, LastKey};

/// The path of reflection, which shows nothing about any tenant and requires a key.
const REFLECTION: &str = "/grpc.reflection.";

/// Decides which calls need a credential and how much memory their bodies may take. Cheap to clone.
#[derive(Clone, Default)]
pub struct Admission(Arc<Parts>);

/// What all layers of the port share; a layer is cloned for each call.
#[derive(Default)]
struct Parts {
    judge: Judge,
    bodies: Bodies,
    calls: OpenCalls,
    shares: CpuShares,
}

/// Who looks up credentials.
#[derive(Default)]
enum Judge {
    /// Nobody: no credential is required, as in front of services of another kind.
    #[default]
    Nobody,
    /// This server.
    Own(Box<Api>),
    /// The servers that this gateway passes calls on to.
    Servers(Arc<dyn HoldersElsewhere>),
}

impl Admission {
    /// Asks for a credential of this server.
    #[must_use]
    pub fn of(api: &Api) -> Self {
        let judge = Judge::Own(Box::new(api.clone()));
        let (bodies, shares) = (api.bodies.clone(), api.shares.clone());
        Self(Arc::new(Parts { judge, bodies, shares, calls: OpenCalls::default() }))
    }

    /// Asks for a credential that a server accepts; the server to which a call is passed on looks at it again, and counts the
    /// call. Bodies may take a part of this memory, bytes.
    pub(crate) fn of_gateway(servers: Arc<dyn HoldersElsewhere>, memory: usize) -> Self {
        let (judge, bodies) = (Judge::Servers(servers), Bodies::within(memory));
        Self(Arc::new(Parts { judge, bodies, ..Parts::default() }))
    }

    /// Returns true if a path is called with a credential alone.
    pub(crate) fn guards(path: &str) -> bool {
        crate::calls::method_at(path).is_some() || path.starts_with(REFLECTION)
    }

    /// Looks at the credential of a call, and counts the call unless it is [`Counted`].
    ///
    /// # Errors
    /// CREDENTIAL_INVALID, QUOTA_EXCEEDED above the tenant's limit of requests per second, connections or open calls, and
    /// UNAVAILABLE if nobody can tell whose the credential is.
    pub(crate) async fn admit(
        &self,
        path: &str,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<Hold, Refusal> {
        let (api, sender) = match &self.0.judge {
            Judge::Own(api) => {
                let last = extensions.get::<Arc<Open>>().map(|open| &open.connection.last_key);
                (api, sender(api, headers, last).await?)
            }
            Judge::Servers(servers) => {
                let holder = servers.holder(headers, extensions).await?;
                return self.hold_of(holder, extensions);
            }
            Judge::Nobody => return Ok(self.hold(None, WEIGHT_DEFAULT, extensions)),
        };
        self.0.shares.called(sender.tenant);
        if extensions.get::<Counted>().is_none() {
            self.count(api, path, &sender, extensions)?;
        }
        let weight = sender.quotas.weight.unwrap_or(WEIGHT_DEFAULT);
        Ok(Hold { key: sender.key, ..self.hold(Some(sender.tenant), weight, extensions) })
    }

    /// Counts a call against the limits of its tenant.
    ///
    /// # Errors
    /// QUOTA_EXCEEDED above one of them.
    fn count(&self, api: &Api, path: &str, sender: &Sender, extensions: &Extensions) -> Result<(), Refusal> {
        let (tenant, role) = (sender.tenant, sender.role());
        let class_of = if api.clock.is_some() { Class::of_manual_clock } else { Class::of };
        let class = class_of(path, role);
        if let Some(rate) = api.quotas.under(sender.quotas).requests_per_second {
            api.rates.take(tenant, rate, class, api.cluster.now())?;
        }
        if let Some(open) = extensions.get::<Arc<Open>>() {
            open.is_call(|| self.0.calls.begin(tenant, class))?;
            // A connection with only a reply token can still be closed in favour of another one.
            if role.is_some() {
                open.connection.has_key(tenant)?;
            }
        }
        Ok(())
    }

    /// What a call of this holder holds at a gateway, where tenants have no shares of the cores.
    ///
    /// # Errors
    /// QUOTA_EXCEEDED above the tenant's limit of connections.
    fn hold_of(&self, holder: Holder, extensions: &Extensions) -> Result<Hold, Refusal> {
        if holder.is_key
            && let Some(open) = extensions.get::<Arc<Open>>()
        {
            open.connection.has_key(holder.tenant)?;
        }
        let share = TenantShare { tenant: None, weight: WEIGHT_DEFAULT };
        Ok(Hold { body: self.0.bodies.begin(Some(holder.tenant), extensions), share, key: None })
    }

    /// What a call of this tenant holds.
    fn hold(&self, tenant: Option<TenantId>, weight: u32, extensions: &Extensions) -> Hold {
        let share = TenantShare { tenant, weight };
        Hold { body: self.0.bodies.begin(tenant, extensions), share, key: None }
    }

    /// Waits for a permit to decode or write this many bytes. Returns `None` if they are few, or without a tenant.
    ///
    /// # Errors
    /// As [`CpuShares::enter`].
    pub(crate) async fn permit(
        &self,
        share: TenantShare,
        bytes: usize,
    ) -> Result<Option<CpuPermit>, Refusal> {
        match share.tenant {
            Some(tenant) if bytes > LARGE_BYTES => self.0.shares.enter(tenant, share.weight).await.map(Some),
            _ => Ok(None),
        }
    }
}

#[tonic::async_trait]
impl Holders for Api {
    async fn holder(&self, headers: &HeaderMap) -> Result<Holder, Refusal> {
        let sender = sender(self, headers, None).await?;
        Ok(Holder { tenant: sender.tenant, is_key: sender.key.is_some() })
    }
}

/// Marks a request that was counted before and comes by here in another form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted;

/// Who sends a call, by its credential.
struct Sender {
    tenant: TenantId,
    /// What is set for the tenant.
    quotas: Quotas,
    /// The API key; `None` for a reply token.
    key: Option<Authenticated>,
}

impl Sender {
    /// The role of the API key; `None` for a reply token.
    fn role(&self) -> Option<Role> {
        self.key.as_ref().map(|key| key.valid_key().key.role)
    }
}

/// Looks the credential up, which may be the key that came over its connection last.
async fn sender(api: &Api, headers: &HeaderMap, last: Option<&LastKey>) -> Result<Sender, Refusal> {
    if let Some(token) = reply_tokens::of(auth::credential(headers)).transpose()? {
        let caller = api.caller_by_token(&token).await?;
        return Ok(Sender { tenant: caller.tenant, quotas: caller.settings.quotas, key: None });
    }
    let key = Authenticated::of(&api.cluster, headers, last).await?;
    let found = key.valid_key();
    Ok(Sender { tenant: found.key.tenant, quotas: found.tenant.settings.quotas, key: Some(key) })
}

/// What a call holds while its body is read and answered.
pub(crate) struct Hold {
    /// What its body takes of the budgets.
    pub(crate) body: Held,
    /// The tenant's share of the cores.
    pub(crate) share: TenantShare,
    /// The API key that the call came with, for the service that answers it.
    pub(crate) key: Option<Authenticated>,
}

/// A tenant's share of the cores; without a tenant there is none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TenantShare {
    tenant: Option<TenantId>,
    weight: u32,
}
