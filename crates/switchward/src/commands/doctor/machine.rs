//! The machine: disk, memory, port, descriptors, clock.

use jiff::Timestamp;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use switchward_messages::cli::doctor::machine as texts;
use switchward_messages::cli::doctor::machine::{ClockComparison, DataFolder};
use switchward_shard::{Clock as _, SystemClock};
use switchward_store::{DataDir, DiskOptions, Space};
use tokio::net::TcpListener;

use super::CheckResult;
use crate::config::Config;
use crate::private;

/// The number of timed syncs.
const SYNCS: usize = 11;
/// A sync that takes longer makes every response slow.
const SYNC_SLOW: Duration = Duration::from_millis(20);
/// File systems that may lose data they reported as written, or that several machines may write to.
const POOR: [&str; 10] =
    ["tmpfs", "ramfs", "overlay", "nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "virtiofs"];
/// Files that a server must be able to create.
const FILES_LEAST: u64 = 1_000;
/// Descriptors that a server with many connections needs.
const DESCRIPTORS: u64 = 8192;
/// The maximum difference between two clocks.
const CLOCK_OFF_MS: i64 = 1_000;

/// The data folder: whether it is writable, its file system, the time of a sync.
pub(super) fn data(folder: &Path) -> CheckResult {
    let what = "data";
    let Some(existing) = innermost(folder) else {
        return CheckResult::fail(what, texts::no_parent_folder(folder), texts::CREATE_FOLDER);
    };
    let took = match sync_time(&existing) {
        Ok(took) => took,
        Err(error) => return CheckResult::fail(what, texts::not_writable(&existing, &error), remedy(&error)),
    };
    let kind = file_system(&existing);
    let state = if folder.is_dir() { DataFolder::Writable } else { DataFolder::Missing };
    let said = texts::data_folder(folder, state, kind.as_deref(), took);
    if let Some(mode) = private::open_folder(folder) {
        let said = texts::open_to_others(&said, mode);
        if folder.join("FORMAT").exists() {
            return CheckResult::fail(what, said, texts::CLOSE_FOLDER);
        }
        return CheckResult::warn(what, said, texts::CLOSE_NEW_FOLDER);
    }
    if DataDir::in_use(folder) {
        return CheckResult::warn(what, texts::used_by_server(&said), texts::STOP_OTHER_SERVER);
    }
    if let Some(poor) = kind.filter(|kind| POOR.contains(&kind.as_str())) {
        return CheckResult::warn(what, said, texts::use_local_disk(&poor));
    }
    if took > SYNC_SLOW {
        return CheckResult::warn(what, said, texts::USE_FASTER_DISK);
    }
    CheckResult::ok(what, said)
}

/// The folder itself, or the innermost one around it that exists. A relative path is in the working folder.
fn innermost(folder: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(folder).ok()?;
    whole.ancestors().find(|it| it.is_dir()).map(Path::to_path_buf)
}

/// The free space on the disk of the data folder.
pub(super) fn space(folder: &Path, options: DiskOptions) -> Option<CheckResult> {
    let existing = innermost(folder)?;
    match Space::of(&existing) {
        Ok(space) => Some(space_found(space, options)),
        Err(error) => {
            Some(CheckResult::warn("space", texts::unknown_space(&existing, &error), texts::CHECK_WITH_DF))
        }
    }
}

fn space_found(space: Space, options: DiskOptions) -> CheckResult {
    let what = "space";
    let mib = |bytes: u64| bytes / (1024 * 1024);
    let said = texts::free_space(mib(space.free_bytes), mib(options.min_free_bytes));
    if space.free_bytes < options.min_free_bytes {
        return CheckResult::fail(what, said, texts::FREE_SPACE_OR_LOWER_MINIMUM);
    }
    if let Some(files) = space.free_files.filter(|files| *files < FILES_LEAST) {
        return CheckResult::fail(what, texts::few_inodes(&said, files), texts::FREE_INODES);
    }
    if space.free_bytes < options.min_free_bytes.saturating_add(options.reserve_bytes).saturating_mul(2) {
        return CheckResult::warn(what, said, texts::FREE_SPACE_SOON);
    }
    CheckResult::ok(what, said)
}

/// The advice for an error of writing.
fn remedy(error: &std::io::Error) -> &'static str {
    let remedies = [
        (ErrorKind::StorageFull, texts::FREE_SPACE),
        (ErrorKind::QuotaExceeded, texts::RAISE_DISK_QUOTA),
        (ErrorKind::PermissionDenied, texts::CHANGE_OWNER),
        (ErrorKind::ReadOnlyFilesystem, texts::MOUNT_WRITABLE),
    ];
    let known = remedies.into_iter().find(|(kind, _)| *kind == error.kind());
    known.map_or(texts::CHECK_DISK, |(_, remedy)| remedy)
}

