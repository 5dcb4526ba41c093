//! The properties of a Redis server, for its operator.

use std::time::Duration;

use ::redis::cmd;

use super::config::{OpenError, RedisConfig};
use crate::limits::{CONNECT_MS, RESPONSE_MS};

/// The properties of a Redis server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Its version, like `7.0.15`.
    pub version: String,
    /// Its eviction policy, like `noeviction`.
    pub eviction: String,
    /// The memory that it may use, bytes; 0 for no limit.
    pub memory_max: u64,
    /// Whether it keeps an append-only file.
    pub append_only: bool,
    /// Whether it is a replica, which takes no writes.
    pub replica: bool,
    /// Its clock, milliseconds since 1970.
    pub time_ms: i64,
    /// The id that its process has drawn at its start: two addresses with one id lead to one Redis.
    pub run_id: String,
}

impl Probe {
    /// Returns true if it is new enough for the bus.
    #[must_use]
    pub fn new_enough(&self) -> bool {
        let major: Option<u32> = self.version.split('.').next().and_then(|major| major.parse().ok());
        major.is_some_and(|major| major >= 7)
    }
}

/// Reads the properties of a Redis server, and changes nothing.
///
/// # Errors
/// A message: its address cannot be used, it cannot be reached, or it does not answer.
pub async fn probe(config: &RedisConfig) -> Result<Probe, String> {
    let (client, address) = config.client().map_err(|error: OpenError| error.to_string())?;
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let ask = async {
        let mut connection = client.get_multiplexed_async_connection().await?;
        let info: String = cmd("INFO").query_async(&mut connection).await?;
        let (seconds, micros): (i64, i64) = cmd("TIME").query_async(&mut connection).await?;
        Ok::<_, ::redis::RedisError>((info, seconds * 1000 + micros / 1000))
    };
    let most = Duration::from_millis(CONNECT_MS + RESPONSE_MS);
    let asked =
        tokio::time::timeout(most, ask).await.map_err(|_| format!("{address} has not answered in time"))?;
    let (info, time_ms) = asked.map_err(|error| format!("{address}: {error}"))?;
    let value = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim).unwrap_or_default().to_owned()
    };
    Ok(Probe {
        version: value("redis_version"),
        eviction: value("maxmemory_policy"),
        memory_max: value("maxmemory").parse().unwrap_or_default(),
        append_only: value("aof_enabled") == "1",
        replica: value("role") == "slave",
        time_ms,
        run_id: value("run_id"),
    })
}
