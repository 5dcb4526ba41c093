//! The agent asks for another attempt of the state. The backoff is reported and not enforced, because the format
//! only suggests it. See `docs/formats-conversation-operations.md#errors-and-retries`.

use switchward_machine::{ActIx, Input};
use switchward_state::run::RunEvent;
use switchward_state::{Reason, Rejection, Reply, ViewError};

use crate::approval::frozen;
use crate::next::Next;
use crate::run::inputs;
use crate::run::leave::void;
use crate::turn::{Stop, Turn, not_held, not_paused};

pub(crate) fn run(turn: &mut Turn<'_, '_>) -> Result<Reply, Stop> {
    let session = turn.live_session()?;
    let leaf = turn.leaf()?;
    inputs::check(turn, leaf, Input::Signal)?;
    not_paused(&session)?;
    let run = turn.run(leaf)?;
    let machine = turn.machine(&run)?;
    let node = machine.node(run.node).ok_or_else(|| ViewError("the run stands nowhere".into()))?;
    not_held(&run, node)?;
    let max = node.asked.max;
    if run.asked.saturating_add(1) >= max {
        let message = format!("{:?} may be tried {max} times in all, and it was", node.name);
        return Err(Rejection::new(Reason::RetryExhausted, message).fact("state", &node.name).into());
    }
    drop((session, run));
    void(turn, leaf)?;
    frozen::enter(turn, leaf)?;
    turn.emit(RunEvent::Restarted { run: leaf, asked: true })?;
    turn.go(leaf, Next::Begin(ActIx(0)));
    turn.moved()
}
