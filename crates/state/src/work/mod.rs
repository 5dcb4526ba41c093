//! Open items: work for workers, waits and timers.

pub(crate) mod apply;
mod command;
mod event;
mod failure;
mod problem;
mod rows;

pub use command::WorkCommand;
pub use command::{CompleteWork, ExtendLease, FailWork, LeaseWork, ReleaseWork};
pub use event::WorkEvent;
pub use failure::WorkFailure;
pub use problem::WorkProblem;
pub use rows::{About, Lease, OpenItemBody, Owed, SERVER_WORKER, TimerItem, WaitItem, Why, WorkItem};
