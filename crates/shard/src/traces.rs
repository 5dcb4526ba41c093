//! The spans of a shard, which only traces need.

/// The target of spans that only traces need. They have the level debug, so that a server that exports no traces does not make
/// them: each command of a leader would cost it a few percent more.
pub(crate) const TRACES: &str = "switchward_shard::traces";
