//! The machine itself: disk, port, certificate, descriptors, clock.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use switchward_shard::{Clock as _, SystemClock};
use switchward_store::DataDir;
use tokio::net::TcpListener;
use x509_parser::pem::Pem;

use super::Found;
use crate::config::{Config, Tls};
use crate::tls;

/// How often a sync is timed.
const SYNCS: usize = 11;
/// A sync that takes longer makes every answer slow.
const SYNC_SLOW: Duration = Duration::from_millis(20);
/// File systems that lose what they have said is written, or that several machines may write to.
const POOR: [&str; 10] =
    ["tmpfs", "ramfs", "overlay", "nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "virtiofs"];
/// Descriptors that a server with many connections wants.
const DESCRIPTORS: u64 = 8192;
/// How long before its end a certificate is to be replaced.
const CERTIFICATE_LEFT: SignedDuration = SignedDuration::from_hours(14 * 24);
/// How far a clock may be off another one.
const CLOCK_OFF_MS: i64 = 1_000;

/// The data folder: whether it can be written to, on what it lies, how long a sync takes.
pub(super) fn data(folder: &Path) -> Found {
    let what = "data";
    let shown = folder.display();
    let Some(place) = folder.ancestors().find(|it| it.is_dir()) else {
        return Found::fail(what, format!("{shown}: no folder above it exists"), "make it");
    };
    let took = match sync_time(place) {
        Ok(took) => took,
        Err(error) => {
            let said = format!("{} cannot be written to: {error}", place.display());
            return Found::fail(what, said, "give its owner to whoever runs the server");
        }
    };
    let kind = file_system(place).unwrap_or_else(|| "an unknown file system".into());
    let there = if place == folder { "can be written to" } else { "is made at the first start" };
    let said = format!("{shown} {there}, on {kind}; a sync takes {:.1} ms", took.as_secs_f64() * 1000.0);
    if DataDir::in_use(folder) {
        let said = format!("{said}; a server uses it now");
        return Found::warn(what, said, "no other one can until that has stopped");
    }
    if POOR.contains(&kind.as_str()) {
        return Found::warn(
            what,
            said,
            format!("{kind} may lose what was said to be written; use a local disk"),
        );
    }
    if took > SYNC_SLOW {
        return Found::warn(what, said, "every answer waits for one; use a faster disk");
    }
    Found::ok(what, said)
}

/// The middle one of some syncs of a file that is gone then.
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

/// The kind of file system that a folder lies on.
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
    // The innermost one counts, and of those on one folder the last.
    let around = mounted.filter(|(at, _)| folder.starts_with(at));
    around.max_by_key(|(at, _)| at.components().count()).map(|(_, kind)| kind)
}

