//! The checks of what the servers of a cluster must have in common, by their answers.

use std::fmt::Display;

/// The remedy for a server that does not answer.
pub const CHECK_PEER: &str =
    "a server that is down or cut off; if it runs, check its cluster.listen, its address and its certificate";
/// The configuration of a server names no server but itself.
pub const NO_PEERS: &str = "cluster.peers names no other server";
/// The remedy if a server finds no other one.
pub const NAME_PEERS: &str = "name the other servers in cluster.peers, unless this is the only one";

/// Before the difference of this machine's clock.
pub const THIS_MACHINE: &str = "this machine";
/// The remedy if a clock differs by more than a leader's may.
pub const USE_NTP: &str = "a server whose clock differs by more than two seconds leads nothing; use NTP";
/// The same if too few clocks are alike to say which one is right.
pub const NO_MEDIAN: &str = "undecided: no majority of the clocks says which one is right, so no server is barred from \
     leading, and timers may be late; use NTP";
/// The remedy if a clock differs by less than that.
pub const SYNCHRONISE_MACHINES: &str =
    "synchronise the machines with NTP; at more than two seconds a server leads nothing";

/// Before the reason why this program cannot take part.
pub const THIS_PROGRAM: &str = "this program";
/// The cluster has not agreed on a feature level yet.
pub const NO_LEVEL: &str = "no server knows the feature level yet";
/// The remedy if the cluster has no feature level yet.
pub const RUN_AGAIN: &str = "run this again when the cluster is ready";
/// The remedy if a server does not know the feature level.
pub const UNKNOWN_LEVEL: &str = "a server that does not know the level cannot take part";

/// The certificates of the other servers need no attention.
pub const CERTIFICATES_VALID: &str = "the certificates of the other servers are valid for two weeks and more";
/// The remedy if other servers have less free space than calls need.
pub const FREE_SPACE: &str = "free space on these servers";

/// All servers can read what any of them has encrypted.
pub const SAME_KEYS: &str = "the key ring has the same keys as that of the other servers";
/// The remedy if the key rings of servers differ.
pub const USE_SAME_KEYS: &str =
    "these servers refuse each other; give all the same key ring (`switchward secrets`)";

/// The consequence if servers cannot reach Redis.
pub const DELIVERIES_WAIT: &str = "what these servers send waits until they reach Redis";
/// This server cannot say which Redis it has.
pub const REDIS_NOT_COMPARED: &str = "this server does not reach its Redis, so it is not compared";
/// The remedy if this server does not reach its Redis.
pub const SEE_CHECK_OF_REDIS: &str = "see the check redis";
/// The remedy if servers do not share one Redis.
pub const USE_SAME_REDIS: &str = "use the same table [redis] on all servers";
/// No server of the cluster has a Redis.
pub const NO_REDIS: &str = "no server has one; each delivers what its own shards send";
/// The servers share one Redis.
pub const SAME_REDIS: &str = "all servers use the same Redis";

/// Another server, as a finding names it.
#[must_use]
pub fn server(number: u64) -> String {
    format!("server {number}")
}

/// A server did not answer. Most reasons begin with its number and its address.
#[must_use]
pub fn unreachable(number: u64, why: &str) -> String {
    let name = server(number);
    if why.starts_with(&format!("{name} ")) { why.to_owned() } else { format!("{name}: {why}") }
}

/// The servers that have answered, by their numbers.
#[must_use]
pub fn reachable(servers: &[u64]) -> String {
    let reached = match servers {
        [one] => format!("server {one} is reachable"),
        several => format!("the servers {} are reachable", numbers(several)),
    };
    format!("{reached} and of the same cluster")
}

/// No clock, of this count with a noun, needs attention.
#[must_use]
pub fn clocks_agree(clocks: &str) -> String {
    format!("{clocks} differ by a second at most")
}

/// How far the clock of a machine is ahead of the median, milliseconds; less than 0 if it is behind.
#[must_use]
pub fn clock_ahead(whose: &str, ms: i64) -> String {
    format!("{whose} by {ms:+} ms")
}

/// The clocks that need attention, each with its difference.
#[must_use]
pub fn clocks_differ(clocks: &[String]) -> String {
    format!("differ from the median: {}", clocks.join(", "))
}

/// A program cannot work at the level of the cluster.
#[must_use]
pub fn wrong_level(whose: &str, why: &impl Display) -> String {
    format!("{whose}: {why}")
}

/// All programs know a higher level than the cluster uses.
#[must_use]
pub fn level_can_be_raised(level: &impl Display, possible: &impl Display) -> String {
    format!(
        "the cluster writes level {level}, and all servers know level {possible}; \
         `switchward cluster level --raise` raises it for good"
    )
}

/// The cluster uses the highest level that all programs know.
#[must_use]
pub fn level_known(level: &impl Display) -> String {
    format!("the cluster writes level {level}, which all servers know")
}

/// The last day of another server's certificate, which is soon.
#[must_use]
pub fn certificate_ends(server: u64, day: &str) -> String {
    format!("that of server {server} ends on {day}")
}

/// The free space of another server's disk.
#[must_use]
pub fn free_space(server: u64, mib: u64) -> String {
    format!("server {server} has {mib} MiB free")
}

/// Another server does not know how full its disk is.
#[must_use]
pub fn unknown_space(server: u64) -> String {
    format!("the free space of server {server} is unknown")
}

/// Disks of other servers are full, each given with its free space.
#[must_use]
pub fn disks_low(disks: &[String]) -> String {
    format!("calls that need space are refused: {}", disks.join(", "))
}

/// Servers cannot read what this one has encrypted.
#[must_use]
pub fn other_keys(servers: &[u64]) -> String {
    format!("the key rings of server {} have other keys than this one", numbers(servers))
}

/// Another server does not reach its Redis.
#[must_use]
pub fn redis_unreachable(server: u64, why: &str) -> String {
    format!("server {server} cannot reach its Redis: {why}")
}

/// Servers and this one do not deliver together.
#[must_use]
pub fn other_redis(servers: &[u64]) -> String {
    format!("server {} has another Redis than this server, none, or another prefix", numbers(servers))
}

fn numbers(servers: &[u64]) -> String {
    servers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}
