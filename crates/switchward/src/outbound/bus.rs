//! The bus between the relays and the delivery workers.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use switchward_bus::{Bus, Memory, OpenError, Redis, RedisConfig as Endpoint, Settings};
use switchward_outbound::BusReach;
use switchward_store::DataDir;

/// The Redis that delivery jobs go over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RedisConfig {
    /// Where it is, like `redis://127.0.0.1:6379`; `rediss://` for TLS. No password stands in it.
    pub(crate) url: String,
    /// A file that holds its password; absent: it wants none.
    #[serde(default)]
    pub(crate) password_file: Option<PathBuf>,
    /// What the names of its keys begin with; absent: `switchward`. The id of the cluster follows, or that of the data
    /// folder if the server stands alone: what several clusters have under one prefix stays apart.
    #[serde(default)]
    pub(crate) prefix: Option<String>,
}

impl RedisConfig {
    /// The endpoint, with its password.
    ///
    /// # Errors
    /// The password cannot be read, or there is none.
    pub(crate) fn read(&self) -> anyhow::Result<Endpoint> {
        let mut endpoint = Endpoint::new(self.url.clone());
        if let Some(file) = &self.password_file {
            let password = std::fs::read_to_string(file)
                .with_context(|| format!("redis.password_file: failed to read {}", file.display()))?;
            let password = password.trim();
            anyhow::ensure!(!password.is_empty(), "redis.password_file: {} is empty", file.display());
            endpoint.password = Some(password.to_owned());
        }
        if let Some(prefix) = &self.prefix {
            endpoint.prefix.clone_from(prefix);
        }
        Ok(endpoint)
    }
}

/// The owner of the streams on a shared bus: the cluster, whose servers share them, or the data folder of a server that
/// stands alone.
pub(crate) fn owner(data: &DataDir) -> String {
    data.identity().cluster.map_or_else(|| data.id().to_owned(), |of| of.cluster.to_string())
}

/// Which servers share the bus of a server: those of a cluster share a Redis.
pub(crate) fn reach(redis: Option<&RedisConfig>, data: &DataDir) -> BusReach {
    let shared = redis.is_some() || data.identity().cluster.is_none();
    if shared { BusReach::Cluster } else { BusReach::Server }
}

/// Opens the bus of this owner over this Redis, or in this process if there is none. A Redis that cannot be reached is no
/// error: deliveries wait for it.
///
/// # Errors
/// Its password cannot be read, it does not take it, or its address or prefix cannot be used.
pub(crate) async fn open(redis: Option<&RedisConfig>, owner: &str) -> anyhow::Result<Arc<dyn Bus>> {
    let Some(redis) = redis else { return Ok(Arc::new(Memory::new(Settings::default()))) };
    match Redis::open(Endpoint { owner: Some(owner.to_owned()), ..redis.read()? }).await {
        Ok(bus) => Ok(Arc::new(bus)),
        Err(error) => {
            let key = match &error {
                OpenError::Address(_) => "redis.url",
                OpenError::Prefix => "redis.prefix",
                OpenError::Password { .. } => "redis.password_file",
            };
            Err(error).context(key)
        }
    }
}

#[cfg(test)]
mod tests {
    use switchward_store::{ClusterIdentity, Id};

    use super::*;

    #[test]
    fn the_servers_of_a_cluster_have_one_owner_and_others_their_own() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let data = folders.each_ref().map(|folder| DataDir::open(folder.path()).unwrap());
        let alone = data.each_ref().map(owner);
        assert_eq!(alone, data.each_ref().map(|data| data.id().to_owned()));
        assert_ne!(alone[0], alone[1]);
        for (server, data) in (1..).zip(&data) {
            data.claim(ClusterIdentity { cluster: Id([0xab; 16]), server }).unwrap();
            assert_eq!(owner(data), "ab".repeat(16));
        }
    }

    #[test]
    fn only_servers_of_a_cluster_without_redis_have_a_bus_each() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        let redis =
            RedisConfig { url: "redis://127.0.0.1:6379".to_owned(), password_file: None, prefix: None };
        assert_eq!(reach(None, &data), BusReach::Cluster);
        data.claim(ClusterIdentity { cluster: Id([0xab; 16]), server: 1 }).unwrap();
        assert_eq!(reach(None, &data), BusReach::Server);
        assert_eq!(reach(Some(&redis), &data), BusReach::Cluster);
    }
}
