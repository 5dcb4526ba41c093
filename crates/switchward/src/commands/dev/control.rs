//! The control channel of a development cluster: a Unix socket in its folder. A request is one line of JSON, and so is its
//! answer.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::io::{BufRead as _, BufReader as StdReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::link::Mode;
use crate::control::socket;

/// The socket's name in the folder.
const SOCKET: &str = "dev.sock";
/// The longest request, bytes.
const REQUEST_BYTES_MAX: u64 = 4_096;
/// The longest answer, bytes.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;
/// Requests that wait for their turn.
const REQUESTS_MAX: usize = 16;
/// How long a caller may take to send its request.
const REQUEST_MAX: Duration = Duration::from_secs(10);
/// How long a caller waits for the answer: a server may take long to start.
const ANSWER_MAX: Duration = Duration::from_secs(180);

/// What `switchward dev` subcommands ask of a running cluster; one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Request {
    /// What the servers do.
    Status {},
    /// Send a server's process SIGKILL.
    Kill { server: u64 },
    /// Start a server again.
    Start {
        server: u64,
        /// Answer at once. Otherwise the answer comes when the server is ready, and other requests wait until then.
        #[serde(default)]
        at_once: bool,
    },
    /// Stop a server's process for a while.
    Pause { server: u64 },
    /// Continue it.
    Resume { server: u64 },
    /// Cut the links of a server.
    Partition { server: u64 },
    /// Open the links of a server, or of all.
    Heal { server: Option<u64> },
    /// Change one link.
    Link { from: u64, to: u64, mode: Mode },
    /// Advance the clocks by this many milliseconds.
    Advance { by_ms: u64 },
}

/// What a running cluster answers; one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(super) enum Answer {
    /// All or a part of the request was carried out.
    Done {
        /// A sentence for the person who typed the command.
        done: String,
        /// What was not, or not yet.
        missed: Vec<String>,
    },
    /// What the servers do.
    Status { servers: Vec<ServerStatus> },
    /// Nothing was done.
    Refused { message: String },
}

/// What a server does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ServerStatus {
    pub(super) server: u64,
    /// Such as `running` or `killed by signal 9`.
    pub(super) process: String,
    /// The number of the process, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pid: Option<u32>,
    /// Where it listens for clients.
    pub(super) address: String,
    /// Where its metrics are, if it is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) metrics: Option<String>,
    /// The links to and from it that are not open; `open` if all are.
    pub(super) links: String,
}

/// A request with the way to its caller.
pub(super) struct PendingRequest {
    pub(super) request: Request,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// The socket of a cluster that runs.
pub(super) struct Control {
    accepting: JoinHandle<()>,
    path: PathBuf,
}

impl Control {
    /// Listens in this folder. Requests come one after the other. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// A cluster of this folder runs already, or the socket cannot be made.
    pub(super) fn listen(folder: &Path) -> anyhow::Result<(Self, mpsc::Receiver<PendingRequest>)> {
        let other = socket::connect(folder, SOCKET)?;
        anyhow::ensure!(other.is_none(), "a development cluster of {} runs already", folder.display());
        let listener = socket::bind(folder, SOCKET).context("failed to open the control socket")?;
        let (asked, requests) = mpsc::channel(REQUESTS_MAX);
        let accepting = tokio::spawn(accept(listener, asked));
        Ok((Self { accepting, path: folder.join(SOCKET) }, requests))
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.accepting.abort();
        // The next cluster of this folder removes what is left.
        let _stays = std::fs::remove_file(&self.path);
    }
}

async fn accept(listener: UnixListener, asked: mpsc::Sender<PendingRequest>) {
    loop {
        let stream = socket::accept(&listener).await;
        let asked = asked.clone();
        tokio::spawn(async move {
            // A caller that is gone needs no answer.
            let _gone = serve(stream, &asked).await;
        });
    }
}

/// Returns true if a cluster of this folder runs.
pub(super) fn runs(folder: &Path) -> bool {
    socket::connect(folder, SOCKET).is_ok_and(|connected| connected.is_some())
}

async fn serve(mut stream: UnixStream, asked: &mpsc::Sender<PendingRequest>) -> anyhow::Result<()> {
    let mut line = String::new();
    let mut reader = BufReader::new(&mut stream).take(REQUEST_BYTES_MAX);
    timeout(REQUEST_MAX, reader.read_line(&mut line)).await??;
    let answer = match serde_json::from_str(&line) {
        Ok(request) => put(request, asked).await,
        Err(error) => {
            let message = format!("the request is malformed: {error}");
            Answer::Refused { message }
        }
    };
    let mut bytes = serde_json::to_vec(&answer)?;
    bytes.push(b'\n');
    stream.write_all(&bytes).await?;
    Ok(stream.shutdown().await?)
}

/// Waits for the answer of the cluster.
async fn put(request: Request, asked: &mpsc::Sender<PendingRequest>) -> Answer {
    let (answer, answered) = oneshot::channel();
    let stopping = || {
        let message = "the development cluster is stopping".to_owned();
        Answer::Refused { message }
    };
    match asked.send(PendingRequest { request, answer }).await {
        Ok(()) => answered.await.unwrap_or_else(|_| stopping()),
        Err(_) => stopping(),
    }
}

/// Sends a request to the cluster of a folder; `None` if none runs there.
///
/// # Errors
/// The socket cannot be used, or the cluster stops before it answers.
pub(super) fn call(folder: &Path, request: &Request) -> anyhow::Result<Option<Answer>> {
    let connected =
        socket::connect(folder, SOCKET).context("failed to connect to the development cluster")?;
    let Some(mut stream) = connected else { return Ok(None) };
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line).context("the development cluster has ended")?;
    let mut answer = String::new();
    let read = StdReader::new(stream.take(ANSWER_BYTES_MAX)).read_line(&mut answer);
    read.context("the development cluster does not answer")?;
    anyhow::ensure!(!answer.is_empty(), "the development cluster has ended");
    serde_json::from_str(&answer).map(Some).context("the development cluster gave a malformed answer")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers each request with what it contains.
    async fn echo(mut requests: mpsc::Receiver<PendingRequest>) {
        while let Some(PendingRequest { request, answer }) = requests.recv().await {
            let done = serde_json::to_string(&request).unwrap();
            let _gone = answer.send(Answer::Done { done, missed: Vec::new() });
        }
    }

