//! The Redis of a development cluster: a process of its own, which forgets everything when it ends.
//!
//! A development server alone delivers within its process. Several servers need a transport that they share. It listens on
//! a Unix socket in a folder that only its user may enter: another user of the machine could take over a port when Redis
//! ends, and read the password that the servers send.

use anyhow::Context as _;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::future::pending;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use switchward_store::write_secret;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::logs::Lines;
use super::member::end_with_parent;
use crate::control::socket::PATH_BYTES_MAX;
use crate::exit::Exit;
use crate::outbound::RedisConfig;
use crate::program::this_program;

/// The program, found by `PATH`.
const PROGRAM: &str = "redis-server";
/// The oldest major version that can be used.
const MAJOR_MIN: u32 = 7;
/// A start that takes longer has failed.
const START_MAX: Duration = Duration::from_secs(30);
/// What it prints when it can be used, in lower case. In two parts: the words are those of Redis, and none for people.
const READY: &str = concat!("ready to ", "accept connections");
/// The socket's name.
const SOCKET: &str = "redis.sock";

/// A Redis that was started. Dropping it kills it.
pub(super) struct LocalBus {
    /// `None` if it has ended.
    child: Option<Child>,
    /// The folder of the socket, if it is not in that of the cluster. It stays after the end of Redis: nobody else may make
    /// a socket of this path while servers connect to it.
    _scratch: Option<TempDir>,
}

impl LocalBus {
    /// Starts a Redis with its files in this folder, and waits until it can be used.
    ///
    /// # Errors
    /// A file cannot be written, or it does not start.
    pub(super) async fn start(folder: &Path) -> anyhow::Result<(Self, RedisConfig)> {
        let folder = folder.join("redis");
        fs::create_dir_all(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
        // The socket's URL can hold no `..`.
        let folder = folder.canonicalize()?;
        let (socket, scratch) = socket(&folder)?;
        let (config, password_file) = (folder.join("redis.conf"), folder.join("password"));
        let password = format!("{:032x}", rand::random::<u128>());
        write_secret(&password_file, password.as_bytes())?;
        write_secret(&config, configuration(&folder, &socket, &password).as_bytes())?;
        let mut child = Command::new(this_program()?)
            .args(["dev", "bus"])
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .context("failed to start Redis")?;
        let lines = Lines::of(child.stdout.take().context("Redis has no output")?);
        timeout(START_MAX, until_ready(lines)).await.context("Redis was not ready in time")??;
        let config = RedisConfig { url: url_of(&socket), password_file: Some(password_file), prefix: None };
        Ok((Self { child: Some(child), _scratch: scratch }, config))
    }

    /// Waits until it has ended by itself, and returns how; waits forever if that was returned before.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub(super) async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        let Some(child) = &mut self.child else { return pending().await };
        let ended = child.wait().await;
        self.child = None;
        ended
    }
}

/// The path of the socket: in this folder, which is closed to others, or in a temporary one if the path is too long.
fn socket(folder: &Path) -> anyhow::Result<(PathBuf, Option<TempDir>)> {
    let owners_only = Permissions::from_mode(0o700);
    fs::set_permissions(folder, owners_only.clone())
        .with_context(|| format!("failed to close {} to others", folder.display()))?;
    let path = folder.join(SOCKET);
    if path.as_os_str().len() <= PATH_BYTES_MAX {
        return Ok((path, None));
    }
    let scratch = tempfile::Builder::new().prefix("switchward-dev-").permissions(owners_only).tempdir()?;
    let path = scratch.path().canonicalize()?.join(SOCKET);
    anyhow::ensure!(
        path.as_os_str().len() <= PATH_BYTES_MAX,
        "the path {} is too long for a socket; set TMPDIR to a folder with a shorter path",
        path.display()
    );
    Ok((path, Some(scratch)))
}

/// The URL of a socket by its path, which is absolute.
fn url_of(socket: &Path) -> String {
    let mut url = "redis+unix://".to_owned();
    for &byte in socket.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            write!(url, "%{byte:02X}").expect("writing into a string cannot fail");
        }
    }
    url
}

fn configuration(folder: &Path, socket: &Path, password: &str) -> String {
    let mut text = String::new();
    for (key, value) in [
        ("port", "0".to_owned()),
        ("unixsocket", quoted(socket)),
        ("unixsocketperm", "600".to_owned()),
        ("requirepass", password.to_owned()),
        ("dir", quoted(folder)),
        ("save", "\"\"".to_owned()),
        ("appendonly", "no".to_owned()),
        ("maxmemory-policy", "noeviction".to_owned()),
        ("daemonize", "no".to_owned()),
        ("logfile", "\"\"".to_owned()),
    ] {
        writeln!(text, "{key} {value}").expect("writing into a string cannot fail");
    }
    text
}

