//! What goes wrong inside a run: facts, which the crate `messages` puts into words.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Ending, FaultCode, Port};

use crate::run::{OutboxExcess, RecipientsProblem, ResultProblem, WriteProblem};
use crate::work::WorkFailure;

/// Something that has gone wrong in a run, or in a run that it has called.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Fault {
    /// What has gone wrong first.
    #[n(0)]
    pub cause: FaultCause,
    /// The runs that have ended because of it before it reached this one, the last of them first; at most
    /// [`CALL_DEPTH_MAX`](crate::limits::CALL_DEPTH_MAX). Empty if the cause is in this run.
    #[cbor(n(1), default, skip_if = "Vec::is_empty")]
    pub ended: Vec<EndedRun>,
}

/// A run that was called and has not completed.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct EndedRun {
    /// The name of its definition.
    #[n(0)]
    pub definition: String,
    /// Its outcome, and the reason if there is one.
    #[n(1)]
    pub ending: Ending,
}

/// What has gone wrong. A diagnostic is a text of a library or of the expression language.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum FaultCause {
    /// More than [`OPS_MAX`](crate::limits::OPS_MAX) operations run in one act.
    #[n(0)]
    TooManyOperations,
    /// An operation transforms a value that the data do not have.
    #[n(1)]
    NoValue {
        /// The path in the data.
        #[n(0)]
        path: String,
    },
    /// An expression of an operation cannot be evaluated.
    #[n(2)]
    Expression {
        /// What the expression language reports.
        #[n(0)]
        diagnostic: String,
    },
    /// An operation writes a value that does not fit into the data.
    #[n(3)]
    Write(#[n(0)] WriteProblem),
    /// The operations of one act write more than
    /// [`WRITTEN_BYTES_MAX`](crate::limits::WRITTEN_BYTES_MAX).
    #[n(4)]
    WrittenBytes,
    /// An operation goes through a value that is no list.
    #[n(5)]
    NoList {
        /// The path of the value in the data.
        #[n(0)]
        path: String,
    },
    /// An operation goes through a list of more than [`ITEMS_MAX`](crate::limits::ITEMS_MAX) items.
    #[n(6)]
    TooManyItems {
        /// The path of the list in the data.
        #[n(0)]
        path: String,
    },
    /// One turn writes more than [`TURN_BYTES_MAX`](crate::limits::TURN_BYTES_MAX).
    #[n(7)]
    TurnBytes,
    /// The input of work is larger than
    /// [`WORK_INPUT_BYTES_MAX`](crate::limits::WORK_INPUT_BYTES_MAX).
    #[n(8)]
    WorkInputBytes,
    /// The answer over HTTP has the status of an error.
    #[n(9)]
    HttpStatus {
        /// The status, 400 or more.
        #[n(0)]
        status: u64,
    },
    /// A value does not fit into the data of a run that is called.
    #[n(10)]
    ChildInput {
        /// The definition that is called.
        #[n(0)]
        definition: String,
        /// The reason.
        #[n(1)]
        problem: WriteProblem,
    },
    /// A value that a called run returns does not fit into the data.
    #[n(11)]
    ChildOutput {
        /// The definition that was called.
        #[n(0)]
        definition: String,
        /// The reason.
        #[n(1)]
        problem: WriteProblem,
    },
    /// The engine cannot write below a reserved key, because the data would become too large.
    #[n(12)]
    DataFull {
        /// The reserved key.
        #[n(0)]
        key: String,
        /// The name of the state below that key.
        #[n(1)]
        state: String,
    },
    /// A message, a request or a task reaches nobody.
    #[n(13)]
    Recipients(#[n(0)] RecipientsProblem),
    /// More would go out than may.
    #[n(14)]
    Outbox(#[n(0)] OutboxExcess),
    /// A template cannot be filled in.
    #[n(15)]
    Template {
        /// What the template language or the JSON parser reports.
        #[n(0)]
        diagnostic: String,
    },
    /// The filled-in input of work is no object.
    #[n(16)]
    NoInputObject,
    /// A guard cannot be evaluated.
    #[n(17)]
    Guard {
        /// What the expression language or the JSON parser reports.
        #[n(0)]
        diagnostic: String,
    },
    /// A worker, or a server's own attempt, has given up.
    #[n(18)]
    Worker(#[n(0)] WorkFailure),
    /// A worker's result is not what was requested.
    #[n(19)]
    Result(#[n(0)] ResultProblem),
    /// [`LEASES_LAPSED_MAX`](crate::limits::LEASES_LAPSED_MAX) leases of work have lapsed.
    #[n(20)]
    LeasesLapsed,
    /// The session knows no definition that could be called by this name.
    #[n(21)]
    UnknownCallee {
        /// What the calling definition names.
        #[n(0)]
        name: String,
    },
    /// The session has had [`RUNS_MAX`](crate::limits::RUNS_MAX) runs.
    #[n(22)]
    TooManyRuns,
    /// A called run would be more than [`CALL_DEPTH_MAX`](crate::limits::CALL_DEPTH_MAX) runs below the
    /// first.
    #[n(23)]
    TooDeep {
        /// The definition that is called.
        #[n(0)]
        name: String,
    },
    /// A called run has ended without a fault, and has not completed.
    #[n(24)]
    Ended {
        /// What somebody has written about its end; maybe empty.
        #[n(0)]
        comment: String,
    },
    /// A node has ended at a port that no exit leads from.
    #[n(25)]
    Unconnected {
        /// How its body has ended.
        #[n(0)]
        port: Port,
        /// The name of the node.
        #[n(1)]
        state: String,
    },
    /// A run has entered more than [`ENTRIES_MAX`](crate::limits::ENTRIES_MAX) nodes without an input.
    #[n(26)]
    Drain {
        /// The names of the nodes that it goes round, in order.
        #[n(0)]
        states: Vec<String>,
        /// How many more there are.
        #[n(1)]
        more: u32,
    },
    /// A turn takes more work than [`TURN_FUEL`](crate::limits::TURN_FUEL).
    #[n(27)]
    TurnFuel,
    /// A strict template reads a value that the data do not have, or that is null.
    #[n(28)]
    AbsentValue {
        /// The path in the data.
        #[n(0)]
        path: String,
    },
    /// The body of a node has ended, and none of its exits can be taken.
    #[n(31)]
    NoTransition {
        /// The name of the node.
        #[n(0)]
        state: String,
    },
}

impl FaultCause {
    /// The kind of a fault with this cause, if the cause is in the run itself. A cause that ends a run at once is a fault
    /// only for the run that has called it.
    #[must_use]
    pub fn code(&self) -> FaultCode {
        match self {
            Self::TooManyOperations
            | Self::TurnFuel
            | Self::NoValue { .. }
            | Self::Expression { .. }
            | Self::Write(_)
            | Self::WrittenBytes
            | Self::NoList { .. }
            | Self::TooManyItems { .. }
            | Self::TurnBytes
            | Self::WorkInputBytes
            | Self::HttpStatus { .. }
            | Self::ChildInput { .. }
            | Self::ChildOutput { .. }
            | Self::DataFull { .. } => FaultCode::Operation,
            Self::Recipients(_) => FaultCode::Recipients,
            Self::Outbox(_) => FaultCode::OutboxLimit,
            Self::Template { .. } | Self::NoInputObject | Self::AbsentValue { .. } => FaultCode::Template,
            Self::Guard { .. } => FaultCode::Guard,
            Self::Worker(_) => FaultCode::WorkError,
            Self::Result(_) => FaultCode::BadResult,
            Self::LeasesLapsed => FaultCode::LeaseLimit,
            Self::UnknownCallee { .. }
            | Self::TooManyRuns
            | Self::TooDeep { .. }
            | Self::Ended { .. }
            | Self::Unconnected { .. }
            | Self::NoTransition { .. }
            | Self::Drain { .. } => FaultCode::Child,
        }
    }
}

impl Fault {
    /// The kind of the fault for the run that it is reported to.
    #[must_use]
    pub fn code(&self) -> FaultCode {
        if self.ended.is_empty() { self.cause.code() } else { FaultCode::Child }
    }

    /// Returns true if another attempt may end otherwise. A value that is absent does not appear by itself.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        let is_absent = self.ended.is_empty() && matches!(self.cause, FaultCause::AbsentValue { .. });
        !is_absent && self.code().is_retryable()
    }

    /// The bytes of its stored form.
    #[must_use]
    pub fn bytes(&self) -> usize {
        minicbor::len(self)
    }
}

impl From<FaultCause> for Fault {
    fn from(cause: FaultCause) -> Self {
        Self { cause, ended: Vec::new() }
    }
}

impl From<OutboxExcess> for Fault {
    fn from(excess: OutboxExcess) -> Self {
        FaultCause::Outbox(excess).into()
    }
}

impl From<RecipientsProblem> for Fault {
    fn from(problem: RecipientsProblem) -> Self {
        FaultCause::Recipients(problem).into()
    }
}

impl From<ResultProblem> for Fault {
    fn from(problem: ResultProblem) -> Self {
        FaultCause::Result(problem).into()
    }
}
