//! Quotas of a tenant that span the shards.

use switchward_engine::{is_remembered, quota_exceeded};
use switchward_machine::TenantId;
use switchward_state::catalogue::{Quota, Usage};
use switchward_state::session::SessionCommand;
use switchward_state::{Body, Command, Key, Row, View as _};

use super::Cluster;
use crate::failure::Failure;
use crate::shard::Shard;

impl Cluster {
    /// What a tenant holds in all shards, as far as this server has applied it.
    ///
    /// # Errors
    /// As [`Failure`] says.
    pub fn usage(&self, tenant: TenantId) -> Result<Usage, Failure> {
        self.usage_of(tenant, self.shards().iter())
    }

    fn usage_of<'a>(
        &self,
        tenant: TenantId,
        shards: impl Iterator<Item = &'a Shard>,
    ) -> Result<Usage, Failure> {
        let key = Key::usage(tenant);
        shards.into_iter().try_fold(Usage::default(), |usage, shard| {
            let row = shard.read_stale().row(&key).map_err(|error| self.0.unreadable(&error))?;
            let held = if let Some(Row::Usage(held)) = row.as_deref() { *held } else { Usage::default() };
            Ok(usage.and(held))
        })
    }

    /// Refuses a command that exceeds the tenant's quota of bytes, and passes on to the command what the other shards
    /// leave of the quota of sessions.
    ///
    /// The command's own shard counts its sessions exactly. Concurrent decisions of other shards are not known here,
    /// so both quotas may be exceeded by what is under way in them: [`BATCH_COMMANDS_MAX`] commands each.
    ///
    /// [`BATCH_COMMANDS_MAX`]: crate::limits::BATCH_COMMANDS_MAX
    ///
    /// # Errors
    /// QUOTA_EXCEEDED, unless the request was executed before.
    pub(super) fn keep_quotas(&self, command: &mut Command) -> Result<(), Failure> {
        let (tenant, quotas) = (command.tenant, command.settings.quotas);
        if let Some(most) = quotas.bytes.filter(|_| command.body.fills()) {
            let full = self.usage(tenant)?.bytes >= most;
            let home = self.0.home(command);
            if full && !is_remembered(&home.read_stale(), command).unwrap_or(false) {
                return Err(Failure::Rejected(quota_exceeded(Quota::Bytes)));
            }
        }
        if let (Some(most), Body::Session(SessionCommand::Start(_))) = (quotas.sessions, &command.body) {
            let home = self.0.home(command).number();
            let others = self.shards().iter().filter(|shard| shard.number() != home);
            let elsewhere = self.usage_of(tenant, others)?.sessions;
            command.settings.quotas.sessions = Some(most.saturating_sub(elsewhere));
        }
        Ok(())
    }
}
