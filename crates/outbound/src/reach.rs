//! Which servers share a bus.

/// Which servers share a bus. It decides what becomes of jobs when another server becomes the leader of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusReach {
    /// All of them, or there is only one server: a published job is known by its name, no matter which server has
    /// published it.
    Cluster,
    /// Each server has a bus of its own, which does not know the jobs of the others.
    Server,
}
