//! What a server makes sure of when it starts, before it answers calls.

use switchward_gateway::sealing;
use switchward_machine::{TenantId, Time};
use switchward_shard::{Clock as _, Cluster, Failure, ManualClock};
use switchward_state::catalogue::{CatalogueCommand, EnsureTenancy};
use switchward_state::{Body, Command};

/// What [`or_at_next_start`] checks for the tenants of the configuration, as a log says it.
pub(crate) const CONFIGURED_TENANTS: &str = "that the configured tenants exist";
/// The same for all tenants.
pub(crate) const KNOWN_TENANTS: &str = "that every shard knows the tenants";
/// The same for the sign-in of tenants.
pub(crate) const SIGN_IN: &str = "that tenants can sign in";

/// Makes sure that every shard knows every tenant, and that every tenant has a key for its mail tokens.
///
/// # Errors
/// As [`ensure_tenancy`].
pub(crate) async fn know_tenants(cluster: &Cluster) -> anyhow::Result<()> {
    for tenant in cluster.tenants().await? {
        ensure_tenancy(cluster, tenant).await?;
    }
    Ok(())
}

/// The same for one tenant.
///
/// # Errors
/// The command failed, but for a disk without space or a shard that has failed.
pub(crate) async fn ensure_tenancy(cluster: &Cluster, tenant: TenantId) -> anyhow::Result<()> {
    let command = Command::in_own_scope(
        tenant,
        Body::Catalogue(CatalogueCommand::EnsureTenancy(EnsureTenancy {
            any_approver_address: false,
            link_auth: None,
            key: sealing::mail_key(&cluster.ring(), tenant),
        })),
    );
    match cluster.execute(command).await {
        Ok(_) => Ok(()),
        // A later start makes up for it.
        Err(failure @ Failure::DiskLow { .. }) => {
            tracing::warn!(%failure, "skipped the check that every shard knows the tenant; the next start repeats it");
            Ok(())
        }
        // A shard that has failed knows nothing more, and the others go on.
        Err(failure) if cluster.failed() > 0 => {
            tracing::warn!(%failure, "skipped a shard that has failed: it does not know the tenant");
            Ok(())
        }
        Err(failure) => Err(failure.into()),
    }
}

/// Sets a manual clock to the data folder's time, or to the system's time if the folder is new.
///
/// # Errors
/// The clock of a shard cannot be read.
pub(crate) async fn catch_up(cluster: &Cluster, clock: Option<&ManualClock>) -> anyhow::Result<()> {
    let Some(clock) = clock else { return Ok(()) };
    let last = cluster.last_decision().await?;
    let target = if last == Time(0) { switchward_shard::SystemClock.now() } else { last };
    clock.advance(target.since_ms(clock.now()));
    Ok(())
}

/// Passes over a check that needs a leader if there is none: most servers of the cluster are down, and this one opens all
/// the same. The next start repeats the check.
///
/// # Errors
/// It failed for another reason.
pub(crate) fn or_at_next_start(what: &str, checked: anyhow::Result<()>) -> anyhow::Result<()> {
    match checked {
        Err(error) if is_without_leader(&error) => {
            tracing::warn!("did not check {what}, because there is no leader; the next start does");
            Ok(())
        }
        checked => checked,
    }
}

fn is_without_leader(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(Failure::Electing | Failure::OtherMap { .. } | Failure::OutcomeUnknown)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_check_that_has_no_leader_is_left_to_the_next_start() {
        let failed = |failure: Failure| Err(anyhow::Error::from(failure).context("tenants: acme"));
        assert!(or_at_next_start("it", Ok(())).is_ok());
        assert!(or_at_next_start("it", failed(Failure::Electing)).is_ok());
        assert!(or_at_next_start("it", failed(Failure::OtherMap { epoch: 4 })).is_ok());
        assert!(or_at_next_start("it", failed(Failure::OutcomeUnknown)).is_ok());
        assert!(or_at_next_start("it", failed(Failure::Stopped)).is_err());
        assert!(or_at_next_start("it", Err(anyhow::anyhow!("the disk is full"))).is_err());
    }
}
