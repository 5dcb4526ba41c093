//! The Redis of a development cluster: a process of its own, which forgets everything when it ends.
//!
//! A development server alone delivers within its process. Several servers need a transport that they share.

use anyhow::Context as _;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use switchward_store::write_secret;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::logs::Lines;
use super::member::end_with_parent;
use crate::exit::Exit;
use crate::outbound::RedisConfig;

/// The program.
const PROGRAM: &str = "redis-server";
/// The oldest major version that can be used.
const MAJOR_MIN: u32 = 7;
/// A start that takes longer has failed.
const START_MAX: Duration = Duration::from_secs(30);
/// What it prints when it can be used.
const READY: &str = "Ready to accept connections";

/// A Redis that runs. Dropping it kills it.
pub(super) struct LocalBus(Child);

impl LocalBus {
    /// Starts a Redis with its files in this folder, and waits until it can be used.
    ///
    /// # Errors
    /// A file cannot be written, or it does not start.
    pub(super) async fn start(folder: &Path, address: SocketAddr) -> anyhow::Result<(Self, RedisConfig)> {
        let folder = folder.join("redis");
        std::fs::create_dir_all(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
        let (config, password_file) = (folder.join("redis.conf"), folder.join("password"));
        let password = format!("{:032x}", rand::random::<u128>());
        write_secret(&password_file, password.as_bytes())?;
        write_secret(&config, configuration(&folder, address, &password).as_bytes())?;
        let mut child = Command::new(std::env::current_exe().context("failed to find this program")?)
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
        let url = format!("redis://{address}");
        Ok((Self(child), RedisConfig { url, password_file: Some(password_file), prefix: None }))
    }

    /// Waits until it has ended by itself. It can be called again and again.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub(super) async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        self.0.wait().await
    }
}

fn configuration(folder: &Path, address: SocketAddr, password: &str) -> String {
    let mut text = String::new();
    let folder = folder.to_string_lossy();
    for (key, value) in [
        ("bind", address.ip().to_string()),
        ("port", address.port().to_string()),
        ("requirepass", password.to_owned()),
        ("dir", format!("\"{}\"", folder.replace('\\', "\\\\").replace('"', "\\\""))),
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

/// Waits until Redis is ready, then reads what else it prints, so that it never waits for a reader.
async fn until_ready(
    mut lines: Lines<impl tokio::io::AsyncRead + Unpin + Send + 'static>,
) -> anyhow::Result<()> {
    let mut last = String::new();
    while let Some(line) = lines.next().await {
        if line.contains(READY) {
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
        Err(error) => format!("{PROGRAM} cannot be started: {error}"),
        Ok(printed) => match major(&String::from_utf8_lossy(&printed.stdout)) {
            Some(major) if major >= MAJOR_MIN => return Ok(()),
            Some(major) => format!("{PROGRAM} is version {major}"),
            None => format!("{PROGRAM} has no version that can be read"),
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
        let text = configuration(Path::new("/tmp/a \"b\""), "127.0.0.1:10001".parse().unwrap(), "secret");
        assert!(text.contains("\ndir \"/tmp/a \\\"b\\\"\"\n"), "{text}");
        assert!(text.contains("port 10001\nrequirepass secret\n"), "{text}");
    }

    #[tokio::test]
    async fn a_redis_that_ends_early_is_reported_with_its_last_line() {
        let error = until_ready(Lines::of(&b"a\nBad directive\n"[..])).await.unwrap_err().to_string();
        assert_eq!(error, "Redis ended before it was ready: Bad directive");
        until_ready(Lines::of(&b"1:M * Ready to accept connections tcp\n"[..])).await.unwrap();
    }
}
