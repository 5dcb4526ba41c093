//! The Redis between the server and its delivery workers.

use switchward_bus::{Probe, probe};
use switchward_messages::cli::doctor::redis as texts;
use switchward_messages::cli::doctor::redis::Persistence;

use super::CheckResult;
use crate::outbound::RedisConfig;

/// The finding, and the clock of Redis in milliseconds since 1970 if it was reached.
pub(super) async fn look(config: Option<&RedisConfig>) -> (CheckResult, Option<i64>) {
    let what = "redis";
    let Some(config) = config else {
        return (CheckResult::ok(what, texts::NOT_CONFIGURED), None);
    };
    let endpoint = match config.read() {
        Ok(endpoint) => endpoint,
        Err(error) => {
            return (CheckResult::fail(what, format!("{error:#}"), texts::WRITE_PASSWORD), None);
        }
    };
    match probe(&endpoint).await {
        Ok(probe) => (judged(&config.url, &probe), Some(probe.time_ms)),
        Err(error) => (CheckResult::fail(what, error, texts::DELIVERIES_WAIT), None),
    }
}

fn judged(url: &str, probe: &Probe) -> CheckResult {
    let what = "redis";
    let said = texts::version(url, &probe.version);
    if !probe.new_enough() {
        return CheckResult::fail(what, said, texts::NEWER_NEEDED);
    }
    if probe.replica {
        return CheckResult::fail(what, texts::replica(&said), texts::NAME_PRIMARY);
    }
    let persistence = if probe.append_only { Persistence::Persistent } else { Persistence::Memory };
    let said = texts::persistence(&said, persistence);
    if probe.eviction != "noeviction" && !probe.eviction.is_empty() {
        return CheckResult::warn(what, texts::evicts(&said, &probe.eviction), texts::SET_NOEVICTION);
    }
    CheckResult::ok(what, said)
}

#[cfg(test)]
mod tests {
    use super::super::CheckStatus;
    use super::*;

    #[test]
    fn a_redis_that_may_lose_or_refuse_data_is_reported() {
        let good = Probe {
            version: "7.0.15".into(),
            eviction: "noeviction".into(),
            memory_max: 0,
            append_only: false,
            replica: false,
            time_ms: 0,
            run_id: "3f".into(),
        };
        let judged = |probe: Probe| judged("redis://a", &probe).status;
        assert_eq!(judged(good.clone()), CheckStatus::Ok);
        assert_eq!(judged(Probe { version: "6.2.1".into(), ..good.clone() }), CheckStatus::Fail);
        assert_eq!(judged(Probe { version: "odd".into(), ..good.clone() }), CheckStatus::Fail);
        assert_eq!(judged(Probe { replica: true, ..good.clone() }), CheckStatus::Fail);
        assert_eq!(judged(Probe { eviction: "allkeys-lru".into(), ..good }), CheckStatus::Warn);
    }
}
