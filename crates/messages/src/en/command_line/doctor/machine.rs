//! The checks of the machine: disk, memory, port, descriptors, clock.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

/// The remedy if no folder around the data folder exists.
pub const CREATE_FOLDER: &str = "create it";
/// The remedy if other users can access the data folder of a server.
pub const CLOSE_FOLDER: &str = "chmod 700; the server does not start";
/// The remedy if other users can access the data folder of a server that has not started yet.
pub const CLOSE_NEW_FOLDER: &str = "chmod 700; the first start also does this";
/// The remedy if a server uses the data folder.
pub const STOP_OTHER_SERVER: &str = "stop that server before you start another one";
/// The remedy if the disk is slow.
pub const USE_FASTER_DISK: &str = "every response waits for a sync; use a faster disk";

/// The remedy if the free space of the disk is unknown.
pub const CHECK_WITH_DF: &str = "check with df";
/// The remedy if the disk has less free space than calls need.
pub const FREE_SPACE_OR_LOWER_MINIMUM: &str = "free space, or lower disk.min_free_mib";
/// The remedy if the disk has few inodes left.
pub const FREE_INODES: &str = "delete small files on this disk, or use a disk with more inodes";
/// The remedy if calls will soon be refused for lack of space.
pub const FREE_SPACE_SOON: &str = "free space soon";

/// The remedy if a write has failed because the disk is full.
pub const FREE_SPACE: &str = "free space on this disk; until then, calls that need space are refused";
/// The remedy if a write has failed because of a quota.
pub const RAISE_DISK_QUOTA: &str = "raise the quota of the server's user, or free space";
/// The remedy if a write was not permitted.
pub const CHANGE_OWNER: &str = "make the server's user the owner";
/// The remedy if a write has failed on a disk that is mounted read-only.
pub const MOUNT_WRITABLE: &str = "mount it writable";
/// The remedy if a write has failed in any other way.
pub const CHECK_DISK: &str = "check the disk and the system's log";

/// The remedy if the memory of the machine is unknown.
pub const CHECK_WITH_FREE: &str = "check with free";
/// The remedy if the machine has less memory than the server may use.
pub const LOWER_MEMORY: &str = "lower memory_mib, or add memory";

/// Beside a port in use, which may be the server's own.
pub const PORT_OF_RUNNING_SERVER: &str = "this is correct if the server is running";
/// The remedy if the server cannot listen on its port.
pub const SET_OTHER_ADDRESS: &str = "set listen to another address";

/// The machine limits neither open files nor connections.
pub const NO_LIMIT_OF_FILES: &str = "no limit of open files and connections";
/// The limit of open files cannot be read.
pub const UNKNOWN_LIMIT_OF_FILES: &str = "the limit of open files is unknown";
/// The remedy if the limit of open files cannot be read.
pub const CHECK_WITH_ULIMIT: &str = "check ulimit -n";

/// Instead of the time of a clock that has no date.
pub const UNKNOWN_TIME: &str = "an unknown time";
/// The remedy if the clocks of this machine and of Redis differ.
pub const SYNCHRONISE_CLOCKS: &str = "synchronise both with NTP; timers use this machine's clock";

/// Whether the data folder exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataFolder {
    /// A server can write to it.
    Writable,
    /// The first start creates it.
    Missing,
}

/// How the clock of this machine was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockComparison {
    /// It differs from that of Redis by these milliseconds.
    OffRedis(i64),
    /// The difference from that of Redis is small.
    MatchesRedis,
    /// Without Redis, the clock is compared with nothing; the system follows NTP.
    Synchronised,
    /// Without Redis, the clock is compared with nothing; the system does not say whether it follows NTP.
    Alone,
}

/// No folder around the data folder exists.
#[must_use]
pub fn no_parent_folder(data: &Path) -> String {
    format!("{}: no parent folder exists", data.display())
}

