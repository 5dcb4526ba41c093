//! The page `/readyz`, which says whether a server is ready.

/// What the page says of the server: the first of these that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// It starts or stops.
    NotReady,
    /// It reaches no leader of the catalogue.
    CutOff,
    /// A shard's replica on it answers nothing.
    ShardFailed,
    /// It refuses what needs more space.
    DiskLow,
    /// It leads no shard, because its time is not that of the others.
    ClockOff,
    /// It accepts calls.
    Ready,
}

/// What the page says of the server, in a line.
#[must_use]
pub fn readiness(readiness: Readiness) -> &'static str {
    match readiness {
        Readiness::NotReady => "not ready",
        Readiness::CutOff => "not ready; no leader of the catalogue can be reached",
        Readiness::ShardFailed => "ready; a shard has failed: its requests are refused, see the log",
        Readiness::DiskLow => "ready; the disk runs low: requests that need more of it are refused",
        Readiness::ClockOff => "ready; this server's clock differs from the others': it leads no shard",
        Readiness::Ready => "ready",
    }
}
