//! `/metrics` for Prometheus.

mod replicas;

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus::{Encoder, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use switchward_gateway::Api;
use switchward_gateway::limits::CATALOGUE_AGE_MAX;
use switchward_gateway::mail::MailIngress;
use switchward_mail::imap::Health;
use switchward_shard::{Cluster, Group, ShardMetrics, TimerCounts};
use tikv_jemalloc_ctl::stats;

/// The page of a cluster's counters, and of those of its mail. They are read when the page is.
pub(crate) fn page(
    cluster: Cluster,
    api: Api,
    ingress: Option<MailIngress>,
    imap: Option<Arc<Health>>,
) -> Router {
    let pages = move || async move { render(&cluster, &api, ingress.as_ref(), imap.as_deref()) };
    Router::new().route("/metrics", get(pages))
}

type ShardCounter = (&'static str, &'static str, fn(&ShardMetrics) -> &AtomicU64);

const SHARD_COUNTERS: [ShardCounter; 10] = [
    ("switchward_shard_entries_total", "log entries written by the shard", |of| &of.entries),
    ("switchward_shard_commands_total", "commands that the engine accepted", |of| &of.commands),
    ("switchward_shard_rejections_total", "commands that the engine rejected", |of| &of.rejections),
    ("switchward_shard_overloads_total", "commands refused because the queue was full", |of| &of.overloads),
    ("switchward_shard_disk_refusals_total", "commands refused because the disk was low", |of| {
        &of.disk_refusals
    }),
    ("switchward_shard_events_total", "events applied", |of| &of.events),
    ("switchward_shard_bytes_total", "bytes of applied decisions", |of| &of.bytes),
    ("switchward_sessions_expired_total", "sessions that expired, or whose history expired", |of| {
        &of.expired
    }),
    ("switchward_sessions_removed_total", "sessions that were removed completely", |of| &of.removed),
    ("switchward_rows_removed_total", "rows deleted by removals", |of| &of.removed_rows),
];

type ShardGauge = (&'static str, &'static str, fn(&Group) -> i64);

const SHARD_GAUGES: [ShardGauge; 6] = [
    ("switchward_shard_failed", "1 if the shard's replica on this server has failed", |of| {
        i64::from(of.failed().is_some())
    }),
    ("switchward_shard_dirty_bytes", "bytes of changed rows not yet in the state store", |of| {
        signed(of.dirty_bytes())
    }),
    ("switchward_shard_clean_bytes", "bytes of rows in memory that are also in the state store", |of| {
        signed(of.clean_bytes())
    }),
    ("switchward_shard_log_bytes", "bytes of the shard's log not yet purged", |of| signed(of.log_bytes())),
    ("switchward_sessions_removing", "sessions whose removal is in progress", |of| {
        signed(of.metrics().removing.load(Ordering::Relaxed))
    }),
    ("switchward_tenants_deleting", "tenants being deleted that still have rows in the shard", |of| {
        signed(of.metrics().tenants_deleting.load(Ordering::Relaxed))
    }),
];

type TimerGauge = (&'static str, &'static str, fn(&TimerCounts) -> i64);

const TIMER_GAUGES: [TimerGauge; 3] = [
    ("switchward_timers_waiting", "timers in memory that are not yet due", |of| signed(of.waiting)),
    ("switchward_timers_in_flight", "timers handed out and not yet done", |of| signed(of.in_flight)),
    ("switchward_timers_resting", "timers that failed to fire and wait for a retry", |of| signed(of.resting)),
];

fn signed(bytes: impl TryInto<i64>) -> i64 {
    bytes.try_into().unwrap_or(i64::MAX)
}

fn render(
    cluster: &Cluster,
    api: &Api,
    ingress: Option<&MailIngress>,
    imap: Option<&Health>,
) -> impl IntoResponse + use<> {
    match text(cluster, api, ingress, imap) {
        Ok(text) => (StatusCode::OK, [("content-type", "text/plain; version=0.0.4")], text),
        Err(error) => {
            tracing::error!(%error, "failed to write metrics");
            (StatusCode::INTERNAL_SERVER_ERROR, [("content-type", "text/plain")], Vec::new())
        }
    }
}

/// Copies the counters of other parts into families that are made for this one page.
fn text(
    cluster: &Cluster,
    api: &Api,
    ingress: Option<&MailIngress>,
    imap: Option<&Health>,
) -> prometheus::Result<Vec<u8>> {
    let registry = Registry::new();
    for (name, help, of) in SHARD_COUNTERS {
        let family = IntCounterVec::new(Opts::new(name, help), &["shard"])?;
        for (number, shard) in cluster.all().enumerate() {
            let counted = of(shard.group().metrics()).load(Ordering::Relaxed);
            family.with_label_values(&[number.to_string()]).inc_by(counted);
        }
        registry.register(Box::new(family))?;
    }
    for (name, help, of) in SHARD_GAUGES {
        let family = IntGaugeVec::new(Opts::new(name, help), &["shard"])?;
        for (number, shard) in cluster.all().enumerate() {
            family.with_label_values(&[number.to_string()]).set(of(shard.group()));
        }
        registry.register(Box::new(family))?;
    }
    for (name, help, of) in TIMER_GAUGES {
        let family = IntGaugeVec::new(Opts::new(name, help), &["shard"])?;
        for (number, shard) in cluster.all().enumerate() {
            family.with_label_values(&[number.to_string()]).set(of(&shard.timer_counts()));
        }
        registry.register(Box::new(family))?;
    }
    let fired = Opts::new("switchward_timers_fired_total", "timers fired");
    let family = IntCounterVec::new(fired, &["shard"])?;
    for (number, shard) in cluster.all().enumerate() {
        family.with_label_values(&[number.to_string()]).inc_by(shard.timer_counts().fired);
    }
    registry.register(Box::new(family))?;
    leading(&registry, cluster)?;
    let log = cluster.log_stats();
    for (name, help, counted) in [
        ("switchward_log_syncs_total", "fdatasync calls of the shared log", &log.syncs),
        ("switchward_log_records_total", "records of the shared log", &log.records),
        ("switchward_log_bytes_total", "bytes written to the shared log", &log.bytes),
    ] {
        let counter = IntCounter::new(name, help)?;
        counter.inc_by(counted.load(Ordering::Relaxed));
        registry.register(Box::new(counter))?;
    }
    disk(&registry, cluster)?;
    contact(&registry, cluster)?;
    replicas::add(&registry, cluster)?;
    quarantine(&registry, api)?;
    quotas(&registry, api)?;
    if let Some(ingress) = ingress {
        mail(&registry, ingress)?;
    }
    if let Some(health) = imap {
        reading(&registry, health)?;
    }
    memory(&registry)?;
    let mut out = Vec::new();
    TextEncoder::new().encode(&registry.gather(), &mut out)?;
    Ok(out)
}

/// How many shards this server leads: for those it relays effects and work, and fires timers. With the catalogue it also
/// reads the mailbox.
fn leading(registry: &Registry, cluster: &Cluster) -> prometheus::Result<()> {
    let led = cluster.shards().iter().filter(|shard| shard.leads()).count();
    for (name, help, value) in [
        ("switchward_shards_led", "shards whose effects, work and timers this server sends out", signed(led)),
        (
            "switchward_catalogue_led",
            "1 if this server leads the catalogue and so reads the mailbox, 0 otherwise",
            i64::from(cluster.catalogue().leads()),
        ),
    ] {
        let gauge = IntGauge::new(name, help)?;
        gauge.set(value);
        registry.register(Box::new(gauge))?;
    }
    Ok(())
}

/// How much space the disk has.
fn disk(registry: &Registry, cluster: &Cluster) -> prometheus::Result<()> {
    let disk = cluster.disk();
    let level = "0 enough, 1 low: writes that add data are refused, 2 full: the reserve is used, \
                 3 every write is refused";
    for (name, help, value) in [
        (
            "switchward_disk_free_bytes",
            "free bytes on the disk of the data folder",
            signed(disk.free_bytes()),
        ),
        ("switchward_disk_level", level, disk.level() as i64),
    ] {
        let gauge = IntGauge::new(name, help)?;
        gauge.set(value);
        registry.register(Box::new(gauge))?;
    }
    Ok(())
}

/// Whether the server reaches the catalogue's leader, and how far its clock is off.
fn contact(registry: &Registry, cluster: &Cluster) -> prometheus::Result<()> {
    let reached = cluster.catalogue().confirmed_within(CATALOGUE_AGE_MAX);
    let off = cluster.clock_agreement().off_by_ms().unwrap_or(0);
    for (name, help, value) in [
        (
            "switchward_catalogue_reached",
            "1 if the leader of the catalogue can be reached",
            i64::from(reached),
        ),
        (
            "switchward_clock_ahead_ms",
            "milliseconds by which the clock is ahead of the servers' median, negative if behind; 0 within 2 s",
            off,
        ),
    ] {
        let gauge = IntGauge::new(name, help)?;
        gauge.set(value);
        registry.register(Box::new(gauge))?;
    }
    Ok(())
}

/// Mail that the sweep has deleted from the quarantine.
fn quarantine(registry: &Registry, api: &Api) -> prometheus::Result<()> {
    let what = "mails deleted from the quarantine, with their session or tenant or because they expired";
    let counter = IntCounter::new("switchward_quarantine_deleted_total", what)?;
    counter.inc_by(api.quarantine_deleted());
    registry.register(Box::new(counter))
}

/// What quotas of tenants have refused.
fn quotas(registry: &Registry, api: &Api) -> prometheus::Result<()> {
    let what = Opts::new("switchward_quota_refusals_total", "calls refused by a quota of their tenant");
    let family = IntCounterVec::new(what, &["quota"])?;
    for (quota, count) in api.quota_refusals() {
        family.with_label_values(&[quota.word()]).inc_by(count);
    }
    registry.register(Box::new(family))
}

/// What became of mail that came in.
fn mail(registry: &Registry, ingress: &MailIngress) -> prometheus::Result<()> {
    let what = Opts::new("switchward_mail_in_total", "inbound mails");
    let family = IntCounterVec::new(what, &["outcome", "why"])?;
    for ((outcome, why), count) in ingress.counts() {
        family.with_label_values(&[outcome, why]).inc_by(count);
    }
    registry.register(Box::new(family))
}

/// How the reading of a mailbox goes.
fn reading(registry: &Registry, health: &Health) -> prometheus::Result<()> {
    let gauge = IntGauge::new(
        "switchward_mail_imap_connected",
        "1 if the mailbox is being read over IMAP, 0 otherwise",
    )?;
    gauge.set(i64::from(health.connected()));
    registry.register(Box::new(gauge))?;
    let failures = "IMAP connections that failed";
    let counter = IntCounter::new("switchward_mail_imap_failures_total", failures)?;
    counter.inc_by(health.failures());
    registry.register(Box::new(counter))
}

/// What the allocator has handed out, and what it holds of the system's memory for that.
fn memory(registry: &Registry) -> prometheus::Result<()> {
    if tikv_jemalloc_ctl::epoch::advance().is_err() {
        return Ok(());
    }
    for (name, help, bytes) in [
        ("switchward_memory_allocated_bytes", "bytes of memory in use", stats::allocated::read()),
        (
            "switchward_memory_active_bytes",
            "bytes of memory pages that are at least partly in use",
            stats::active::read(),
        ),
        (
            "switchward_memory_resident_bytes",
            "bytes of memory that the allocator holds",
            stats::resident::read(),
        ),
    ] {
        let gauge = IntGauge::new(name, help)?;
        gauge.set(bytes.map_or(0, signed));
        registry.register(Box::new(gauge))?;
    }
    Ok(())
}
