//! Confirms reads on a server that has others.

use std::sync::Arc;

use super::forward::Remote;
use crate::failure::Failure;
use crate::leadership::Leadership;
use crate::readers::Readers;

/// The readers of one shard who wait for a confirmation, where this server leads and where it does not.
pub(crate) struct ReadRounds {
    /// Those of all servers. The answer is the index of the entry that they must have applied.
    here: Readers<u64>,
    elsewhere: Readers<()>,
}

impl ReadRounds {
    /// Starts the tasks that ask. They end with this handle.
    pub(crate) fn start(leadership: Arc<Leadership>, remote: Arc<Remote>) -> Self {
        let here = move || {
            let leadership = Arc::clone(&leadership);
            async move { leadership.read_index().await }
        };
        let elsewhere = move || {
            let remote = Arc::clone(&remote);
            async move { remote.confirm().await }
        };
        // A question to another server is followed by the next one, which all share who came meanwhile. A question of
        // the leader that finds no majority ends with the lease, and nobody waits for two of them.
        Self { here: Readers::asking_at_once(here), elsewhere: Readers::asking_in_turn(elsewhere) }
    }

    /// Returns when the rows hold everything that was acknowledged before the call, if this server leads. The result is the
    /// index of the entry that a reader on another server must have applied.
    ///
    /// # Errors
    /// It does not lead, or no majority confirms it.
    pub(crate) async fn confirm_here(&self) -> Result<u64, Failure> {
        self.here.confirm().await
    }

    /// Returns when this server has applied everything that was acknowledged before the call, if another one leads.
    ///
    /// # Errors
    /// No leader is known, or the leader does not answer.
    pub(crate) async fn confirm_elsewhere(&self) -> Result<(), Failure> {
        self.elsewhere.confirm().await
    }
}
