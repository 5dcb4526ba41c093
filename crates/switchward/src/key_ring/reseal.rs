//! Reseals secrets under the current key.

use anyhow::Context as _;
use switchward_machine::TenantId;
use switchward_shard::{Cluster, check_keys};
use switchward_state::catalogue::{CatalogueCommand, Reseal};
use switchward_state::limits::RESEALED_MAX;
use switchward_state::seal::{KeyRing, RingKey, RingKeyId, Sealed, SecretOf};
use switchward_state::{Body, Command};
use tokio::signal::unix::Signal;

use super::KeyRingLocation;

/// How often secrets of one tenant are looked through for those under an older key: between two looks others may change.
const ROUNDS_MAX: usize = 1_000;

/// Seals all secrets under the current key that are sealed under an older one, and returns how many these were. One step
/// is one command for one tenant.
///
/// # Errors
/// A secret cannot be opened, or a shard does not take the command; what was done stays done.
pub(crate) async fn reseal(cluster: &Cluster) -> anyhow::Result<usize> {
    let mut done = 0;
    for tenant in cluster.tenants().await? {
        for _ in 0..ROUNDS_MAX {
            let step = step(cluster, tenant).await?;
            if step.secrets.is_empty() {
                break;
            }
            done += step.secrets.len();
            let command = Command::in_own_scope(tenant, Body::Catalogue(CatalogueCommand::Reseal(step)));
            cluster.execute(command).await?;
        }
    }
    Ok(done)
}

async fn step(cluster: &Cluster, tenant: TenantId) -> anyhow::Result<Reseal> {
    let mut step = Reseal { secrets: Vec::new(), sources: Vec::new() };
    let (tenancy, sources) = cluster.sealed_of(tenant).await?;
    let ring = cluster.ring();
    if let Some(tenancy) = &tenancy {
        // Its last rows go, and it takes no command any more.
        if tenancy.deletion.is_some() {
            return Ok(step);
        }
        for (secret, sealed) in tenancy.sealed() {
            renew(&ring, tenant, secret, sealed, &mut step)?;
        }
    }
    for source in &sources {
        let before = step.secrets.len();
        for (secret, sealed) in source.sealed() {
            renew(&ring, tenant, secret, sealed, &mut step)?;
        }
        if step.secrets.len() > before {
            step.sources.push(source.name.clone());
        }
    }
    Ok(step)
}

/// Adds a secret to a step if it is sealed under an older key and the step is not full.
fn renew(
    ring: &KeyRing,
    tenant: TenantId,
    secret_of: SecretOf<'_>,
    sealed: &Sealed,
    step: &mut Reseal,
) -> anyhow::Result<()> {
    let current = ring.current().context("the server has no key ring")?;
    if sealed.key == current.id() || step.secrets.len() >= RESEALED_MAX {
        return Ok(());
    }
    let secret = ring.open(tenant, secret_of, sealed)?;
    let fresh =
        ring.seal(rand::random(), tenant, secret_of, &secret).context("the server has no key ring")?;
    step.secrets.push((sealed.clone(), fresh));
    Ok(())
}

/// Seals what is under older keys now, and after every SIGHUP, for which the ring is read again. A ring that lacks a key
/// which the rows need is not taken.
pub(crate) async fn follow(cluster: Cluster, location: KeyRingLocation, mut hangups: Option<Signal>) {
    loop {
        match reseal(&cluster).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "encrypted secrets again under the current key"),
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(
                    error,
                    "failed to encrypt secrets under the current key; the next start or SIGHUP tries again"
                );
            }
        }
        let Some(hangups) = &mut hangups else { return };
        if hangups.recv().await.is_none() {
            return;
        }
        match renewed(&cluster, &location).await {
            Ok(()) => tracing::info!("reloaded the key ring"),
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(error, "failed to reload the key ring; the previous one stays in use");
            }
        }
    }
}

async fn renewed(cluster: &Cluster, location: &KeyRingLocation) -> anyhow::Result<()> {
    let keys = location.read()?;
    let ids: Vec<RingKeyId> = keys.iter().map(RingKey::id).collect();
    check_keys(&cluster.sealed_under().await?, &ids)?;
    cluster.replace_ring(&KeyRing::of(keys));
    Ok(())
}
