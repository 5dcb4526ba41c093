//! Why a worker's result is refused.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::FieldType;

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
}
