//! The user says something in the conversation; what an agent's key posts is relayed and confirms nothing. Nothing moves
//! before the agent's turn is over; but if the subject of the conversation is not known yet, intent work is opened, of a
//! paused session on resuming.

use crate::command::PostMessage;
use crate::event::Speaker;
use crate::intent;
use crate::limits::MESSAGE_BYTES_MAX;
use crate::turn::{Stop, Turn, check_text};
use crate::{Flow, Reply};

pub(super) fn run(turn: &mut Turn<'_, '_>, post: &PostMessage) -> Result<Reply, Stop> {
    let session = turn.live_session()?;
    let asks = session.root == intent::RUN;
    drop(session);
    super::conversation(turn, turn.leaf()?)?;
    check_text("text", &post.text, MESSAGE_BYTES_MAX)?;
    let speaker = Speaker::for_user(turn.command.actor.role);
    turn.emit(Flow::MessagePosted { text: post.text.clone(), speaker })?;
    if asks {
        intent::ask_again(turn)?;
    }
    turn.moved()
}
