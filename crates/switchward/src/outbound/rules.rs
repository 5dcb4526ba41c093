//! What each tenant's definitions may reach, as configured.

use anyhow::Context as _;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use switchward_delivery::guard::{Egress, HostRule, Policies, RulesUnknown};
use switchward_machine::TenantId;
use switchward_shard::Cluster;
use switchward_state::{ViewError, tenant_numbered};

use super::DeliveryConfig;

/// Tenants whose names are remembered; those of others are looked up each time.
const KNOWN_MAX: usize = 100_000;

/// Looks up the names of tenants.
pub(super) trait Names: Send + Sync + 'static {
    /// The name of a tenant; `None` if there is no such tenant.
    ///
    /// # Errors
    /// The tenants cannot be read.
    fn name_of(&self, tenant: TenantId) -> Result<Option<String>, ViewError>;
}

impl Names for Cluster {
    fn name_of(&self, tenant: TenantId) -> Result<Option<String>, ViewError> {
        let found = tenant_numbered(&self.catalogue().read_stale(), tenant)?;
        Ok(found.map(|tenant| tenant.name))
    }
}

impl<N: Names> Names for Arc<N> {
    fn name_of(&self, tenant: TenantId) -> Result<Option<String>, ViewError> {
        N::name_of(self, tenant)
    }
}

/// Caches the names of tenants: a tenant keeps its name.
pub(super) struct Known<N> {
    names: N,
    known: Mutex<BTreeMap<TenantId, String>>,
}

impl<N: Names> Known<N> {
    /// Creates an empty cache in front of `names`.
    pub(super) fn new(names: N) -> Self {
        Self { names, known: Mutex::default() }
    }
}

impl<N: Names> Names for Known<N> {
    fn name_of(&self, tenant: TenantId) -> Result<Option<String>, ViewError> {
        if let Some(name) = self.known.lock().get(&tenant) {
            return Ok(Some(name.clone()));
        }
        let name = self.names.name_of(tenant)?;
        let mut known = self.known.lock();
        if let Some(name) = &name
            && known.len() < KNOWN_MAX
        {
            known.insert(tenant, name.clone());
        }
        Ok(name)
    }
}

/// The rules of all tenants, and those of single tenants that replace them.
struct Rules<N> {
    of_all: Arc<Egress>,
    of_tenant: BTreeMap<String, Arc<Egress>>,
    names: N,
}

impl<N: Names> Policies for Rules<N> {
    fn egress(&self, tenant: u32) -> Result<Arc<Egress>, RulesUnknown> {
        if self.of_tenant.is_empty() {
            return Ok(Arc::clone(&self.of_all));
        }
        match self.names.name_of(TenantId(tenant)) {
            Ok(Some(name)) => Ok(Arc::clone(self.of_tenant.get(&name).unwrap_or(&self.of_all))),
            Ok(None) => {
                tracing::error!(tenant, "the tenant does not exist: its requests are refused");
                Err(RulesUnknown)
            }
            Err(error) => {
                tracing::error!(tenant, %error, "failed to read the tenants: requests of this one are refused");
                Err(RulesUnknown)
            }
        }
    }
}

impl DeliveryConfig {
    /// What each tenant may reach.
    ///
    /// # Errors
    /// A host is invalid.
    pub(super) fn policies(&self, names: impl Names) -> anyhow::Result<Arc<dyn Policies>> {
        let of_all = self.egress(self.allowed_hosts.as_deref())?;
        let mut of_tenant = BTreeMap::new();
        for (name, hosts) in &self.tenants {
            of_tenant.insert(name.clone(), self.egress(Some(hosts))?);
        }
        Ok(Arc::new(Rules { of_all, of_tenant, names }))
    }

    fn egress(&self, hosts: Option<&[String]>) -> anyhow::Result<Arc<Egress>> {
        let rule = |host: &String| {
            HostRule::read(host).with_context(|| {
                format!("delivery: {host:?} is neither a host nor a pattern like *.example.com")
            })
        };
        let rules = |hosts: &[String]| hosts.iter().map(rule).collect::<anyhow::Result<Vec<_>>>();
        Ok(Arc::new(Egress {
            allow_loopback: self.allow_loopback,
            allow_private: false,
            allow_http: self.allow_http,
            ports: self.ports.clone(),
            allowed_hosts: hosts.map(rules).transpose()?,
        }))
    }
}
