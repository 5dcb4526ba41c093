//! `/metrics` for Prometheus.

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus::{Encoder, IntGaugeVec, Opts, Registry, TextEncoder};
use std::sync::atomic::{AtomicU64, Ordering};
use switchward_shard::{Cluster, ShardMetrics};

/// The page of a cluster's counters. They are read when the page is.
pub(crate) fn page(cluster: Cluster) -> Router {
    Router::new().route("/metrics", get(move || async move { render(&cluster) }))
}

type Counter = (&'static str, &'static str, fn(&ShardMetrics) -> &AtomicU64);

const COUNTERS: [Counter; 6] = [
    ("switchward_shard_entries_total", "log entries that the shard decided", |of| &of.entries),
    ("switchward_shard_commands_total", "commands that came to a decision", |of| &of.commands),
    ("switchward_shard_rejections_total", "commands that the engine refused", |of| &of.rejections),
    ("switchward_shard_overloads_total", "commands that found the queue full", |of| &of.overloads),
    ("switchward_shard_events_total", "events that were applied", |of| &of.events),
    ("switchward_shard_bytes_total", "bytes of the decisions that were applied", |of| &of.bytes),
];

fn render(cluster: &Cluster) -> impl IntoResponse + use<> {
    match text(cluster) {
        Ok(text) => (StatusCode::OK, [("content-type", "text/plain; version=0.0.4")], text),
        Err(error) => {
            tracing::error!(%error, "failed to write metrics");
            (StatusCode::INTERNAL_SERVER_ERROR, [("content-type", "text/plain")], Vec::new())
        }
    }
}

fn text(cluster: &Cluster) -> prometheus::Result<Vec<u8>> {
    let registry = Registry::new();
    for (name, help, of) in COUNTERS {
        let family = IntGaugeVec::new(Opts::new(name, help), &["shard"])?;
        for (number, shard) in cluster.all().enumerate() {
            let value = of(shard.group().metrics()).load(Ordering::Relaxed);
            family.with_label_values(&[number.to_string()]).set(i64::try_from(value).unwrap_or(i64::MAX));
        }
        registry.register(Box::new(family))?;
    }
    let help = "bytes of changed rows that are not yet in the state store";
    let family = IntGaugeVec::new(Opts::new("switchward_shard_dirty_bytes", help), &["shard"])?;
    for (number, shard) in cluster.all().enumerate() {
        let bytes = i64::try_from(shard.group().dirty_bytes()).unwrap_or(i64::MAX);
        family.with_label_values(&[number.to_string()]).set(bytes);
    }
    registry.register(Box::new(family))?;
    let help = "bytes of the shard's log that are not yet purged";
    let family = IntGaugeVec::new(Opts::new("switchward_shard_log_bytes", help), &["shard"])?;
    for (number, shard) in cluster.all().enumerate() {
        let bytes = i64::try_from(shard.group().log_bytes()).unwrap_or(i64::MAX);
        family.with_label_values(&[number.to_string()]).set(bytes);
    }
    registry.register(Box::new(family))?;
    let log = cluster.log_stats();
    let counters = [
        ("switchward_log_syncs_total", "fdatasync calls of the shared log", &log.syncs),
        ("switchward_log_records_total", "records of the shared log", &log.records),
        ("switchward_log_bytes_total", "bytes written to the shared log", &log.bytes),
    ];
    for (name, help, counter) in counters {
        let gauge = prometheus::IntGauge::new(name, help)?;
        gauge.set(i64::try_from(counter.load(Ordering::Relaxed)).unwrap_or(i64::MAX));
        registry.register(Box::new(gauge))?;
    }
    let mut out = Vec::new();
    TextEncoder::new().encode(&registry.gather(), &mut out)?;
    // A counter that is read elsewhere can only be set as a gauge; what it is, the page says all the same.
    let text = String::from_utf8_lossy(&out).replace("_total gauge\n", "_total counter\n");
    Ok(text.into_bytes())
}
