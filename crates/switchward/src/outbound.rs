//! Configures and starts the delivery role.

mod bus;
mod config;
#[cfg(test)]
mod tests;

use switchward_delivery::channels::MailChannel;
use switchward_gateway::Api;
use switchward_machine::WorkKind;
use switchward_outbound::{BusReach, RelaySettings, Role, WORK, WORK_OF_MODELS, WorkerSettings};
use switchward_shard::Cluster;

pub(crate) use bus::{RedisConfig, open as open_bus, owner, reach};
pub(crate) use config::{DeliveryConfig, port_of};

/// Returns the kinds of work that this server does by itself.
pub(crate) fn kinds(delivery: &DeliveryConfig) -> Vec<WorkKind> {
    if !delivery.enabled {
        return Vec::new();
    }
    let model = delivery.model.is_some();
    WORK.into_iter().chain(WORK_OF_MODELS.into_iter().filter(|_| model)).collect()
}

/// Who does the jobs of this server's sessions.
pub(crate) enum Jobs {
    /// This process, which sends mails by this channel if there is one.
    Here(Option<MailChannel>),
    /// Delivery processes, to which these go.
    Elsewhere(RelaySettings),
}

/// Limits the outboxes as configured. Starts to put jobs on the bus of this reach, over this Redis under this owner's name or
/// within this process, and to do them here unless other processes do. Returns `None` if the role is off.
///
/// # Errors
/// The model's key cannot be read, its address is not allowed, a host is invalid, or TLS cannot be set up; the address
/// or the password of Redis cannot be used.
pub(crate) async fn start(
    cluster: &Cluster,
    api: &Api,
    delivery: &DeliveryConfig,
    redis: Option<&RedisConfig>,
    owner: &str,
    reach: BusReach,
    jobs: Jobs,
) -> anyhow::Result<Option<Role>> {
    if let Some(max) = delivery.outbox_max {
        cluster.set_outbox_max(max);
    }
    if !delivery.enabled {
        return Ok(None);
    }
    let bus = bus::open(redis, owner).await?;
    let role = match jobs {
        Jobs::Here(mail) => Role::start(cluster, bus, reach, worker(delivery, mail)?, delivery.waits_ms()?)?,
        Jobs::Elsewhere(settings) => Role::start_relays(cluster, bus, reach, &settings),
    };
    api.pinging(role.pinger());
    Ok(Some(role))
}

/// How a worker delivers that sends mails by this channel.
///
/// # Errors
/// The model's key cannot be read, its address is not allowed, or a host is invalid.
pub(crate) fn worker(delivery: &DeliveryConfig, mail: Option<MailChannel>) -> anyhow::Result<WorkerSettings> {
    let model = delivery.model.as_ref().map(config::ModelConfig::read).transpose()?;
    Ok(WorkerSettings { rules: delivery.rules()?, model, mail })
}
