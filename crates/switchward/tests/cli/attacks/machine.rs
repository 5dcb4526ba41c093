//! What a process takes of its machine, and what the machine lets a test take.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The most memory that a process has ever had, MiB.
pub(crate) fn peak_mib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("Linux says it");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number");
    kib / 1024
}

/// Lets this process, and those that it starts from now on, open as many files as the machine allows, but no more than
/// `wanted`: how many that are.
pub(crate) fn open_files(wanted: u64) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(wanted).min(wanted).max(limit.current.unwrap_or(wanted));
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..limit }).expect("it is allowed");
    usize::try_from(most).expect("a number of files")
}
