//! Other users of the machine can read neither a server's files, nor the secrets that it starts with.

use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use switchward_testkit::within;

use crate::server::{ADMIN_KEY, Running, Site};
use crate::support::{Ended, Process, program};

/// Umasks of processes: nothing closed, the usual ones, and everything closed.
const UMASKS: [&str; 4] = ["000", "002", "022", "777"];

/// The same command, started by a shell that has set this umask.
pub(crate) fn under(umask: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "umask \"$0\" && exec \"$@\"", umask])
        .arg(command.get_program())
        .args(command.get_args());
    shell
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| !name.to_string_lossy().starts_with("SWITCHWARD_")));
    for (name, value) in command.get_envs() {
        shell.env(name, value.unwrap_or(OsStr::new("")));
    }
    shell.stdin(Stdio::null());
    shell
}

/// Files and folders below one that others than their owner can read. A running server may remove files meanwhile.
pub(crate) fn readable(folder: &Path) -> Vec<String> {
    fn present<T>(looked: std::io::Result<T>) -> Option<T> {
        match looked {
            Ok(found) => Some(found),
            Err(gone) if gone.kind() == std::io::ErrorKind::NotFound => None,
            Err(why) => panic!("it cannot be looked at: {why}"),
        }
    }
    let mut found = Vec::new();
    let entries = present(fs::read_dir(folder)).into_iter().flatten();
    for entry in entries.filter_map(present).map(|entry| entry.path()) {
        let Some(of) = present(entry.metadata()) else { continue };
        if of.mode() & 0o077 != 0 {
            found.push(format!("{} {:03o}", entry.display(), of.mode() & 0o777));
        }
        if of.is_dir() {
            found.extend(readable(&entry));
        }
    }
    found
}

fn set_mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path).expect("it is there").mode() & 0o777
}

#[test]
fn a_server_started_with_any_umask_leaves_nothing_readable_for_others() {
    for umask in UMASKS {
        let site = Site::new();
        let (data, copy) = (site.path("data"), site.path("copy"));
        let made = ["tenant", "create", "globex", "--data-dir", &data, "--shards", "1"];
        Ended::of(&mut under(umask, program().args(made))).with_code(0);
        assert_eq!((mode(&data), readable(Path::new(&data))), (0o700, Vec::new()), "{umask}");
        let server = Running::of(&mut under(umask, &site.plain("127.0.0.1:0")));
        let call = ["keys", "create", "agent", "--address", &server.address, "--api-key", ADMIN_KEY];
        Ended::of(program().args(call)).with_code(0);
        Ended::of(&mut under(umask, program().args(["backup", &copy, "--data-dir", &data]))).with_code(0);
        let (log, code) = server.stop();
        assert_eq!(code, Some(0), "{umask}: {log}");
        for folder in [&data, &copy] {
            assert_eq!((mode(folder), readable(Path::new(folder))), (0o700, Vec::new()), "{umask}");
        }
    }
}

#[test]
fn a_development_server_leaves_nothing_readable_for_others() {
    let scratch = tempfile::tempdir().expect("a folder");
    let mut command = program();
    command
        .args(["dev", "--port", "0", "-o", "json"])
        .env("TMPDIR", scratch.path())
        .env("SWITCHWARD_CONTEXTS", scratch.path().join("contexts"));
    let mut command = under("000", &command);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut dev = Process(command.spawn().expect("it starts"));
    let mut out = std::io::BufReader::new(dev.0.stdout.take().expect("it has an output"));
    let mut ready = || std::io::BufRead::read_line(&mut out, &mut String::new());
    within(dev.0.id(), "the server is ready", &mut ready).expect("it is ready");
    assert_eq!(readable(scratch.path()), [""; 0]);
    assert_eq!(dev.stop(), Some(0));
    let mut said = String::new();
    dev.0.stderr.take().expect("it has one").read_to_string(&mut said).expect("it ends");
    assert_eq!(said, "", "an end that was asked for alarms nobody");
    let left: Vec<_> =
        fs::read_dir(scratch.path()).expect("a folder").map(|it| it.expect("an entry").file_name()).collect();
    assert_eq!(left, ["contexts"], "its own folder is gone");
}