/// The median time of some syncs of a temporary file.
fn sync_time(folder: &Path) -> std::io::Result<Duration> {
    let mut file = tempfile::tempfile_in(folder)?;
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        file.write_all(&[0; 4096])?;
        let begun = Instant::now();
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    Ok(times[SYNCS / 2])
}

/// The type of a folder's file system.
fn file_system(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    kind_of(&folder, &fs::read_to_string("/proc/self/mountinfo").ok()?)
}

fn kind_of(folder: &Path, mounts: &str) -> Option<String> {
    let mounted = mounts.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let at = PathBuf::from(left.split(' ').nth(4)?.replace("\\040", " "));
        Some((at, right.split(' ').next()?.to_owned()))
    });
    // The innermost mount counts, and the last one of several on one folder.
    let around = mounted.filter(|(at, _)| folder.starts_with(at));
    around.max_by_key(|(at, _)| at.components().count()).map(|(_, kind)| kind)
}

/// Checks that the machine has as much memory as the server may use.
pub(super) fn memory(wanted: usize) -> CheckResult {
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").unwrap_or_default();
    enough(wanted, &fs::read_to_string("/proc/meminfo").unwrap_or_default(), &limit)
}

/// The same from the system's files: all memory in kB, and the limit of the container in bytes.
fn enough(wanted: usize, system: &str, container: &str) -> CheckResult {
    let what = "memory";
    let line = system.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let all = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok());
    let may = container.trim().parse::<usize>().ok();
    let there = [all.map(|kb| kb.saturating_mul(1024)), may].into_iter().flatten().min();
    let mib = |bytes: usize| bytes / (1024 * 1024);
    match there {
        None => CheckResult::warn(what, texts::unknown_memory(mib(wanted)), texts::CHECK_WITH_FREE),
        Some(there) if there < wanted => {
            let said = texts::not_enough_memory(mib(wanted), mib(there));
            CheckResult::fail(what, said, texts::LOWER_MEMORY)
        }
        Some(there) => CheckResult::ok(what, texts::enough_memory(mib(wanted), mib(there))),
    }
}

/// Checks that the port is free.
pub(super) async fn port(config: &Config) -> CheckResult {
    let (what, at) = ("port", config.listen);
    match TcpListener::bind(at).await {
        Ok(_) => CheckResult::ok(what, texts::port_free(&at)),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            CheckResult::warn(what, texts::port_in_use(&at), texts::PORT_OF_RUNNING_SERVER)
        }
        Err(error) => CheckResult::fail(what, texts::failed_to_listen(&at, &error), texts::SET_OTHER_ADDRESS),
    }
}

/// The limit of open files and connections.
pub(super) fn descriptors() -> CheckResult {
    let what = "files";
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let soft = limits.lines().find_map(soft_limit_of_files);
    match soft.map(str::parse::<u64>) {
        Some(Ok(most)) if most < DESCRIPTORS => {
            CheckResult::warn(what, texts::limit_of_files(most), texts::allow_files(DESCRIPTORS))
        }
        Some(Ok(most)) => CheckResult::ok(what, texts::limit_of_files(most)),
        Some(Err(_)) => CheckResult::ok(what, texts::NO_LIMIT_OF_FILES),
        None => CheckResult::warn(what, texts::UNKNOWN_LIMIT_OF_FILES, texts::CHECK_WITH_ULIMIT),
    }
}

/// The soft limit in the line about descriptors; `None` in any other line of the limits of a process.
fn soft_limit_of_files(line: &str) -> Option<&str> {
    match *line.split_whitespace().collect::<Vec<_>>() {
        ["Max", "open", "files", soft, ..] => Some(soft),
        _ => None,
    }
}

