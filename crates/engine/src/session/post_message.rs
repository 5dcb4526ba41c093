//! The user says something in the conversation; what an agent's key posts is relayed and confirms nothing. Nothing moves
//! before the agent's turn is over; but if the subject of the conversation is not known yet, intent work is opened, of a
//! paused session on resuming. It is said to the session, whichever of its runs are active.

use switchward_machine::Input;
use switchward_state::Reply;
use switchward_state::limits::MESSAGE_BYTES_MAX;
use switchward_state::session::{PostMessage, SessionEvent, Speaker};

use crate::run::inputs;
use crate::session::intent;
use crate::turn::{Stop, Turn, check_text};

pub(crate) fn run(turn: &mut Turn<'_, '_>, post: &PostMessage) -> Result<Reply, Stop> {
    let session = turn.live_session()?;
    let asks = session.root == switchward_state::run::RUN;
    drop(session);
    inputs::check_any(turn, &turn.leaves()?, Input::Message)?;
    check_text("text", &post.text, MESSAGE_BYTES_MAX)?;
    let speaker = Speaker::for_user(turn.command.actor.role);
    turn.emit(SessionEvent::MessagePosted { text: post.text.clone(), speaker })?;
    if asks {
        intent::ask_again(turn)?;
    }
    turn.moved()
}
