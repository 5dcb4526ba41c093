//! The user says something in the conversation. Nothing moves before the agent's turn is over.

use crate::command::PostMessage;
use crate::limits::MESSAGE_BYTES_MAX;
use crate::turn::{Stop, Turn, check_text};
use crate::{Flow, Reply};

pub(super) fn run(turn: &mut Turn<'_, '_>, post: &PostMessage) -> Result<Reply, Stop> {
    turn.live_session()?;
    super::conversation(turn, turn.leaf()?)?;
    check_text("text", &post.text, MESSAGE_BYTES_MAX)?;
    turn.emit(Flow::MessagePosted { text: post.text.clone(), by_agent: false })?;
    turn.moved()
}
