//! A comment at an approval from which no transition leads to a discussion: it is recorded and passed on, and the request
//! stays open. Source: semantics §7, *Second round* (20).

use switchward_machine::{Channel, Content, OpenId};
use switchward_state::approval::{ApprovalEvent, Asked, Open};
use switchward_state::delivery::{EffectBody, Purpose};
use switchward_state::limits::QUESTION_LINE_BYTES_MAX;

use crate::approval::mails;
use crate::delivery::capacity;
use crate::turn::{Stop, Turn};

/// Records what somebody said at an open approval, and passes it on: into the conversation, where the agent reads it, and
/// by mail to the requester if the directory knows an address of them.
pub(crate) fn pass_on(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &Open,
    by: &str,
    comment: String,
) -> Result<(), Stop> {
    turn.emit(ApprovalEvent::Discussed { gate, by: by.to_owned(), comment: comment.clone() })?;
    let Some(asked) = open.gate.asked.as_ref().filter(|_| !comment.trim().is_empty()) else { return Ok(()) };
    let body = message_text(by, asked, &comment);
    let effect = EffectBody::Message {
        channel: Channel::Chat,
        to: String::new(),
        subject: Some(line(by, &comment)),
        body: body.clone(),
        content: Content::Text,
        gate: None,
        purpose: Purpose::Say,
        head: None,
    };
    match capacity::effects(turn, 1, effect.bytes())? {
        Some(fault) => capacity::unsent(turn, open.run, &fault)?,
        None => {
            turn.send(open.run, effect)?;
        }
    }
    let people = turn.directory()?;
    for to in people.addresses(&open.gate.requester).into_iter().filter(|to| !people.one_person(to, by)) {
        mails::inform(turn, open.run, gate, asked, &to, body.clone())?;
    }
    Ok(())
}

/// What lists show of it: one line.
fn line(by: &str, comment: &str) -> String {
    let mut line = format!("Question of {by}: {}", comment.trim().lines().next().unwrap_or_default());
    line.truncate(line.floor_char_boundary(QUESTION_LINE_BYTES_MAX));
    line
}

fn message_text(by: &str, asked: &Asked, comment: &str) -> String {
    format!("{by} has a question about the request {:?}, which is still open:\n\n{comment}", asked.subject)
}
