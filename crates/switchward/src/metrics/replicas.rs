//! The replicas of this server, and what it knows of others': leaders, lags, terms, certificate, clock and feature level.

use prometheus::{IntGauge, IntGaugeVec, Opts, Registry};
use switchward_shard::{Cluster, Follower, ReplicaReport, ServerReport};
use switchward_state::Levels;

use super::signed;

type ReplicaGauge = (&'static str, &'static str, fn(&ReplicaReport) -> i64);

const OF_REPLICAS: [ReplicaGauge; 5] = [
    ("switchward_replica_leads", "1 if this server leads the shard, 0 otherwise", |of| i64::from(of.leads)),
    ("switchward_replica_term", "term of the shard's leader: each election raises it", |of| signed(of.term)),
    ("switchward_replica_last_entry", "last entry of the log of the replica", |of| signed(of.last)),
    ("switchward_replica_applied_entry", "last entry that the replica has applied", |of| signed(of.applied)),
    ("switchward_replica_log_entries", "entries that the log of the replica keeps", |of| {
        signed(of.log_entries)
    }),
];

type FollowerGauge = (&'static str, &'static str, fn(&ReplicaReport, &Follower) -> Option<i64>);

/// Of the other replicas of the shards that this server leads.
const OF_FOLLOWERS: [FollowerGauge; 2] = [
    (
        "switchward_replica_lag_entries",
        "entries that the replica of the server lacks, by its leader",
        |of, one| one.matched.map(|matched| signed(of.last.saturating_sub(matched))),
    ),
    (
        "switchward_replica_silent_ms",
        "milliseconds since the leader's last contact with the replica of the server",
        |_, one| one.silent_ms.map(signed),
    ),
];

/// Adds the figures of this moment.
///
/// # Errors
/// A name is there already.
pub(super) fn add(registry: &Registry, cluster: &Cluster) -> prometheus::Result<()> {
    let report = cluster.report();
    for (name, help, of) in OF_REPLICAS {
        let family = IntGaugeVec::new(Opts::new(name, help), &["shard"])?;
        for replica in &report.replicas {
            family.with_label_values(&[replica.group.to_string()]).set(of(replica));
        }
        registry.register(Box::new(family))?;
    }
    for (name, help, of) in OF_FOLLOWERS {
        let family = IntGaugeVec::new(Opts::new(name, help), &["shard", "server"])?;
        for replica in &report.replicas {
            for follower in &replica.followers {
                let labels = [replica.group.to_string(), follower.server.to_string()];
                if let Some(value) = of(replica, follower) {
                    family.with_label_values(&labels).set(value);
                }
            }
        }
        registry.register(Box::new(family))?;
    }
    of_server(registry, cluster, &report)
}

fn of_server(registry: &Registry, cluster: &Cluster, report: &ServerReport) -> prometheus::Result<()> {
    let level = cluster.map().ok().flatten().map_or(Levels::OF_PROGRAM.highest, |map| map.level);
    let expires = report.certificate_expires.map(|time| signed(time.0 / 1_000));
    for (name, help, value) in [
        ("switchward_feature_level", "feature level in force", Some(i64::from(level.0))),
        (
            "switchward_clock_offset_ms",
            "milliseconds by which the clock is ahead of the servers' median, negative if behind",
            report.clock_ahead_ms,
        ),
        (
            "switchward_certificate_expire_seconds",
            "until when the certificate for other servers is valid, seconds since 1970",
            expires,
        ),
    ] {
        let Some(value) = value else { continue };
        let gauge = IntGauge::new(name, help)?;
        gauge.set(value);
        registry.register(Box::new(gauge))?;
    }
    Ok(())
}