    fn asks(folder: &Path, request: Request) -> tokio::task::JoinHandle<Option<Answer>> {
        let folder = folder.to_owned();
        tokio::task::spawn_blocking(move || call(&folder, &request).unwrap())
    }

    #[tokio::test]
    async fn a_request_is_one_line_and_so_is_its_answer() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(asks(folder.path(), Request::Status {}).await.unwrap(), None, "nobody listens");
        let (control, requests) = Control::listen(folder.path()).unwrap();
        let echoing = tokio::spawn(echo(requests));
        for (request, line) in [
            (Request::Status {}, r#"{"command":"status"}"#),
            (Request::Kill { server: 2 }, r#"{"command":"kill","server":2}"#),
            (Request::Start { server: 1, at_once: true }, r#"{"command":"start","server":1,"at_once":true}"#),
            (Request::Heal { server: None }, r#"{"command":"heal","server":null}"#),
            (
                Request::Link { from: 1, to: 2, mode: "delay:20".parse().unwrap() },
                r#"{"command":"link","from":1,"to":2,"mode":"delay:20"}"#,
            ),
            (Request::Advance { by_ms: 5 }, r#"{"command":"advance","by_ms":5}"#),
        ] {
            let expected = Answer::Done { done: line.to_owned(), missed: Vec::new() };
            assert_eq!(asks(folder.path(), request).await.unwrap(), Some(expected));
        }
        let again = Control::listen(folder.path()).err().unwrap().to_string();
        assert!(again.ends_with("runs already"), "{again}");
        drop(control);
        assert!(!folder.path().join(SOCKET).exists());
        echoing.abort();
    }

    #[tokio::test]
    async fn what_is_no_request_is_refused_and_so_is_one_that_comes_too_late() {
        let folder = tempfile::tempdir().unwrap();
        let (_control, requests) = Control::listen(folder.path()).unwrap();
        drop(requests);
        let stopping = Answer::Refused { message: "the development cluster is stopping".to_owned() };
        assert_eq!(asks(folder.path(), Request::Status {}).await.unwrap(), Some(stopping));
        for line in ["\n", "{}\n", "{\"command\":\"kill\"}\n", "{\"command\":\"status\",\"more\":1}\n"] {
            let mut stream = UnixStream::connect(folder.path().join(SOCKET)).await.unwrap();
            stream.write_all(line.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            let Answer::Refused { message } = serde_json::from_str(&answer).unwrap() else {
                panic!("{answer}")
            };
            assert!(message.starts_with("the request is malformed"), "{message}");
        }
    }
}
