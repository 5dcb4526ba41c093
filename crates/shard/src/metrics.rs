//! What a shard counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one shard since it was opened.
#[derive(Debug, Default)]
pub struct ShardMetrics {
    /// Log entries that this shard decided.
    pub entries: AtomicU64,
    /// Commands that came to a decision.
    pub commands: AtomicU64,
    /// Commands that were refused by the engine.
    pub rejections: AtomicU64,
    /// Commands that found the queue full.
    pub overloads: AtomicU64,
    /// Commands that the disk had no room for.
    pub disk_refusals: AtomicU64,
    /// Events that were applied.
    pub events: AtomicU64,
    /// Bytes of the decisions that were applied.
    pub bytes: AtomicU64,
}

impl ShardMetrics {
    pub(crate) fn add(counter: &AtomicU64, more: usize) {
        counter.fetch_add(u64::try_from(more).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}
