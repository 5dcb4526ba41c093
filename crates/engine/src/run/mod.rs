//! What is decided about runs; one file for each command.

pub(crate) mod address;
pub(crate) mod answer;
pub(crate) mod callees;
pub(crate) mod data;
pub(crate) mod end_turn;
pub(crate) mod events;
pub(crate) mod faults;
pub(crate) mod guards;
pub(crate) mod inputs;
pub(crate) mod leave;
pub(crate) mod public;
pub(crate) mod record_data;
pub(crate) mod record_event;
pub(crate) mod reply_token;
pub(crate) mod retry_node;
pub(crate) mod scope;
pub(crate) mod signal_completion;
pub(crate) mod view;
pub(crate) mod writes;

use switchward_state::Reply;
use switchward_state::run::RunCommand;

use crate::turn::{Stop, Turn};

/// Runs a command of this aggregate.
pub(crate) fn run(turn: &mut Turn<'_, '_>, command: &RunCommand) -> Result<Reply, Stop> {
    match command {
        RunCommand::Answer(answer) => answer::run(turn, answer),
        RunCommand::EndTurn(end) => end_turn::run(turn, end),
        RunCommand::RecordData(record) => record_data::run(turn, record),
        RunCommand::SignalCompletion => signal_completion::run(turn),
        RunCommand::RetryNode => retry_node::run(turn),
        RunCommand::RecordEvent(event) => record_event::run(turn, event),
    }
}
