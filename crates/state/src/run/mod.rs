//! Runs: where each is in its machine, its data, the runs below it, and what moves them.

pub(crate) mod apply;
pub(crate) mod apply_children;
mod children;
mod command;
pub(crate) mod data;
mod event;
mod fault_code;
mod memory;
mod pending;
mod pending_events;
mod rows;

pub(crate) use apply::fresh;
pub use children::{Parent, Pinned, Slot};
pub use command::{Answer, EndTurn, Once, RecordData, RecordEvent, RunCommand};
pub use data::{Data, Json, Writer, json_depth, json_length, object};
pub use event::RunEvent;
pub use fault_code::FaultCode;
pub use pending::PendingInput;
pub use pending_events::PendingFact;
pub(crate) use rows::remember;
pub use rows::{Choice, Deferral, Held, Judged, Loop, RUN, Run, Unknown};
