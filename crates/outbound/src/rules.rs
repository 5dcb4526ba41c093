//! What the requests of each tenant may reach.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use switchward_delivery::guard::{Egress, Policies, RulesUnknown};
use switchward_machine::TenantId;
use switchward_query::outgoing::ShardView;
use switchward_shard::Cluster;
use switchward_state::{ViewError, tenant_numbered};

/// Tenants whose names are remembered; those of others are looked up each time.
const KNOWN_MAX: usize = 100_000;

/// Looks up the names of tenants.
pub trait Names: Send + Sync + 'static {
    /// The name of a tenant; `None` if there is no such tenant.
    ///
    /// # Errors
    /// The tenants cannot be read.
    fn name_of(&self, tenant: TenantId) -> Result<Option<String>, ViewError>;
}

impl Names for Cluster {
    fn name_of(&self, tenant: TenantId) -> Result<Option<String>, ViewError> {
        let found = tenant_numbered(ShardView::stale(self.catalogue()).rows(), tenant)?;
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

/// The egress rules of tenants.
#[derive(Debug, Clone, Default)]
pub struct TenantRules {
    /// The rules of all tenants that have none of their own.
    pub of_all: Egress,
    /// The rules of single tenants, by name, which replace those of all.
    pub of_tenant: BTreeMap<String, Egress>,
}

impl TenantRules {
    /// Returns the policies of the HTTP client, which knows tenants by number. A tenant whose name cannot be read may reach
    /// nothing, if there are rules of single tenants.
    #[must_use]
    pub fn policies(self, names: impl Names) -> Arc<dyn Policies> {
        let of_tenant = self.of_tenant.into_iter().map(|(name, rules)| (name, Arc::new(rules))).collect();
        Arc::new(Rules { of_all: Arc::new(self.of_all), of_tenant, names })
    }
}

/// The rules, with the names of tenants.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Tenant 1 is `acme`, tenant 3 `globex`; the last number cannot be read, all others do not exist. Notes what was read.
    struct Counted(Mutex<Vec<u32>>);

    impl Names for Counted {
        fn name_of(&self, tenant: TenantId) -> Result<Option<String>, ViewError> {
            self.0.lock().push(tenant.0);
            match tenant.0 {
                1 => Ok(Some("acme".to_owned())),
                3 => Ok(Some("globex".to_owned())),
                u32::MAX => Err(ViewError("the disk is gone".to_owned())),
                _ => Ok(None),
            }
        }
    }

    /// A name that was read once is not read again; what could not be read is.
    #[test]
    fn the_name_of_a_tenant_is_read_once() {
        let counted = Arc::new(Counted(Mutex::default()));
        let (known, uncached) = (Known::new(Arc::clone(&counted)), Counted(Mutex::default()));
        for tenant in [1, 3, 4, u32::MAX].repeat(2) {
            let tenant = TenantId(tenant);
            assert_eq!(known.name_of(tenant), uncached.name_of(tenant));
        }
        assert_eq!(*counted.0.lock(), [1, 3, 4, u32::MAX, 4, u32::MAX]);
    }
}
