//! Confirms reads on a server that does not lead: all who wait share one question to the leader.

use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

use super::forward::Remote;
use crate::failure::Failure;
use crate::limits::READS_WAITING_MAX;
use crate::ready_tasks::after_ready_tasks;

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
    while gather(&mut waiting, &mut round).await {
        let outcome = remote.confirm().await;
        for reader in round.drain(..) {
            // A reader may have gone.
            let _gone = reader.send(outcome.clone());
        }
    }
}

/// Waits for the readers of the next question. Returns false once no more can come.
async fn gather(waiting: &mut mpsc::Receiver<Waiting>, round: &mut Vec<Waiting>) -> bool {
    if waiting.recv_many(round, READS_WAITING_MAX).await == 0 {
        return false;
    }
    // The first of several readers wakes this task, which may run before the others: those that are ready now share its
    // question, and need no second one.
    after_ready_tasks().await;
    while round.len() < READS_WAITING_MAX
        && let Ok(reader) = waiting.try_recv()
    {
        round.push(reader);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn readers_that_are_ready_together_share_a_question() {
        let (sender, mut waiting) = mpsc::channel(READS_WAITING_MAX);
        let rounds = Arc::new(ReadRounds(sender));
        let reader = || {
            let rounds = Arc::clone(&rounds);
            tokio::spawn(async move { rounds.confirm().await })
        };
        // Tasks run in the order in which they are spawned.
        let first = reader();
        let gathered = tokio::spawn(async move {
            let mut round = Vec::new();
            assert!(gather(&mut waiting, &mut round).await);
            round
        });
        let others = [reader(), reader()];
        assert_eq!(gathered.await.unwrap().len(), 3);
        drop((first, others));
    }
}
