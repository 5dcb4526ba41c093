//! Queries about tenants, their keys and their settings.

use minicbor::{CborLen, Decode, Encode};
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_machine::{Bucket, TenantId};
use switchward_shard::StateView;
use switchward_state::catalogue::{ApiKey, Tenancy, Tenant};
use switchward_state::seal::Sealed;
use switchward_state::session::Retention;
use switchward_state::{Key, Kind, ReadRows as _, Row, SharedRow, View, ViewError, tenant_numbered};

use crate::ask::{Ask, AskStale, Evaluate, Source};
use crate::list::{Bounds, Rows};

/// The tenant of rows that are the server's own.
const NOBODY: TenantId = TenantId(0);

/// A query about tenants, their keys and their settings.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum TenantQuery {
    /// A tenant by its name.
    #[n(0)]
    Get(#[n(0)] GetTenant),
    /// A tenant by its number, which rows and ids have.
    #[n(1)]
    Numbered(#[n(0)] GetTenantNumbered),
    /// Whether there is or was a tenant.
    #[n(2)]
    Has(#[n(0)] HasTenant),
    /// All tenants.
    #[n(3)]
    List(#[n(0)] ListTenants),
    /// The names of all tenants.
    #[n(4)]
    Names(#[n(0)] ListTenantNames),
    /// The settings of a tenant.
    #[n(5)]
    Record(#[n(0)] GetTenantRecord),
    /// The settings of a tenant as a shard knows them.
    #[n(6)]
    ShardRecord(#[n(0)] GetShardTenant),
    /// How long mail is kept.
    #[n(7)]
    MailRetention(#[n(0)] GetMailRetention),
    /// The keys of mail tokens and reply tokens.
    #[n(8)]
    MailKeys(#[n(0)] GetMailKeys),
    /// An API key by its public id.
    #[n(9)]
    ApiKey(#[n(0)] GetApiKey),
    /// The API keys of a tenant.
    #[n(10)]
    ListApiKeys(#[n(0)] ListApiKeys),
    /// The tenants whose effects are held.
    #[n(11)]
    Held(#[n(0)] ListTenantsHeld),
}

/// A tenant by its name. Answers `None` if there is none.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetTenant {
    /// The tenant's name, as resource names have it.
    #[n(0)]
    pub name: String,
}

impl Evaluate for GetTenant {
    type Answer = Option<SharedRow<Tenant>>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        rows.tenant_at(&Key::tenant(&self.name))
    }
}

impl Ask for GetTenant {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

impl AskStale for GetTenant {}

/// A tenant by its number. Answers `None` if there is none.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetTenantNumbered {
    /// The number.
    #[n(0)]
    pub tenant: TenantId,
}

impl Evaluate for GetTenantNumbered {
    type Answer = Option<Tenant>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        tenant_numbered(rows, self.tenant)
    }
}

impl Ask for GetTenantNumbered {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

impl AskStale for GetTenantNumbered {}

/// Whether there is a tenant with this number, or was one that is deleted. A row that cannot be read counts as none.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct HasTenant {
    /// The number.
    #[n(0)]
    pub tenant: TenantId,
}

impl Evaluate for HasTenant {
    type Answer = bool;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let record = rows.row(&Key::tenancy_record(self.tenant));
        let recorded = record.is_ok_and(|record| record.is_some());
        Ok(recorded || tenant_numbered(rows, self.tenant).is_ok_and(|tenant| tenant.is_some()))
    }
}

impl Ask for HasTenant {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

impl AskStale for HasTenant {}

/// All tenants, by name.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ListTenants {
    /// The part of the list.
    #[n(0)]
    pub bounds: Bounds,
}

impl Evaluate for ListTenants {
    type Answer = Rows<Tenant>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let prefix = Key::prefix_of_catalogue(NOBODY, Kind::Tenant);
        self.bounds.rows(rows, &prefix)
    }
}

impl Ask for ListTenants {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

/// The names of all tenants, in order.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ListTenantNames {}

impl Evaluate for ListTenantNames {
    type Answer = Vec<String>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let mut names = Vec::new();
        rows.scan(&Key::prefix_of_catalogue(NOBODY, Kind::Tenant), None, &mut |_, row| {
            if let Row::Tenant(tenant) = &**row {
                names.push(tenant.name.clone());
            }
            ControlFlow::Continue(())
        })?;
        Ok(names)
    }
}

impl Ask for ListTenantNames {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

impl AskStale for ListTenantNames {}

/// The numbers of the tenants whose effects are held after a restore, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ListTenantsHeld {}

impl Evaluate for ListTenantsHeld {
    type Answer = Vec<TenantId>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let mut tenants = Vec::new();
        rows.scan(&Key::prefix_of_catalogue(NOBODY, Kind::Tenant), None, &mut |_, row| {
            if let Row::Tenant(tenant) = &**row
                && tenant.deleted.is_none()
            {
                tenants.push(tenant.id);
            }
            ControlFlow::Continue(())
        })?;
        let mut held = Vec::new();
        for tenant in tenants {
            let record = rows.tenancy_at(&Key::tenancy_record(tenant))?;
            if record.is_some_and(|record| record.held.is_some()) {
                held.push(tenant);
            }
        }
        Ok(held)
    }
}

impl Ask for ListTenantsHeld {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

/// The settings of a tenant: directory, policies, endpoints, retention. Answers `None` if none were set yet.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetTenantRecord {
    /// The tenant whose settings are read.
    #[n(0)]
    pub tenant: TenantId,
}

impl Evaluate for GetTenantRecord {
    type Answer = Option<SharedRow<Tenancy>>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        rows.tenancy_at(&Key::tenancy_record(self.tenant))
    }
}

impl Ask for GetTenantRecord {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

/// The settings of a tenant as the shard of a bucket knows them. Answers `None` if it knows none.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetShardTenant {
    /// The tenant whose settings are read.
    #[n(0)]
    pub tenant: TenantId,
    /// A bucket of the shard that is asked.
    #[n(1)]
    pub bucket: Bucket,
}

impl Evaluate for GetShardTenant {
    type Answer = Option<SharedRow<Tenancy>>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        rows.tenancy_at(&Key::tenancy(self.tenant))
    }
}

impl Ask for GetShardTenant {
    fn source(&self) -> Source {
        Source::Bucket(self.bucket)
    }
}

/// The retention rules that hold for mail of a tenant. Answers `None` if the tenant is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetMailRetention {
    /// The tenant whose mail is kept.
    #[n(0)]
    pub tenant: TenantId,
}

impl Evaluate for GetMailRetention {
    type Answer = Option<Retention>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        match rows.tenancy_at(&Key::tenancy_record(self.tenant))? {
            Some(record) => Ok(record.deletion.is_none().then(|| record.retention.clone())),
            // A tenant may have no record yet. One that the rows do not hold at all may be from before a restore, and its
            // number may become another tenant's.
            None => Ok(tenant_numbered(rows, self.tenant)?.map(|_| Retention::default())),
        }
    }
}

impl Ask for GetMailRetention {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

impl AskStale for GetMailRetention {}

/// What the mail tokens and reply tokens of a tenant are made with, sealed, the newest first. Answers an empty list if the
/// tenant has none.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetMailKeys {
    /// The tenant whose tokens are made or checked.
    #[n(0)]
    pub tenant: TenantId,
}

impl Evaluate for GetMailKeys {
    type Answer = Vec<Sealed>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let tenancy = rows.tenancy_at(&Key::tenancy(self.tenant))?;
        Ok(tenancy.map(|known| known.keys.clone()).unwrap_or_default())
    }
}

impl Ask for GetMailKeys {
    fn source(&self) -> Source {
        Source::Any
    }
}

impl AskStale for GetMailKeys {}

/// An API key. Answers `None` if there is none of this id.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetApiKey {
    /// The key's public id.
    #[n(0)]
    pub id: String,
}

impl Evaluate for GetApiKey {
    type Answer = Option<SharedRow<ApiKey>>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        rows.api_key_at(&Key::api_key(&self.id))
    }
}

impl Ask for GetApiKey {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

impl AskStale for GetApiKey {}

/// The API keys of a tenant, by id.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ListApiKeys {
    /// The tenant whose keys are listed.
    #[n(0)]
    pub tenant: TenantId,
}

impl Evaluate for ListApiKeys {
    type Answer = Vec<SharedRow<ApiKey>>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let mut keys = Vec::new();
        rows.scan(&Key::prefix_of_catalogue(NOBODY, Kind::ApiKey), None, &mut |_, row| {
            if matches!(&**row, Row::ApiKey(key) if key.tenant == self.tenant) {
                keys.extend(SharedRow::of(Arc::clone(row)));
            }
            ControlFlow::Continue(())
        })?;
        Ok(keys)
    }
}

impl Ask for ListApiKeys {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}
