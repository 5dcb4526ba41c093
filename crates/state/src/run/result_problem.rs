//! Why a worker's result is refused.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::FieldType;

use crate::Reason;
use crate::run::WriteProblem;

/// Why a worker's result is refused. Texts that the worker has written are cut at
/// [`RESULT_SHOWN_BYTES_MAX`](crate::limits::RESULT_SHOWN_BYTES_MAX).
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum ResultProblem {
    /// It must be an object.
    #[n(0)]
    NoObject,
    /// It has a field that was not requested.
    #[n(1)]
    UnknownField {
        /// The name of the field.
        #[n(0)]
        field: String,
    },
    /// A field has another type than the requested one.
    #[n(2)]
    FieldType {
        /// The name of the field.
        #[n(0)]
        field: String,
        /// The requested type.
        #[n(1)]
        wanted: FieldType,
        /// The value of the field, as JSON.
        #[n(2)]
        value: String,
    },
    /// The status of an answer over HTTP is no whole number.
    #[n(3)]
    HttpStatus {
        /// The status, as JSON.
        #[n(0)]
        status: String,
    },
    /// A value does not fit into the data.
    #[n(4)]
    Write(#[n(0)] WriteProblem),
    /// A judge has said neither true nor false.
    #[n(5)]
    NoJudgement,
    /// It has no list of workflows.
    #[n(6)]
    NoWorkflows,
    /// The assistant does not have a listed workflow.
    #[n(7)]
    UnknownWorkflow {
        /// The position in the list, from 0.
        #[n(0)]
        at: u32,
        /// The name, as JSON.
        #[n(1)]
        name: String,
    },
    /// A workflow is listed twice.
    #[n(8)]
    RepeatedWorkflow {
        /// The second position in the list, from 0.
        #[n(0)]
        at: u32,
        /// The name, as JSON.
        #[n(1)]
        name: String,
    },
    /// A reply is sorted to none of the ports.
    #[n(9)]
    NoPort,
    /// It breaks the schema of the work's results.
    #[n(20)]
    Schema {
        /// What the schema reports, with paths into the result.
        #[n(0)]
        diagnostic: String,
    },
    /// It names an exit that its state does not have for workers.
    #[n(21)]
    NextUnknown {
        /// What it names, as JSON if it is no text.
        #[n(0)]
        next: String,
        /// Those that it could name, at most [`EXITS_SHOWN_MAX`](crate::limits::EXITS_SHOWN_MAX).
        #[n(1)]
        exits: Vec<String>,
    },
    /// It names no exit, although there are several and none is taken without a name.
    #[n(22)]
    NextMissing {
        /// Those that it could name, at most [`EXITS_SHOWN_MAX`](crate::limits::EXITS_SHOWN_MAX).
        #[n(0)]
        exits: Vec<String>,
    },
    /// It names an exit, and the call that brings it another one.
    #[n(23)]
    NextClash {
        /// What the result names.
        #[n(0)]
        inside: String,
        /// What the call names.
        #[n(1)]
        beside: String,
    },
    /// The guard of the exit that it names does not hold.
    #[n(24)]
    NextGuard {
        /// The exit.
        #[n(0)]
        next: String,
    },
}

impl ResultProblem {
    /// The stable code by which its worker knows what to do.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Write(problem) => problem.reason(),
            Self::NextUnknown { .. } | Self::NextMissing { .. } | Self::NextClash { .. } => {
                Reason::TransitionIllegal
            }
            Self::NextGuard { .. } => Reason::GuardNotMet,
            Self::NoObject
            | Self::UnknownField { .. }
            | Self::FieldType { .. }
            | Self::HttpStatus { .. }
            | Self::NoJudgement
            | Self::NoWorkflows
            | Self::UnknownWorkflow { .. }
            | Self::RepeatedWorkflow { .. }
            | Self::NoPort
            | Self::Schema { .. } => Reason::SchemaViolation,
        }
    }
}
