//! Confirms reads on a server that does not lead: all who wait share one question to the leader.

use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

use super::forward::Remote;
use crate::failure::Failure;
use crate::limits::READS_WAITING_MAX;

type Waiting = oneshot::Sender<Result<(), Failure>>;

/// The readers of one shard who wait for a confirmation. A reader is answered by a question that was asked after they
/// came, never by one that was under way.
pub(crate) struct ReadRounds(mpsc::Sender<Waiting>);

impl ReadRounds {
    /// Starts the task that asks. It ends with this handle.
    pub(crate) fn start(remote: Arc<Remote>) -> Self {
        let (sender, waiting) = mpsc::channel(READS_WAITING_MAX);
        tokio::spawn(work(remote, waiting));
        Self(sender)
    }

    /// Returns when this server has applied everything that was acknowledged before the call.
    ///
    /// # Errors
    /// No leader is known, or the leader does not answer; [`Failure::Overloaded`] beyond [`READS_WAITING_MAX`] readers.
    pub(crate) async fn confirm(&self) -> Result<(), Failure> {
        let (answer, wait) = oneshot::channel();
        self.0.try_send(answer).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Failure::Overloaded,
            mpsc::error::TrySendError::Closed(_) => Failure::Stopped,
        })?;
        wait.await.unwrap_or(Err(Failure::Stopped))
    }
}

async fn work(remote: Arc<Remote>, mut waiting: mpsc::Receiver<Waiting>) {
    let mut round = Vec::new();
    while waiting.recv_many(&mut round, READS_WAITING_MAX).await > 0 {
        let outcome = remote.confirm().await;
        for reader in round.drain(..) {
            // A reader may have gone.
            let _gone = reader.send(outcome.clone());
        }
    }
}
