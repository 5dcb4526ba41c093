//! Which of a session's active runs a command is about, and those that are active.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{OpenId, RunId};

/// Which of a session's active runs a command is about. All that it names must fit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct RunAddress {
    /// Work that is open in the run.
    #[n(0)]
    pub work: Option<OpenId>,
    /// The run's number in the session.
    #[n(1)]
    pub run: Option<RunId>,
    /// The name of the node that the run stands at, or the run's own name, such as `check.legal`.
    #[n(2)]
    pub node: Option<String>,
}

/// The runs of a session that are active side by side: those that wait for no other run. Empty if one alone is active.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct ActiveRuns {
    /// In the order of their slots; of more than [`ACTIVE_RUNS_SHOWN_MAX`](crate::limits::ACTIVE_RUNS_SHOWN_MAX), the
    /// first.
    #[n(0)]
    pub runs: Vec<ActiveRun>,
    /// How many there are.
    #[n(1)]
    pub count: u32,
}

impl ActiveRuns {
    /// Returns true if no runs are active side by side.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// A run that is active beside others.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ActiveRun {
    /// Its number in the session, from 1.
    #[n(0)]
    pub run: RunId,
    /// The run that waits for it, if one does.
    #[n(1)]
    pub parent: Option<RunId>,
    /// What it is a run of.
    #[n(2)]
    pub definition: String,
    /// The definition's version, from 1.
    #[n(3)]
    pub version: u32,
    /// The name of the node that it stands at.
    #[n(4)]
    pub state: String,
    /// Its name as one of several children of its parent's machine, such as `check.legal`.
    #[n(5)]
    pub label: Option<String>,
}