/// A file cannot be written in the data folder or, before the first start, in the one around it.
#[must_use]
pub fn not_writable(folder: &Path, error: &impl Display) -> String {
    format!("{} is not writable: {error}", folder.display())
}

/// The data folder can be used: its file system, if that is known, and the time of a sync.
#[must_use]
pub fn data_folder(data: &Path, state: DataFolder, file_system: Option<&str>, sync: Duration) -> String {
    let is = match state {
        DataFolder::Writable => "is writable",
        DataFolder::Missing => "is created at the first start",
    };
    let kind = file_system.unwrap_or("an unknown file system");
    let ms = sync.as_secs_f64() * 1000.0;
    format!("{} {is}, on {kind}; a sync takes {ms:.1} ms", data.display())
}

/// After a finding about the data folder: its mode opens it to other users.
#[must_use]
pub fn open_to_others(finding: &str, mode: u32) -> String {
    format!("{finding}; other users can access it (mode {mode:03o})")
}

/// After a finding about the data folder: it is not free.
#[must_use]
pub fn used_by_server(finding: &str) -> String {
    format!("{finding}; a server is using it")
}

/// The remedy if the data folder is on a file system that does not keep what was synced.
#[must_use]
pub fn use_local_disk(file_system: &str) -> String {
    format!("{file_system} may lose synced data; use a local disk")
}

/// The system does not say how full a disk is.
#[must_use]
pub fn unknown_space(folder: &Path, error: &impl Display) -> String {
    format!("the free space of {} is unknown: {error}", folder.display())
}

/// The free space of the data folder's disk, and the least that calls need.
#[must_use]
pub fn free_space(free_mib: u64, least_mib: u64) -> String {
    format!("{free_mib} MiB free; below {least_mib} MiB, calls that need space are refused")
}

/// After a finding about the free space: the inodes that are left.
#[must_use]
pub fn few_inodes(finding: &str, files: u64) -> String {
    format!("{finding}; only {files} more files can be created (inodes)")
}

/// The memory of the machine, or of its container, is sufficient.
#[must_use]
pub fn enough_memory(most_mib: usize, available_mib: usize) -> String {
    format!("{} of {available_mib}", most_memory(most_mib))
}

/// The server may use more memory than there is.
#[must_use]
pub fn not_enough_memory(most_mib: usize, available_mib: usize) -> String {
    format!("{}, but only {available_mib} MiB are available", most_memory(most_mib))
}

/// The system does not say how much memory it has.
#[must_use]
pub fn unknown_memory(most_mib: usize) -> String {
    format!("{}; the memory of this system is unknown", most_memory(most_mib))
}

fn most_memory(mib: usize) -> String {
    format!("the server uses at most {mib} MiB")
}

/// The server can listen on its port.
#[must_use]
pub fn port_free(address: &impl Display) -> String {
    format!("{address} is free")
}

/// A process listens on the server's port.
#[must_use]
pub fn port_in_use(address: &impl Display) -> String {
    format!("{address} is in use")
}

/// The server cannot listen on an address.
#[must_use]
pub fn failed_to_listen(address: &impl Display, error: &impl Display) -> String {
    format!("failed to listen on {address}: {error}")
}

/// The limit of descriptors.
#[must_use]
pub fn limit_of_files(most: u64) -> String {
    format!("at most {most} open files and connections")
}

/// The remedy if the limit of descriptors is lower than this.
#[must_use]
pub fn allow_files(least: u64) -> String {
    format!("allow {least}: set LimitNOFILE of the service, or ulimit -n")
}

/// The clock of this machine, and with what it was compared.
#[must_use]
pub fn clock(time: &str, comparison: ClockComparison) -> String {
    match comparison {
        ClockComparison::OffRedis(ms) => format!("{time}; differs from the clock of Redis by {ms} ms"),
        ClockComparison::MatchesRedis => format!("{time}; matches the clock of Redis"),
        ClockComparison::Synchronised => format!("{time}; synchronised with NTP"),
        ClockComparison::Alone => format!("{time}; no other clock to compare with"),
    }
}
