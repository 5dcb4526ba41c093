//! What is decided about sessions; one file for each command.

pub(crate) mod cancel;
pub(crate) mod intent;
pub(crate) mod pause;
pub(crate) mod position;
pub(crate) mod post_message;
pub(crate) mod public;
pub(crate) mod remove;
pub(crate) mod shown;
pub(crate) mod start;
pub(crate) mod sweep;
pub(crate) mod switch_run;
pub(crate) mod view;

use switchward_state::Reply;
use switchward_state::session::SessionCommand;

use crate::turn::{Stop, Turn};

/// Runs a command of this aggregate.
pub(crate) fn run(turn: &mut Turn<'_, '_>, command: &SessionCommand) -> Result<Reply, Stop> {
    match command {
        SessionCommand::Start(start) => start::run(turn, start),
        SessionCommand::PostMessage(post) => post_message::run(turn, post),
        SessionCommand::SwitchRun(switch) => switch_run::run(turn, switch),
        SessionCommand::Pause(pause) => pause::pause(turn, pause),
        SessionCommand::Resume(resume) => pause::resume(turn, resume),
        SessionCommand::Cancel(cancel) => cancel::run(turn, cancel),
        SessionCommand::Sweep(sweep) => sweep::run(turn, sweep),
        SessionCommand::Remove(remove) => remove::begin(turn, remove),
        SessionCommand::RemoveStep(step) => remove::step(turn, step),
    }
}
