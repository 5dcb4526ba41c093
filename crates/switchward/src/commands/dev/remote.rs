//! The development cluster of another process, for a command of this program that has started it.

use std::path::PathBuf;
use tokio::task::spawn_blocking;

use super::control::{Answer, Request, call};
use super::logs::says_ready;
use crate::exit::Exit;

/// A development cluster that another process runs.
#[derive(Debug, Clone)]
pub(in crate::commands) struct RemoteCluster {
    folder: PathBuf,
}

impl RemoteCluster {
    /// The cluster of this data folder.
    pub(in crate::commands) fn of(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns true if a line that the process logs says that this server is ready for the first time.
    pub(in crate::commands) fn says_ready(line: &str, server: u64) -> bool {
        says_ready(line, server)
    }

    /// Kills a server, as `dev kill` does.
    ///
    /// # Errors
    /// The cluster does not run, or refuses.
    pub(in crate::commands) async fn kill(&self, server: u64) -> Result<(), Exit> {
        self.ask(Request::Kill { server }).await.map(drop)
    }

    /// Starts a server again and waits until it is ready, as `dev start` does.
    ///
    /// # Errors
    /// The cluster does not run, or refuses, or the server does not start.
    pub(in crate::commands) async fn start(&self, server: u64) -> Result<(), Exit> {
        self.ask(Request::Start { server, at_once: false }).await.map(drop)
    }

    /// The numbers of the processes of the servers that run.
    ///
    /// # Errors
    /// The cluster does not run.
    pub(in crate::commands) async fn pids(&self) -> Result<Vec<u32>, Exit> {
        match self.ask(Request::Status {}).await? {
            Answer::Status { servers } => Ok(servers.iter().filter_map(|one| one.pid).collect()),
            Answer::Done { .. } | Answer::Refused { .. } => Ok(Vec::new()),
        }
    }

    async fn ask(&self, request: Request) -> Result<Answer, Exit> {
        let folder = self.folder.clone();
        let answer = spawn_blocking(move || call(&folder, &request)).await.map_err(anyhow::Error::from)??;
        match answer {
            None => Err(anyhow::anyhow!("the servers of the demo do not run any more").into()),
            Some(Answer::Refused { message }) => Err(Exit::conflict(message)),
            Some(answer) => Ok(answer),
        }
    }
}