/// Whether the port can be had.
pub(super) async fn port(config: &Config) -> Found {
    let (what, at) = ("port", config.listen);
    match TcpListener::bind(at).await {
        Ok(_) => Found::ok(what, format!("{at} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            Found::warn(what, format!("{at} is taken"), "that is fine where this server runs already")
        }
        Err(error) => {
            Found::fail(what, format!("{at} cannot be listened on: {error}"), "say another one as listen")
        }
    }
}

/// The port's certificate: whether it fits its key, and how long it holds.
pub(super) fn certificate(config: &Tls) -> Found {
    let what = "tls";
    if let Err(error) = tls::acceptor(&config.cert_file, &config.key_file) {
        return Found::fail(
            what,
            format!("{error:#}"),
            "both are PEM, and the certificate is that of the key",
        );
    }
    match ends(&config.cert_file) {
        Some((from, until)) => dated(&config.cert_file, from, until, Timestamp::now()),
        None => {
            let said = format!("the dates of {} cannot be read", config.cert_file.display());
            Found::warn(what, said, "look whether it still holds")
        }
    }
}

fn dated(file: &Path, from: Timestamp, until: Timestamp, now: Timestamp) -> Found {
    let (what, file) = ("tls", file.display());
    let day = |at: Timestamp| at.strftime("%Y-%m-%d").to_string();
    if now < from || now > until {
        let said = format!("{file} holds from {} to {} only", day(from), day(until));
        return Found::fail(what, said, "replace it; nobody connects with it today");
    }
    let said = format!("{file} holds until {}", day(until));
    if until.duration_since(now) < CERTIFICATE_LEFT {
        return Found::warn(what, said, "replace it in time; it is read at the start");
    }
    Found::ok(what, said)
}

/// From when to when the first certificate of a file holds.
fn ends(file: &Path) -> Option<(Timestamp, Timestamp)> {
    let text = fs::read(file).ok()?;
    let pem =
        Pem::iter_from_buffer(&text).find_map(|pem| pem.ok().filter(|pem| pem.label == "CERTIFICATE"))?;
    let held = pem.parse_x509().ok()?.validity().clone();
    let at = |time: x509_parser::time::ASN1Time| Timestamp::from_second(time.timestamp()).ok();
    Some((at(held.not_before)?, at(held.not_after)?))
}

/// How many files and connections may be open at once.
pub(super) fn descriptors() -> Found {
    let what = "files";
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().next());
    match soft.map(str::parse::<u64>) {
        Some(Ok(most)) if most < DESCRIPTORS => {
            let said = format!("{most} files and connections may be open at once");
            Found::warn(what, said, format!("allow {DESCRIPTORS}: LimitNOFILE of the service, or ulimit -n"))
        }
        Some(Ok(most)) => Found::ok(what, format!("{most} files and connections may be open at once")),
        Some(Err(_)) => Found::ok(what, "any number of files and connections may be open at once"),
        None => Found::warn(what, "this system does not say how many files may be open", "look at ulimit -n"),
    }
}

/// The clock, beside that of a Redis where there is one, in milliseconds since 1970.
pub(super) fn clock(other_ms: Option<i64>) -> Found {
    let what = "clock";
    let now = SystemClock.now().0;
    let now = i64::try_from(now).unwrap_or_default();
    let shown = Timestamp::from_millisecond(now).map(|at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    let shown = shown.unwrap_or_else(|_| "no time at all".into());
    match other_ms.map(|other| now - other) {
        Some(off) if off.abs() > CLOCK_OFF_MS => {
            let said = format!("it is {shown} here, {} ms off the clock of Redis", off.abs());
            Found::warn(what, said, "set both by NTP; deadlines are told by this one")
        }
        Some(_) => Found::ok(what, format!("it is {shown} here, and for Redis, too")),
        None if Path::new("/run/systemd/timesync/synchronized").exists() => {
            Found::ok(what, format!("it is {shown} here, set by NTP"))
        }
        None => Found::ok(what, format!("it is {shown} here; there is nothing to compare it with")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

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
    fn a_certificate_is_told_in_time() {
        let now = Timestamp::now();
        let days = |days: i64| now + SignedDuration::from_hours(days * 24);
        for (from, until, verdict) in
            [(-1, 90, Verdict::Ok), (-1, 13, Verdict::Warn), (-9, -1, Verdict::Fail), (1, 90, Verdict::Fail)]
        {
            let found = dated(Path::new("tls.crt"), days(from), days(until), now);
            assert_eq!(found.verdict, verdict, "{from} {until}: {found:?}");
        }
    }

    #[test]
    fn dates_are_read_from_the_certificate() {
        let made = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tls.crt");
        fs::write(&file, made.cert.pem()).unwrap();
        let (from, until) = ends(&file).unwrap();
        assert!(from < Timestamp::now() && Timestamp::now() < until, "{from} {until}");
        fs::write(&file, "no certificate").unwrap();
        assert_eq!(ends(&file), None);
    }

    #[test]
    fn a_folder_is_looked_at_and_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let found = data(folder.path());
        assert_ne!(found.verdict, Verdict::Fail, "{found:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let later = data(&folder.path().join("a/b"));
        assert!(later.said.contains("is made at the first start"), "{later:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(data(&PathBuf::from("/proc/nothing/here")).verdict, Verdict::Fail);
    }
}
