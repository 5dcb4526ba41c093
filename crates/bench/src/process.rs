//! The processes that are measured.

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;

/// The longest line that a process announces itself or its result with, bytes.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// How long such a line is waited for.
const LINE_WAIT: Duration = Duration::from_secs(120);
/// How long a process that was sent SIGTERM may take to end: a server drains, and writes what is in memory.
const END_WAIT: Duration = Duration::from_secs(60);
/// The pause between two looks at whether it has ended.
const END_LOOK: Duration = Duration::from_millis(20);

/// A server as its own process; it ends with this value.
pub(crate) struct Server {
    child: Child,
    /// `http://127.0.0.1:PORT`.
    pub(crate) address: String,
    /// The secret of a key with the role agent.
    pub(crate) agent_key: String,
    /// The secret of a key that decides.
    pub(crate) person_key: String,
    /// The address of its metrics.
    metrics: String,
}

#[derive(Deserialize)]
struct Ready {
    address: String,
    #[serde(default)]
    metrics: String,
    #[serde(default)]
    agent_key: String,
    #[serde(default)]
    person_key: String,
}

/// Reads the first line that a process writes to its output.
///
/// A process that writes no line in [`LINE_WAIT`] is killed, which ends the thread that reads, too; of a line without end
/// [`LINE_BYTES_MAX`] are read.
pub(crate) fn line_of(child: &mut Child) -> anyhow::Result<String> {
    let out = child.stdout.take().context("the process has no output")?;
    let (sender, line) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(out.take(LINE_BYTES_MAX)).read_line(&mut line);
        // Nobody receives it if it comes too late.
        let _late = sender.send(read.map(|_| line));
    });
    match line.recv_timeout(LINE_WAIT) {
        Ok(line) => Ok(line?),
        Err(_) => {
            child.kill()?;
            bail!("the process wrote no line in {LINE_WAIT:?}")
        }
    }
}

impl Server {
    /// The product, on a data folder of its own.
    pub(crate) fn switchward(binary: &Path, folder: &Path, shards: Option<u32>) -> anyhow::Result<Self> {
        let mut command = on(binary, folder);
        if let Some(shards) = shards {
            command.arg("--shards").arg(shards.to_string());
        }
        Self::start(command)
    }

    /// The product with a clock that is off by the value in this file.
    pub(crate) fn with_clock(binary: &Path, folder: &Path, off: &Path) -> anyhow::Result<Self> {
        let mut command = on(binary, folder);
        command.arg("--clock-off").arg(off);
        Self::start(command)
    }

    /// The product as a server with this configuration file.
    pub(crate) fn configured(binary: &Path, file: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new(binary);
        command.args(["server", "-o", "json", "--config"]).arg(file);
        Self::start(command)
    }

    /// Starts this program again as the service that stores nothing, to compare with.
    pub(crate) fn echo() -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--echo");
        Self::start(command)
    }

    /// A follower of the bare log, which writes to this file.
    pub(crate) fn bare_follower(file: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--bare-log").arg(file);
        Self::start(command)
    }

    /// The leader of the bare log, which writes to this file and has these followers.
    pub(crate) fn bare_leader(file: &Path, followers: &[&Self]) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--bare-log").arg(file);
        for follower in followers {
            command.arg("--follower").arg(&follower.address);
        }
        Self::start(command)
    }

    fn start(mut command: Command) -> anyhow::Result<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let line = line_of(&mut child)?;
        let ready: Ready =
            serde_json::from_str(&line).with_context(|| format!("the process wrote {line:?}"))?;
        let Ready { address, metrics, agent_key, person_key } = ready;
        Ok(Self { child, address, metrics, agent_key, person_key })
    }

    /// The sum of each of these families on its page of metrics, over all shards.
    pub(crate) async fn counted<const N: usize>(&self, families: [&str; N]) -> anyhow::Result<[u64; N]> {
        let page = self.page("/metrics").await?;
        Ok(families.map(|family| sum(&page, family)))
    }

    /// Requests a path of the metrics listener; returns head and body.
    pub(crate) async fn page(&self, path: &str) -> anyhow::Result<String> {
        let host = self.metrics.strip_prefix("http://").and_then(|at| at.strip_suffix("/metrics"));
        page_at(host.context("the server does not name the address of its metrics")?, path).await
    }

    /// Sends the process a signal, like `-STOP`.
    pub(crate) fn signal(&self, signal: &str) -> anyhow::Result<()> {
        send(self.child.id(), signal)
    }

    /// Ends the process by SIGTERM. A build that records a profile writes it then, and not if it is killed.
    ///
    /// # Errors
    /// It does not end in [`END_WAIT`], and is killed.
    pub(crate) async fn end(mut self) -> anyhow::Result<()> {
        self.signal("-TERM")?;
        let begun = Instant::now();
        while self.child.try_wait()?.is_none() {
            ensure!(begun.elapsed() < END_WAIT, "the process does not end within {END_WAIT:?}");
            sleep(END_LOOK).await;
        }
        Ok(())
    }

    /// Seconds of CPU that the process has used, and its resident memory in bytes.
    pub(crate) fn used(&self) -> anyhow::Result<(f64, u64)> {
        used(self.child.id())
    }
}