#[test]
fn an_empty_folder_is_closed_and_a_data_folder_that_others_may_enter_is_refused() {
    let site = Site::new();
    let data = site.path("data");
    // An empty folder with a lax mode.
    fs::create_dir(&data).expect("a folder");
    set_mode(&data, 0o755);
    let server = Running::of(&mut site.plain("127.0.0.1:0"));
    assert_eq!(mode(&data), 0o700);
    assert_eq!(server.stop().1, Some(0));
    for open in [0o755, 0o750, 0o701, 0o770] {
        set_mode(&data, open);
        let assert_refused = |ended: Ended| {
            let named = ended.err.contains(&data) && ended.err.contains(&format!("mode {open:03o}"));
            assert!(named && ended.err.contains("chmod 700"), "{ended:?}");
        };
        assert_refused(Ended::of(&mut site.plain("127.0.0.1:0")).with_code(1));
        assert_refused(Ended::of(program().args(["keys", "bootstrap", "--data-dir", &data])).with_code(1));
        assert_eq!(mode(&data), open, "nobody is told that it was open if it is closed silently");
        let found = doctor(&site, "data");
        assert_eq!(found[0]["status"], "fail", "{found:?}");
    }
    set_mode(&data, 0o700);
    assert_eq!(Running::of(&mut site.plain("127.0.0.1:0")).stop().1, Some(0));
    assert_ne!(doctor(&site, "data")[0]["status"], "fail");
}

/// What `doctor` says of one thing.
fn doctor(site: &Site, what: &str) -> Vec<Value> {
    let mut command = program();
    command.args(["doctor", "--config", &site.path("tenants.toml"), "--data-dir", &site.path("data")]);
    command.args(["--listen", "127.0.0.1:0", "-o", "json"]).env("SWITCHWARD_CONTEXTS", site.path("contexts"));
    let ended = Ended::of(&mut command);
    let checks = ended.json()["checks"].as_array().cloned().unwrap_or_default();
    checks.into_iter().filter(|check| check["check"] == what).collect()
}

#[test]
fn a_key_that_everybody_reads_is_refused_and_named() {
    let site = Site::new();
    assert!(doctor(&site, "secrets").is_empty());
    for (file, open) in [("admin.key", 0o644), ("tls.key", 0o604)] {
        set_mode(site.path(file), open);
        let refused = Ended::of(&mut site.command()).with_code(1);
        let said = format!("{} (mode {open:03o})", site.path(file));
        assert!(refused.err.contains(&said) && refused.err.contains("chmod 600"), "{refused:?}");
        assert!(!Path::new(&site.path("data")).exists(), "nothing was made");
        set_mode(site.path(file), 0o640);
    }
    set_mode(site.path("admin.key"), 0o644);
    let found = doctor(&site, "secrets");
    assert!(found.len() == 1 && found[0]["status"] == "fail", "{found:?}");
    assert!(found[0]["message"].as_str().is_some_and(|said| said.contains("admin.key (644)")), "{found:?}");
}

#[test]
fn a_context_that_everybody_reads_is_used_by_no_command_and_named() {
    let site = Site::new();
    let server = Running::of(&mut site.plain("127.0.0.1:0"));
    let of_user = |words: &[&str]| {
        let mut command = program();
        command.args(words).env("SWITCHWARD_CONTEXTS", site.path("contexts"));
        Ended::of(&mut under("000", &command))
    };
    let (address, key) = (server.address.as_str(), site.path("admin.key"));
    of_user(&["context", "set", "acme", "--address", address, "--api-key-file", &key]).with_code(0);
    let file = site.path("contexts/acme.json");
    assert_eq!((mode(&file), mode(site.path("contexts"))), (0o600, 0o700));
    of_user(&["tenant", "get", "--context", "acme"]).with_code(0);
    set_mode(&file, 0o644);
    let refused = of_user(&["tenant", "get", "--context", "acme"]).with_code(1);
    assert!(refused.err.contains("acme.json (mode 644)"), "{refused:?}");
    let found = doctor(&site, "secrets");
    assert!(found[0]["message"].as_str().is_some_and(|said| said.contains("acme.json (644)")), "{found:?}");
    of_user(&["context", "delete", "acme"]).with_code(0);
    assert!(doctor(&site, "secrets").is_empty());
}
