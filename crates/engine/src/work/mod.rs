//! What is decided about open work; one file for each command.

pub(crate) mod leases;
pub(crate) mod public;
pub(crate) mod timers;
pub(crate) mod view;

use switchward_state::Reply;
use switchward_state::work::WorkCommand;

use crate::turn::{Stop, Turn};

/// Runs a command of this aggregate.
pub(crate) fn run(turn: &mut Turn<'_, '_>, command: &WorkCommand) -> Result<Reply, Stop> {
    match command {
        WorkCommand::Lease(lease) => leases::lease(turn, lease),
        WorkCommand::Extend(extend) => leases::extend(turn, extend),
        WorkCommand::Complete(complete) => leases::complete(turn, complete),
        WorkCommand::Fail(fail) => leases::fail(turn, fail),
        WorkCommand::Release(release) => leases::release(turn, release),
    }
}
