//! One entry at a time: from a decision to a committed entry.

use openraft::{
    error::ClientWriteError, impls::ProgressResponder, raft::ClientWriteResult,
    type_config::alias::OneshotReceiverOf, vote::leader_id_std::CommittedLeaderId,
};
use std::time::Duration;

use crate::group::Group;
use crate::leadership::Leadership;
use crate::limits::{COMMIT_WAIT, LEADER_LOOK};
use crate::types::{Payload, TypeConfig};

type Outcome = OneshotReceiverOf<TypeConfig, ClientWriteResult<TypeConfig>>;

/// Writes a group's entries, one after the other.
pub(crate) struct Proposer {
    group: Group,
    /// An entry that its callers no longer wait for, with its term. Nothing may be decided in that term before it
    /// is applied, because the rows lack it.
    unsettled: Option<(u64, Outcome)>,
}

/// Why an entry was not seen to be applied.
pub(crate) enum Unwritten {
    /// It may be committed or not.
    Unknown,
    /// It was refused before it was appended: it is never committed.
    Refused,
    /// The group has stopped; the entry may be committed or not.
    Stopped(String),
}

impl Proposer {
    pub(crate) fn new(group: Group) -> Self {
        Self { group, unsettled: None }
    }

    /// Writes an entry in this term and in no other: a decision is good only on the rows that it was made on.
    /// Returns when it is applied here.
    pub(crate) async fn write(
        &mut self,
        leadership: &Leadership,
        term: u64,
        entry: Payload,
    ) -> Result<(), Unwritten> {
        let (responder, outcome) = ProgressResponder::complete_only();
        let request = self.group.raft.write(entry).with_leader(CommittedLeaderId::new(term));
        request.responder(responder).await.map_err(|error| Unwritten::Stopped(error.to_string()))?;
        self.wait(leadership, term, outcome, COMMIT_WAIT).await
    }

    /// Waits for the entry that was given up on, if it can still be applied in this term.
    pub(crate) async fn settle(&mut self, leadership: &Leadership, term: u64) -> Result<(), Unwritten> {
        if planted!(UnsettledForgotten) {
            self.unsettled = None;
        }
        match self.unsettled.take() {
            Some((then, outcome)) if then == term => self.wait(leadership, term, outcome, LEADER_LOOK).await,
            // In a later term, the barrier at its beginning has settled it.
            Some(_) | None => Ok(()),
        }
    }

    async fn wait(
        &mut self,
        leadership: &Leadership,
        term: u64,
        mut outcome: Outcome,
        patience: Duration,
    ) -> Result<(), Unwritten> {
        let mut waited = Duration::ZERO;
        loop {
            match tokio::time::timeout(LEADER_LOOK, &mut outcome).await {
                Ok(Ok(result)) => return settled(result),
                Ok(Err(_)) => return Err(Unwritten::Stopped("the group has stopped".into())),
                Err(_) => waited += LEADER_LOOK,
            }
            // A single voter waits only for its own disk.
            if self.group.members.is_alone() {
                continue;
            }
            if leadership.current() != Some(term) {
                return Err(Unwritten::Unknown);
            }
            if waited >= patience {
                self.unsettled = Some((term, outcome));
                return Err(Unwritten::Unknown);
            }
        }
    }
}

fn settled(result: ClientWriteResult<TypeConfig>) -> Result<(), Unwritten> {
    match result {
        Ok(_) => Ok(()),
        Err(ClientWriteError::ForwardToLeader(_)) => Err(Unwritten::Refused),
        // Another leader's entry replaced it here; a third server that has it may still commit it, and a snapshot that
        // replaced it may hold it.
        Err(ClientWriteError::LogEntryDiscarded(_)) => Err(Unwritten::Unknown),
        Err(
            error @ (ClientWriteError::ChangeMembershipError(_) | ClientWriteError::PreconditionFailed(_)),
        ) => Err(Unwritten::Stopped(error.to_string())),
    }
}