/// The clock, compared with that of a Redis if there is one, in milliseconds since 1970.
pub(super) fn clock(other_ms: Option<i64>) -> CheckResult {
    let what = "clock";
    let now = SystemClock.now().0;
    let now = i64::try_from(now).unwrap_or_default();
    let shown = Timestamp::from_millisecond(now).map(|at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    let shown = shown.unwrap_or_else(|_| texts::UNKNOWN_TIME.into());
    match other_ms.map(|other| now - other) {
        Some(off) if off.abs() > CLOCK_OFF_MS => {
            let said = texts::clock(&shown, ClockComparison::OffRedis(off.abs()));
            CheckResult::warn(what, said, texts::SYNCHRONISE_CLOCKS)
        }
        Some(_) => CheckResult::ok(what, texts::clock(&shown, ClockComparison::MatchesRedis)),
        None if Path::new("/run/systemd/timesync/synchronized").exists() => {
            CheckResult::ok(what, texts::clock(&shown, ClockComparison::Synchronised))
        }
        None => CheckResult::ok(what, texts::clock(&shown, ClockComparison::Alone)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::CheckStatus;
    use super::*;

    #[test]
    fn memory_is_that_of_the_container_where_there_is_one() {
        let system = "MemTotal:        2097152 kB\nMemFree:   7 kB\n";
        let rows = [
            (system, "max\n", 2048, CheckStatus::Ok),
            (system, "max\n", 2049, CheckStatus::Fail),
            (system, "1073741824\n", 1024, CheckStatus::Ok),
            (system, "1073741824\n", 1025, CheckStatus::Fail),
            ("", "", 1024, CheckStatus::Warn),
        ];
        for (system, container, mib, status) in rows {
            let found = enough(mib << 20, system, container);
            assert_eq!(found.status, status, "{mib}: {found:?}");
        }
    }

    #[test]
    fn the_innermost_mount_counts() {
        let mounts = "1 0 0:1 / / rw - ext4 /dev/vda rw\n2 1 0:2 / /var/lib rw shared:3 - xfs /dev/vdb rw\n\
                      3 1 0:3 / /var/lib/my\\040data rw - nfs4 host:/x rw\nbroken\n";
        for (folder, kind) in [
            ("/etc", "ext4"),
            ("/var/lib/switchward", "xfs"),
            ("/var/lib/my data/x", "nfs4"),
            ("/var/library", "ext4"),
        ] {
            assert_eq!(kind_of(Path::new(folder), mounts).as_deref(), Some(kind), "{folder}");
        }
    }

    #[test]
    fn free_bytes_and_files_are_counted() {
        let options = DiskOptions { min_free_bytes: 256 << 20, reserve_bytes: 64 << 20 };
        for (free_mib, free_files, status, words) in [
            (10_000, Some(50_000), CheckStatus::Ok, "below 256 MiB"),
            (10_000, None, CheckStatus::Ok, "10000 MiB free"),
            (600, Some(50_000), CheckStatus::Warn, "600 MiB free"),
            (100, Some(50_000), CheckStatus::Fail, "100 MiB free"),
            (10_000, Some(9), CheckStatus::Fail, "only 9 more files"),
        ] {
            let found = space_found(Space { free_bytes: free_mib << 20, free_files }, options);
            assert!(found.status == status && found.said.contains(words), "{free_mib}: {found:?}");
        }
        let full = remedy(&std::io::Error::from(ErrorKind::StorageFull));
        assert!(full.contains("free space") && !full.contains("owner"), "{full}");
    }

    #[test]
    fn a_folder_is_looked_at_and_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let found = data(folder.path());
        assert_ne!(found.status, CheckStatus::Fail, "{found:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let later = data(&folder.path().join("a/b"));
        assert!(later.said.contains("is created at the first start"), "{later:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let relative = Path::new("no-such-folder/data");
        let found = data(relative);
        assert!(
            found.status != CheckStatus::Fail && found.said.starts_with("no-such-folder/data is created")
        );
        assert!(space(relative, DiskOptions { min_free_bytes: 0, reserve_bytes: 0 }).is_some());
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(data(&PathBuf::from("/proc/nothing/here")).status, CheckStatus::Fail);
    }
}
