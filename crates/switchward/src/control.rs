//! The control socket of a server: a Unix socket in its data folder, for everybody who may enter that folder.
//!
//! Requests that concern the data of all tenants are made here and not by the API: a user who can enter
//! the data folder could read it anyway, and no key opens more than one tenant. A request is one line of JSON, the answer a
//! sequence of frames.

mod frames;
pub(crate) mod socket;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use std::time::Duration;
use switchward_shard::{Cluster, SealedUnder};
use switchward_state::seal::{NoRingKey, RingKeyId};
use switchward_store::DataDir;
use tokio::task::JoinHandle;

pub(crate) use frames::{Frame, Frames};

use crate::backup::{self, PROGRAM};

/// The socket's name in the data folder.
const SOCKET: &str = "control.sock";
/// The longest line that is read as a request, bytes.
const REQUEST_BYTES_MAX: u64 = 4_096;
/// How long either side waits for the other: a disk on one side may be slow.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a command on the same machine asks of a running server; one line of JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// The files of a backup.
    Backup,
    /// Which keys there are, and what is sealed under each.
    Secrets,
}

/// The keys of a server, and what its rows hold under each.
pub(crate) struct Secrets {
    /// The current one first.
    pub(crate) ring: Vec<RingKeyId>,
    pub(crate) rows: SealedUnder,
}

/// The wire form of [`Secrets`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SecretsAnswer {
    ring: Vec<String>,
    rows: Vec<(String, usize)>,
}

impl SecretsAnswer {
    /// Reads an answer.
    ///
    /// # Errors
    /// It is malformed, or contains an invalid key id.
    pub(crate) fn read(json: &[u8]) -> anyhow::Result<Secrets> {
        let answer: Self = serde_json::from_slice(json)?;
        let ring = answer.ring.iter().map(|id| id.parse()).collect::<Result<_, _>>()?;
        let row = |(id, count): (String, usize)| Ok::<_, NoRingKey>((id.parse()?, count));
        Ok(Secrets { ring, rows: answer.rows.into_iter().map(row).collect::<Result<_, _>>()? })
    }
}

/// Looks at the keys of a server, and at what its rows hold under each.
///
/// # Errors
/// A shard does not answer.
pub(crate) async fn secrets(cluster: &Cluster) -> anyhow::Result<Secrets> {
    Ok(Secrets { ring: cluster.ring().ids(), rows: cluster.sealed_under().await? })
}

/// The socket of a server that runs.
pub(crate) struct Control {
    accepting: JoinHandle<()>,
    path: PathBuf,
    stop: Arc<AtomicBool>,
}

impl Control {
    /// Listens in this data folder. A server works without its socket, so a failure is logged and not returned.
    pub(crate) fn listen(data: &DataDir, cluster: &Cluster) -> Option<Self> {
        match socket::bind(data.path(), SOCKET) {
            Ok(listener) => Some(Self::accept(listener, data.clone(), cluster.clone())),
            Err(error) => {
                tracing::warn!(%error, "failed to open the control socket: stop the server to back it up");
                None
            }
        }
    }

    fn accept(listener: tokio::net::UnixListener, data: DataDir, cluster: Cluster) -> Self {
        let (path, stop) = (data.path().join(SOCKET), Arc::new(AtomicBool::new(false)));
        let (stopping, busy) = (Arc::clone(&stop), Arc::new(tokio::sync::Mutex::new(())));
        let accepting = tokio::spawn(async move {
            loop {
                let stream = socket::accept(&listener).await;
                let (data, cluster) = (data.clone(), cluster.clone());
                let (stop, busy) = (Arc::clone(&stopping), Arc::clone(&busy));
                tokio::spawn(async move {
                    if let Err(error) = answer(stream, &data, &cluster, stop, &busy).await {
                        tracing::warn!(
                            error = format!("{error:#}"),
                            "a request at the control socket failed"
                        );
                    }
                });
            }
        });
        Self { accepting, path, stop }
    }

    /// Accepts nothing more, and ends what is under way.
    pub(crate) fn close(self) {
        self.stop.store(true, Ordering::Release);
        self.accepting.abort();
        // The next server of this folder removes what is left.
        let _ignored = std::fs::remove_file(&self.path);
    }
}

/// Asks the server of a data folder; `None` if no server listens there.
///
/// # Errors
/// The request cannot be sent.
pub(crate) fn ask(folder: &Path, request: &Request) -> anyhow::Result<Option<Frames<BufReader<UnixStream>>>> {
    let connected = socket::connect(folder, SOCKET);
    let Some(mut stream) = connected.context("failed to connect to the server's control socket")? else {
        return Ok(None);
    };
    stream.set_read_timeout(Some(PATIENCE))?;
    send(&mut stream, request)?;
    Ok(Some(Frames::new(BufReader::new(stream))))
}

fn send(stream: &mut UnixStream, request: &Request) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    io::Write::write_all(stream, &line).context("the server closed the connection")
}

async fn answer(
    stream: tokio::net::UnixStream,
    data: &DataDir,
    cluster: &Cluster,
    stop: Arc<AtomicBool>,
    busy: &tokio::sync::Mutex<()>,
) -> anyhow::Result<()> {
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let from = stream.try_clone()?;
    let request = tokio::task::spawn_blocking(move || read(from)).await??;
    let mut sink = frames::Sink::new(stream, stop);
    let Ok(_turn) = busy.try_lock() else {
        let message = "another request is in progress";
        return sink.fail(message).map_err(Into::into);
    };
    let done = match request {
        Request::Backup => back_up(data, cluster, &mut sink).await,
        Request::Secrets => send_secrets(cluster, &mut sink).await,
    };
    if let Err(error) = &done {
        // The caller may be gone.
        let _ignored = sink.fail(&format!("{error:#}"));
    }
    done
}

fn read(stream: UnixStream) -> anyhow::Result<Request> {
    let mut line = String::new();
    BufReader::new(io::Read::take(stream, REQUEST_BYTES_MAX)).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

async fn send_secrets(cluster: &Cluster, sink: &mut frames::Sink) -> anyhow::Result<()> {
    let Secrets { ring, rows } = secrets(cluster).await?;
    let ring = ring.iter().map(ToString::to_string).collect();
    let rows = rows.into_iter().map(|(id, count)| (id.to_string(), count)).collect();
    Ok(sink.answer(&serde_json::to_vec(&SecretsAnswer { ring, rows })?)?)
}

async fn back_up(data: &DataDir, cluster: &Cluster, sink: &mut frames::Sink) -> anyhow::Result<()> {
    let (of, cut) = backup::begin(cluster).await?;
    let (data, mut to) = (data.clone(), sink.clone_of()?);
    let written = tokio::task::spawn_blocking(move || {
        let manifest = cut.write(&data, of, &mut to)?;
        to.manifest(&manifest)?;
        anyhow::Ok(manifest)
    });
    let manifest = written.await??;
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    tracing::info!(bytes, files = manifest.files.len(), program = PROGRAM, "a backup was taken");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    #[test]
    fn a_server_that_goes_away_before_the_request_is_a_failure() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let exit = Exit::failed(send(&mut ours, &Request::Backup).unwrap_err());
        assert!(exit.message().starts_with("the server closed the connection"), "{exit:?}");
    }
}
