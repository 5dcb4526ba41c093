//! Runs: where each is in its machine, its data, the runs below it, and what moves them.

mod address;
pub(crate) mod apply;
pub(crate) mod apply_children;
mod children;
mod command;
pub(crate) mod data;
mod end_comment;
mod event;
mod fault;
mod memory;
mod outbox_excess;
mod pending;
mod pending_events;
mod provenance;
mod recipients_problem;
mod result_problem;
mod rows;
mod write_problem;

pub use address::{ActiveRun, ActiveRuns, RunAddress};
pub(crate) use apply::fresh;
pub use children::{Frame, Parent, Pinned, Slot};
pub use command::{Answer, EndTurn, Once, RecordData, RecordEvent, RunCommand};
pub use data::{Data, Json, Writer, json_depth, json_length, object};
pub use end_comment::EndComment;
pub use event::RunEvent;
pub use fault::{EndedRun, Fault, FaultCause};
pub use outbox_excess::OutboxExcess;
pub use pending::PendingInput;
pub use pending_events::PendingFact;
pub use provenance::Provenance;
pub use recipients_problem::RecipientsProblem;
pub use result_problem::ResultProblem;
pub(crate) use rows::remember;
pub use rows::{Choice, Deferral, Failure, Held, Judged, Loop, RUN, Run, Unknown};
pub use write_problem::WriteProblem;
