//! What this server says of itself to those who look for mistakes in the set-up of the cluster.

use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use switchward_bus::probe;
use switchward_gateway::proxy::{Facts, LocalMaps, Maps as _, RedisFacts, ServerFacts};
use switchward_shard::{Clock, Cluster, MemberHandler};
use switchward_state::Levels;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::connections::keys_digest;
use crate::outbound::RedisConfig;

/// How long Redis may take to answer.
const REDIS_WAIT: Duration = Duration::from_secs(2);

/// For how long an answer of Redis counts: however often a server is asked, it connects to Redis once in this time.
const REDIS_KEPT: Duration = Duration::from_secs(1);

/// The facts of this server.
pub(super) struct OwnFacts {
    cluster: Cluster,
    clock: Arc<dyn Clock>,
    handler: Arc<MemberHandler>,
    redis: OwnRedis,
}

/// The Redis of this server, and what it has answered last.
struct OwnRedis {
    config: Option<RedisConfig>,
    known: Mutex<Option<(Instant, RedisFacts)>>,
}

impl OwnFacts {
    /// The facts of a server with this clock and Redis; `handler` knows its certificate.
    pub(super) fn new(
        cluster: Cluster,
        clock: Arc<dyn Clock>,
        handler: Arc<MemberHandler>,
        redis: Option<RedisConfig>,
    ) -> Self {
        Self { cluster, clock, handler, redis: OwnRedis { config: redis, known: Mutex::default() } }
    }
}

impl OwnRedis {
    async fn facts(&self) -> RedisFacts {
        let mut known = self.known.lock().await;
        if let Some((at, facts)) = &*known
            && at.elapsed() < REDIS_KEPT
        {
            return facts.clone();
        }
        let facts = redis(self.config.as_ref()).await;
        *known = Some((Instant::now(), facts.clone()));
        facts
    }
}

#[async_trait]
impl Facts for OwnFacts {
    async fn facts(&self) -> ServerFacts {
        let Levels { lowest, highest } = Levels::OF_PROGRAM;
        let disk = self.cluster.disk();
        let map = self.cluster.map().ok().flatten();
        let servers = LocalMaps(self.cluster.clone()).map().map(|map| map.servers.clone());
        let redis = self.redis.facts().await;
        ServerFacts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            lowest_level: lowest.0,
            highest_level: highest.0,
            level: map.map_or(0, |map| map.level.0),
            certificate_expire_ms: self.handler.certificate_expires().map(|at| at.0),
            disk_free_bytes: Some(disk.free_bytes()).filter(|free| *free > 0),
            disk_low: !disk.admits_growth(),
            keys: keys_text(&keys_digest(&self.cluster.ring())),
            redis,
            servers: servers.unwrap_or_default(),
            // Last: who asks compares it with the moment at which the answer comes.
            clock_ms: self.clock.now().0.try_into().unwrap_or(i64::MAX),
        }
    }
}

/// A digest of keys as it is sent.
pub(crate) fn keys_text(digest: &[u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The Redis of this configuration.
pub(crate) async fn redis(config: Option<&RedisConfig>) -> RedisFacts {
    let Some(config) = config else { return RedisFacts::None };
    let endpoint = match config.read() {
        Ok(endpoint) => endpoint,
        Err(error) => return RedisFacts::Failed { why: format!("{error:#}") },
    };
    match timeout(REDIS_WAIT, probe(&endpoint)).await {
        Ok(Ok(probe)) => RedisFacts::Reached { run_id: probe.run_id, prefix: endpoint.prefix },
        Ok(Err(why)) => RedisFacts::Failed { why },
        Err(_) => RedisFacts::Failed { why: "no answer in time".to_owned() },
    }
}
