//! The agent's turn is over: the exits of the state are tried in order. See
//! `docs/formats-conversation.md#transitions-and-ports`.

use switchward_machine::{ActKind, Port, RunId};
use switchward_state::limits::MESSAGE_BYTES_MAX;
use switchward_state::run::{EndTurn, RunEvent};
use switchward_state::session::{SessionEvent, Speaker};
use switchward_state::work::WorkEvent;
use switchward_state::{ItemKind, Reason, Rejection, Reply, ViewError};

use crate::next::Next;
use crate::turn::{Stop, Turn, check_text, not_held, not_paused};

pub(crate) fn run(turn: &mut Turn<'_, '_>, end: &EndTurn) -> Result<Reply, Stop> {
    let session = turn.live_session()?;
    let leaf = turn.leaf()?;
    not_paused(&session)?;
    check_text("text", &end.text, MESSAGE_BYTES_MAX)?;
    let run = turn.run(leaf)?;
    let machine = turn.machine(&run)?;
    let node = machine.node(run.node).ok_or_else(|| ViewError("the run stands nowhere".into()))?;
    not_held(&run, node)?;
    let takes = match node.acts.get(usize::from(run.act.0)).map(|act| &act.kind) {
        Some(ActKind::Ask(ask)) => ask.turns,
        Some(ActKind::Work(work)) => work.turn_ends,
        Some(ActKind::Do(_) | ActKind::Wait(_) | ActKind::Decide(_) | ActKind::Spawn(_)) | None => false,
    };
    // A judge that an event has asked does not mean that the body has ended.
    let over = run.rests || run.choice.as_ref().is_some_and(|choice| !choice.event);
    if !(takes || (node.turns && over)) {
        let message = format!("{:?} takes no turn of the agent now", node.name);
        return Err(Rejection::new(Reason::StateMismatch, message).fact("state", &node.name).into());
    }
    // A body that has ended with a port, and was not let go, tries to leave by it once more.
    let port = run.refused.clone().unwrap_or(Port::Done);
    drop((session, run));
    if !end.text.is_empty() {
        turn.emit(SessionEvent::MessagePosted { text: end.text.clone(), speaker: Speaker::Agent })?;
    }
    turn.emit(RunEvent::TurnEnded { run: leaf })?;
    close(turn, leaf, ItemKind::Work)?;
    // The turn takes the part of the next attempt, for which the run still waits.
    if close(turn, leaf, ItemKind::Timer)? {
        turn.emit(RunEvent::Restarted { run: leaf, asked: false })?;
    }
    turn.go(leaf, Next::Settle(port));
    turn.moved()
}

/// Closes what is open of a kind. Returns true if anything was.
fn close(turn: &mut Turn<'_, '_>, run: RunId, kind: ItemKind) -> Result<bool, Stop> {
    let open = turn.open_in(run, kind)?;
    for item in &open {
        turn.emit(WorkEvent::Closed { item: *item, run })?;
    }
    Ok(!open.is_empty())
}
