//! Quotas of a tenant that span the shards.

use futures::future::try_join_all;
use switchward_engine::{is_remembered, quota_exceeded};
use switchward_machine::TenantId;
use switchward_state::catalogue::{Quota, Usage};
use switchward_state::session::SessionCommand;
use switchward_state::{Body, Command, Key, Row, View as _};

use super::Cluster;
use crate::clock::instant;
use crate::failure::Failure;
use crate::limits::{QUOTA_BYTES_NEAR, QUOTA_NEAR_DIVISOR, QUOTA_SESSIONS_NEAR};
use crate::shard::Shard;
use crate::view::StateView;

impl Cluster {
    /// What a tenant holds in all shards, as far as this server has applied it.
    ///
    /// # Errors
    /// As [`Failure`] says.
    pub fn usage(&self, tenant: TenantId) -> Result<Usage, Failure> {
        Ok(joined(&self.known(tenant)?))
    }

    /// Refuses a command that exceeds the tenant's quota of bytes, and passes on to the command what the other shards
    /// leave of the quota of sessions. Near a quota, what all servers have acknowledged before the call counts; further from it,
    /// what this server has applied, of bytes at most [`QUOTA_LOOK`] before the call.
    ///
    /// The command's own shard counts its sessions exactly. Concurrent decisions of other shards are not known here,
    /// so both quotas may be exceeded by what is under way in them: [`BATCH_COMMANDS_MAX`] commands each.
    ///
    /// [`BATCH_COMMANDS_MAX`]: crate::limits::BATCH_COMMANDS_MAX
    /// [`QUOTA_LOOK`]: crate::limits::QUOTA_LOOK
    ///
    /// # Errors
    /// QUOTA_EXCEEDED, unless the request was executed before; what keeps this server from reading another shard, if a start
    /// comes close to the quota of sessions.
    pub(super) async fn keep_quotas(&self, command: &mut Command) -> Result<(), Failure> {
        let (tenant, quotas) = (command.tenant, command.settings.quotas);
        if let Some(most) = quotas.bytes.filter(|_| command.body.fills()) {
            let held = self.held_bytes(tenant, most).await?;
            let home = self.0.home(command);
            if held >= most && !is_remembered(&home.read_stale(), command).unwrap_or(false) {
                return Err(Failure::Rejected(quota_exceeded(Quota::Bytes)));
            }
        }
        if let (Some(most), Body::Session(SessionCommand::Start(_))) = (quotas.sessions, &command.body) {
            let near = |usage: Usage| is_near(usage.sessions, most, QUOTA_SESSIONS_NEAR);
            let held = self.held(tenant, near).await?;
            let home = self.0.home(command).number();
            let others = self.shards().iter().zip(held).filter(|(shard, _)| shard.number() != home);
            let elsewhere = others.map(|(_, held)| held.sessions).sum();
            command.settings.quotas.sessions = Some(most.saturating_sub(elsewhere));
        }
        Ok(())
    }

    /// The bytes that a tenant holds in all shards, to compare with a quota of `most`.
    ///
    /// # Errors
    /// As [`Failure`] says.
    async fn held_bytes(&self, tenant: TenantId, most: u64) -> Result<u64, Failure> {
        let near = |bytes: u64| is_near(bytes, most, QUOTA_BYTES_NEAR);
        let now = instant();
        if let Some(bytes) = self.0.held_bytes.lately(tenant, now).filter(|bytes| !near(*bytes)) {
            return Ok(bytes);
        }
        let held = match self.held(tenant, |usage| near(usage.bytes)).await {
            Ok(held) => joined(&held),
            // A session goes on although another shard has no leader.
            Err(_) => self.usage(tenant)?,
        };
        self.0.held_bytes.note(tenant, held.bytes, now);
        Ok(held.bytes)
    }

    /// What a tenant holds in each shard: as far as this server has applied it, or if that is near a quota, everything that
    /// was acknowledged before the call.
    ///
    /// # Errors
    /// As [`Failure`] says.
    async fn held(&self, tenant: TenantId, near: impl Fn(Usage) -> bool) -> Result<Vec<Usage>, Failure> {
        let held = self.known(tenant)?;
        if !near(joined(&held)) {
            return Ok(held);
        }
        let views = try_join_all(self.shards().iter().map(Shard::read)).await?;
        views.iter().map(|view| self.held_in(tenant, view)).collect()
    }

    /// What a tenant holds in each shard as far as this server has applied it.
    fn known(&self, tenant: TenantId) -> Result<Vec<Usage>, Failure> {
        self.shards().iter().map(|shard| self.held_in(tenant, &shard.read_stale())).collect()
    }

    fn held_in(&self, tenant: TenantId, view: &StateView) -> Result<Usage, Failure> {
        let row = view.row(&Key::usage(tenant)).map_err(|error| self.0.unreadable(&error))?;
        Ok(if let Some(Row::Usage(held)) = row.as_deref() { *held } else { Usage::default() })
    }
}

fn joined(held: &[Usage]) -> Usage {
    held.iter().fold(Usage::default(), |all, held| all.and(*held))
}

/// Returns true if what this server knows of may be so old that a quota is used up: it is within `margin` of it, or within a
/// sixteenth.
fn is_near(known: u64, most: u64, margin: u64) -> bool {
    known >= most.saturating_sub(margin.max(most / QUOTA_NEAR_DIVISOR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_near_by_a_number_or_by_a_part_of_it() {
        for (known, most, near) in [
            (0, QUOTA_SESSIONS_NEAR, true),
            (0, QUOTA_SESSIONS_NEAR + 1, false),
            (1, QUOTA_SESSIONS_NEAR + 1, true),
            (937_499, 1_000_000, false),
            (937_500, 1_000_000, true),
            (2_000_000, 1_000_000, true),
        ] {
            assert_eq!(is_near(known, most, QUOTA_SESSIONS_NEAR), near, "{known} of {most}");
        }
    }
}