/// Sends a process a signal, like `-STOP`.
pub(crate) fn send(pid: u32, signal: &str) -> anyhow::Result<()> {
    let sent = Command::new("kill").args([signal, &pid.to_string()]).status()?;
    ensure!(sent.success(), "failed to send {signal}");
    Ok(())
}

/// Requests a path at a host and port; returns head and body.
pub(crate) async fn page_at(host: &str, path: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(host).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut page = String::new();
    stream.read_to_string(&mut page).await?;
    Ok(page)
}

/// The sum of a family's values on a page of metrics.
fn sum(page: &str, family: &str) -> u64 {
    let of = |line: &str| {
        let (name, value) = line.rsplit_once(' ')?;
        (name.split('{').next() == Some(family)).then(|| value.parse::<f64>().unwrap_or(0.0) as u64)
    };
    page.lines().filter_map(of).sum()
}

/// The product as a development server on the data in this folder.
fn on(binary: &Path, folder: &Path) -> Command {
    let mut command = Command::new(binary);
    command.args(["dev", "--port", "0", "-o", "json", "--data-dir"]).arg(folder.join("data"));
    command.env("SWITCHWARD_CONTEXTS", folder.join("contexts"));
    command
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone then.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// Clock ticks a second and bytes a page of Linux on the machines that this runs on.
const TICKS: f64 = 100.0;
const PAGE_BYTES: u64 = 4096;

/// Seconds of CPU that a process has used, and its resident memory in bytes.
pub(crate) fn used(pid: u32) -> anyhow::Result<(f64, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, after) = stat.rsplit_once(')').context("the process's figures have an unexpected form")?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    let field = |at: usize| fields.get(at).copied().context("the process's figures are too few");
    let ticks = field(11)?.parse::<f64>()? + field(12)?.parse::<f64>()?;
    Ok((ticks / TICKS, field(21)?.parse::<u64>()? * PAGE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::{Server, sum};
    use std::path::Path;
    use std::process::Command;

    /// A process that announces itself like a server and ends after this handler of SIGTERM.
    fn process(handler: &str) -> Server {
        let script =
            format!("trap '{handler}' TERM; echo '{{\"address\":\"\"}}'; while :; do sleep 0.01; done");
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        Server::start(command).unwrap()
    }

    #[tokio::test]
    async fn a_process_that_is_ended_does_first_what_it_does_at_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let (ended, killed) = (folder.path().join("ended"), folder.path().join("killed"));
        let handler = |file: &Path| format!(": > \"{}\"; exit 0", file.display());
        process(&handler(&ended)).end().await.unwrap();
        assert!(ended.exists());
        drop(process(&handler(&killed)));
        assert!(!killed.exists());
    }

    #[test]
    fn a_family_is_the_sum_of_its_shards() {
        let page = "# HELP gone_total rows\ngone_total{shard=\"0\"} 3\ngone_total{shard=\"1\"} 4\n\
                    gone_total_of_others 9\nsyncs_total 5\n";
        assert_eq!((sum(page, "gone_total"), sum(page, "syncs_total"), sum(page, "gone")), (7, 5, 0));
    }
}
