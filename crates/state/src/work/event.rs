//! Events about open items: work for workers, waits and timers.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{OpenId, RunId, Time};

use crate::work::{OpenItemBody, WorkProblem};

/// An event about open items: work for workers, waits and timers. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(flat)]
pub enum WorkEvent {
    /// Work, a wait or a timer is open.
    #[n(0)]
    Opened {
        /// Its number.
        #[n(0)]
        item: OpenId,
        /// The run that opens it.
        #[n(1)]
        run: RunId,
        /// What is done, waited for, or due.
        #[n(2)]
        body: OpenItemBody,
        /// The trace that it belongs to.
        #[n(3)]
        trace: Option<String>,
    },
    /// Work is done, a wait is over, a timer has fired.
    #[n(1)]
    Closed {
        /// Its number.
        #[n(0)]
        item: OpenId,
        /// The run that opened it.
        #[n(1)]
        run: RunId,
    },
    /// A worker has work, for a time.
    #[n(2)]
    Leased {
        /// The work.
        #[n(0)]
        item: OpenId,
        /// The name that the worker gave itself.
        #[n(1)]
        worker: String,
        /// Until when.
        #[n(2)]
        until: Time,
        /// Whether the worker had it before, and keeps it.
        #[n(3)]
        again: bool,
        /// The subject of the key that the worker has taken it with.
        #[n(4)]
        by: String,
    },
    /// Work is nobody's again.
    #[n(3)]
    Released {
        /// The work.
        #[n(0)]
        item: OpenId,
        /// Whether its lease lapsed.
        #[n(1)]
        lapsed: bool,
    },
    /// Work is done, for good or ill.
    #[n(4)]
    Done {
        /// The work.
        #[n(0)]
        item: OpenId,
        /// The run that opened it.
        #[n(1)]
        run: RunId,
        /// The name that the worker gave itself.
        #[n(2)]
        worker: String,
        /// What was wrong, if something was.
        #[n(3)]
        wrong: Option<WorkProblem>,
        /// Whether it may have been done all the same.
        #[cbor(n(4), default, skip_if = "is_known")]
        unknown: bool,
    },
}

/// Returns true if the flag is not set: then it is not stored.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as the derived code hands it in")]
fn is_known(unknown: &&bool) -> bool {
    !**unknown
}

impl WorkEvent {
    /// The run that the event is about; `None` if it is about who holds the work.
    #[must_use]
    pub fn run(&self) -> Option<RunId> {
        match self {
            Self::Opened { run, .. } | Self::Done { run, .. } => Some(*run),
            Self::Closed { .. } | Self::Leased { .. } | Self::Released { .. } => None,
        }
    }

    /// Returns true if the event changes which work can be taken.
    #[must_use]
    pub fn changes_work(&self) -> bool {
        match self {
            Self::Opened { body, .. } => match body {
                OpenItemBody::Work(_) => true,
                OpenItemBody::Wait(_) | OpenItemBody::Timer(_) => false,
            },
            Self::Closed { .. } | Self::Released { .. } | Self::Done { .. } => true,
            Self::Leased { .. } => false,
        }
    }
}
