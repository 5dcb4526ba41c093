//! A shard's metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one shard since it was opened.
#[derive(Debug, Default)]
pub struct ShardMetrics {
    /// Log entries that this shard decided.
    pub entries: AtomicU64,
    /// Commands that were decided.
    pub commands: AtomicU64,
    /// Commands that were refused by the engine.
    pub rejections: AtomicU64,
    /// Commands that found the queue full.
    pub overloads: AtomicU64,
    /// Commands that were refused because the disk was full.
    pub disk_refusals: AtomicU64,
    /// Events that were applied.
    pub events: AtomicU64,
    /// Bytes of the decisions that were applied.
    pub bytes: AtomicU64,
    /// Sessions whose removal this server began because their retention, or that of their history, was over.
    pub expired: AtomicU64,
    /// Sessions whose removal this server has completed.
    pub removed: AtomicU64,
    /// Rows that it has removed.
    pub removed_rows: AtomicU64,
    /// Sessions whose removal was under way at this server's last check, as far as it counts.
    pub removing: AtomicU64,
    /// Tenants that were being deleted and still had rows in this shard at this server's last check.
    pub tenants_deleting: AtomicU64,
}

impl ShardMetrics {
    pub(crate) fn add(counter: &AtomicU64, more: usize) {
        counter.fetch_add(u64::try_from(more).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn set(gauge: &AtomicU64, count: usize) {
        gauge.store(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}
