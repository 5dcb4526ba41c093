//! The check of the Redis between the server and its delivery workers.

/// The server has no Redis.
pub const NOT_CONFIGURED: &str = "not configured; deliveries run in the server's process";
/// The remedy if the password file cannot be read.
pub const WRITE_PASSWORD: &str = "write the password to that file";
/// The consequence if Redis does not answer.
pub const DELIVERIES_WAIT: &str = "deliveries wait until Redis can be reached";
/// The remedy if Redis is too old.
pub const NEWER_NEEDED: &str = "7.0 or newer is needed";
/// The remedy if the address is that of a replica.
pub const NAME_PRIMARY: &str = "name the primary";
/// The remedy if Redis deletes entries.
pub const SET_NOEVICTION: &str = "set maxmemory-policy noeviction; evicted messages are delivered late";

/// Where Redis has its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// On disk, too.
    Persistent,
    /// In memory alone.
    Memory,
}

/// The version of a Redis that has answered.
#[must_use]
pub fn version(url: &str, version: &str) -> String {
    format!("{url} is Redis {version}")
}

/// After the version: Redis takes no writes.
#[must_use]
pub fn replica(finding: &str) -> String {
    format!("{finding}, a read-only replica")
}

/// After the version: what a restart of Redis loses.
#[must_use]
pub fn persistence(finding: &str, persistence: Persistence) -> String {
    match persistence {
        Persistence::Persistent => format!("{finding}, persistent"),
        Persistence::Memory => format!("{finding}, in memory, which is sufficient"),
    }
}

/// After a finding about Redis: its eviction policy loses messages.
#[must_use]
pub fn evicts(finding: &str, policy: &str) -> String {
    format!("{finding}; it evicts entries when its memory is full ({policy})")
}
