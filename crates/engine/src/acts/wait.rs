//! Wait: something from outside, or no more than a time. When the time is over the leader says so, and the act ends.

use switchward_machine::{RunId, Wait, WaitOn};
use switchward_state::run::RunEvent;
use switchward_state::session::Early;
use switchward_state::work::{OpenItemBody, WaitItem};

use crate::approval::classify::ask_about;
use crate::next::Next;
use crate::run::events::{self, EarlyMatch};
use crate::turn::{Stop, Turn};

pub(crate) fn begin(turn: &mut Turn<'_, '_>, run: RunId, wait: &Wait) -> Result<Next, Stop> {
    let found = if wait.on == WaitOn::Event { events::earliest(turn, run, wait)? } else { EarlyMatch::None };
    let asks = match found {
        EarlyMatch::Ends(early, position, port) => {
            take(turn, run, &early, position)?;
            events::remember(turn, run, &early.key, &early.data.0)?;
            return Ok(Next::Ended(port));
        }
        EarlyMatch::Asks(early, position) => Some((early, position)),
        EarlyMatch::None => None,
    };
    let due = turn.now().after_ms(wait.for_ms);
    let (late, done) = (wait.late.clone(), wait.done.clone());
    let item = turn.open(run, OpenItemBody::Wait(WaitItem { on: wait.on, due, late, done }))?;
    if let (Some((early, position)), Some(sort)) = (asks, &wait.sort) {
        take(turn, run, &early, position)?;
        ask_about(turn, run, item, &early.key, &early.data.0, sort)?;
    }
    Ok(Next::Rest)
}

/// An event that came early counts from now on.
fn take(turn: &mut Turn<'_, '_>, run: RunId, early: &Early, position: u32) -> Result<(), Stop> {
    Ok(turn.emit(RunEvent::EarlyUsed { run, keys: vec![early.key.clone()], positions: vec![position] })?)
}