/// A path as Redis reads it.
fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\""))
}

/// Waits until Redis is ready, then reads what else it prints, so that it never waits for a reader.
async fn until_ready(
    mut lines: Lines<impl tokio::io::AsyncRead + Unpin + Send + 'static>,
) -> anyhow::Result<()> {
    let mut last = String::new();
    while let Some(line) = lines.next().await {
        if line.to_ascii_lowercase().contains(READY) {
            tokio::spawn(async move { while lines.next().await.is_some() {} });
            return Ok(());
        }
        last = line;
    }
    anyhow::bail!("Redis ended before it was ready: {last}")
}

/// Checks that a Redis can be started.
///
/// # Errors
/// It is not installed, or too old.
pub(super) fn check() -> Result<(), Exit> {
    let printed = std::process::Command::new(PROGRAM).arg("--version").stdin(Stdio::null()).output();
    let why = match printed {
        Err(error) => anyhow::anyhow!("{PROGRAM} cannot be started: {error}"),
        Ok(printed) => match major(&String::from_utf8_lossy(&printed.stdout)) {
            Some(major) if major >= MAJOR_MIN => return Ok(()),
            Some(major) => anyhow::anyhow!("{PROGRAM} is version {major}"),
            None => anyhow::anyhow!("{PROGRAM} has no version that can be read"),
        },
    };
    let message =
        format!("the servers of a cluster share a Redis of version {MAJOR_MIN} or newer, and {why}");
    Err(Exit::failed(anyhow::anyhow!(message))
        .next(format!("install Redis {MAJOR_MIN} or newer, such as by `apt install redis-server`"))
        .next("--redis redis://HOST:PORT    uses a Redis that runs already"))
}

/// The major version in `Redis server v=7.0.15 sha=...`.
fn major(printed: &str) -> Option<u32> {
    let (_, version) = printed.split_once("v=")?;
    version.split('.').next()?.parse().ok()
}

/// Becomes the Redis of this configuration.
///
/// # Errors
/// It cannot be started.
pub(super) fn run(file: &Path) -> Result<(), Exit> {
    end_with_parent();
    let error = std::process::Command::new(PROGRAM).arg(file).exec();
    Err(anyhow::Error::from(error).context(format!("failed to start {PROGRAM}")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read() {
        assert_eq!(major("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64"), Some(7));
        assert_eq!(major("Valkey server v=8.1.0"), Some(8));
        assert_eq!((major(""), major("v=x")), (None, None));
    }

    #[test]
    fn a_folder_with_unusual_characters_is_quoted() {
        let text = configuration(Path::new("/tmp/a \"b\""), Path::new("/tmp/a \"b\"/x.sock"), "secret");
        assert!(text.contains("\ndir \"/tmp/a \\\"b\\\"\"\n"), "{text}");
        let listens = "port 0\nunixsocket \"/tmp/a \\\"b\\\"/x.sock\"\nunixsocketperm 600\n";
        assert!(text.starts_with(listens) && text.contains("\nrequirepass secret\n"), "{text}");
    }

    #[test]
    fn the_socket_is_in_a_folder_of_its_own_user_and_its_path_is_short() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (path, scratch) = socket(folder.path()).unwrap();
        assert_eq!((path.parent(), scratch.is_none()), (Some(folder.path()), true));
        assert_eq!(mode(folder.path()), 0o700);
        let long = folder.path().join("a".repeat(PATH_BYTES_MAX));
        fs::create_dir(&long).unwrap();
        let (path, scratch) = socket(&long).unwrap();
        let scratch = scratch.unwrap();
        assert!(
            path.starts_with(scratch.path().canonicalize().unwrap())
                && path.as_os_str().len() <= PATH_BYTES_MAX,
            "{path:?}"
        );
        assert_eq!(mode(scratch.path()), 0o700);
    }

    #[test]
    fn the_url_of_a_socket_can_be_read_by_the_client() {
        let url = url_of(Path::new("/tmp/a b#?%/\u{e4}.sock"));
        assert_eq!(url, "redis+unix:///tmp/a%20b%23%3F%25/%C3%A4.sock");
    }

    #[tokio::test]
    async fn a_redis_that_ends_early_is_reported_with_its_last_line() {
        let error = until_ready(Lines::of(&b"a\nBad directive\n"[..])).await.unwrap_err().to_string();
        assert_eq!(error, "Redis ended before it was ready: Bad directive");
        for line in [
            "1:M * The server is now ready to accept connections at /tmp/redis.sock\n",
            "1:M * Ready to accept connections unix\n",
        ] {
            until_ready(Lines::of(line.as_bytes())).await.unwrap();
        }
    }
}
