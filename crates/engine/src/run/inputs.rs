//! What a machine does not accept is refused.

use switchward_machine::{Input, RunId};
use switchward_state::{Reason, Rejection};

use crate::turn::{Stop, Turn};

/// Refuses an input that the run's machine does not accept.
pub(crate) fn check(turn: &Turn<'_, '_>, run: RunId, input: Input) -> Result<(), Stop> {
    if turn.machine(&*turn.run(run)?)?.accepts(input) {
        return Ok(());
    }
    let message = format!("the active definition takes no {}", plural(input));
    Err(Rejection::new(Reason::StateMismatch, message).into())
}

/// The same for an input that is for no run in particular: one of these runs must accept it.
pub(crate) fn check_any(turn: &Turn<'_, '_>, runs: &[RunId], input: Input) -> Result<(), Stop> {
    let mut refusal = None;
    for run in runs {
        match check(turn, *run, input) {
            Ok(()) => return Ok(()),
            Err(Stop::Refused(no)) => refusal = Some(no),
            Err(stop @ Stop::Broken(_)) => return Err(stop),
        }
    }
    refusal.map_or(Ok(()), |no| Err(no.into()))
}

/// The word for several of an input, in messages.
fn plural(input: Input) -> &'static str {
    match input {
        Input::Message => "messages",
        Input::Data => "data",
        Input::Signal => "signals",
        Input::Event => "events",
        Input::Mail => "replies",
        Input::Switch => "workflow switches",
    }
}
