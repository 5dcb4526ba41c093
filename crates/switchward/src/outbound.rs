//! Configures and starts the delivery role.

mod bus;
mod config;
#[cfg(test)]
mod tests;

use switchward_delivery::channels::MailChannel;
use switchward_gateway::Api;
use switchward_machine::WorkKind;
use switchward_outbound::{Role, Settings, WORK, WORK_OF_MODELS};
use switchward_shard::Cluster;

pub(crate) use bus::{RedisConfig, owner};
pub(crate) use config::{DeliveryConfig, port_of};

/// Returns the kinds of work that this server does by itself.
pub(crate) fn kinds(delivery: &DeliveryConfig) -> Vec<WorkKind> {
    if !delivery.enabled {
        return Vec::new();
    }
    let model = delivery.model.is_some();
    WORK.into_iter().chain(WORK_OF_MODELS.into_iter().filter(|_| model)).collect()
}

/// Starts delivering, over this Redis under this owner's name or within this process. Returns `None` if the role is off.
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
    mail: Option<MailChannel>,
) -> anyhow::Result<Option<Role>> {
    if !delivery.enabled {
        return Ok(None);
    }
    let settings = Settings {
        rules: delivery.rules()?,
        model: delivery.model.as_ref().map(config::ModelConfig::read).transpose()?,
        mail,
        retry_waits_ms: delivery.waits_ms()?,
    };
    let role = Role::start(cluster, bus::open(redis, owner).await?, settings)?;
    api.pinging(role.pinger());
    Ok(Some(role))
}
