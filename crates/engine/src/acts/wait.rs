//! Wait: something from outside, or no more than a time. When the time is over the leader says so, and the act ends.

use switchward_machine::{RunId, Wait, WaitOn};

use crate::Flow;
use crate::events;
use crate::moves::Next;
use crate::state::ThingBody;
use crate::turn::{Stop, Turn};

pub(super) fn begin(turn: &mut Turn<'_, '_>, run: RunId, wait: &Wait) -> Result<Next, Stop> {
    if wait.on == WaitOn::Event
        && let Some((early, port)) = events::earliest(turn, wait)?
    {
        turn.emit(Flow::EarlyTaken { run, keys: vec![early.key.clone()] })?;
        events::remember(turn, run, &early.key, &early.data.0)?;
        return Ok(Next::Ended(port));
    }
    let due = turn.now().after_ms(wait.for_ms);
    let (late, done) = (wait.late.clone(), wait.done.clone());
    turn.open(run, ThingBody::Wait { on: wait.on, due, late, done })?;
    Ok(Next::Rest)
}
