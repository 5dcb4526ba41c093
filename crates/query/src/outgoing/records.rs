//! Questions about single records: settings of tenants, sessions, work, counts of mails.

use switchward_engine::{WorkView, work_view};
use switchward_machine::{OpenId, SessionId, TenantId};
use switchward_state::catalogue::Tenancy;
use switchward_state::delivery::MailCount;
use switchward_state::session::Session;
use switchward_state::{Key, ReadRows as _, SharedRow, ViewError};

use super::ShardView;

impl ShardView {
    /// The settings of a tenant as the shard knows them; `None` if it knows none.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn tenancy(&self, tenant: TenantId) -> Result<Option<SharedRow<Tenancy>>, ViewError> {
        self.0.tenancy_at(&Key::tenancy(tenant))
    }

    /// The settings of a tenant as the catalogue records them; `None` if none were set yet, and in other shards.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn tenancy_record(&self, tenant: TenantId) -> Result<Option<SharedRow<Tenancy>>, ViewError> {
        self.0.tenancy_at(&Key::tenancy_record(tenant))
    }

    /// Returns true if a tenant has an endpoint of this id, as the catalogue records it; false in other shards.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn has_endpoint(&self, tenant: TenantId, id: &str) -> Result<bool, ViewError> {
        let record = self.tenancy_record(tenant)?;
        Ok(record.is_some_and(|record| record.endpoints.iter().any(|endpoint| endpoint.id == id)))
    }

    /// A session; `None` if it does not exist.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn session(&self, tenant: TenantId, id: SessionId) -> Result<Option<SharedRow<Session>>, ViewError> {
        self.0.session(tenant, id)
    }

    /// A work item, read between two entries; `None` if it is not open.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn work(
        &self,
        tenant: TenantId,
        session: SessionId,
        item: OpenId,
    ) -> Result<Option<WorkView>, ViewError> {
        self.0.consistent(|rows| work_view(rows, tenant, session, item))
    }

    /// How many mails of this shard's sessions have gone out that are a part of this count.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn mailed(&self, count: &MailCount) -> Result<u32, ViewError> {
        Ok(self.0.mailed_at(&count.key)?.map_or(0, |mailed| *mailed))
    }
}
