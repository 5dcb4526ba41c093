//! A comment at an approval from which no transition leads to a discussion: it is recorded and passed on, and the request
//! stays open. See `tests/corpus/conversation/sentences.tsv#003-s20`.

use switchward_machine::{Channel, OpenId};
use switchward_state::approval::{ApprovalEvent, Notice, OpenGate};
use switchward_state::delivery::{EffectBody, MessageText, Purpose};

use crate::approval::mails;
use crate::delivery::capacity;
use crate::turn::{Stop, Turn};

/// Records what somebody said at an open approval, and passes it on: into the conversation, where the agent reads it, and
/// by mail to the requester if the directory knows an address of them.
pub(crate) fn pass_on(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &OpenGate,
    by: &str,
    comment: String,
) -> Result<(), Stop> {
    turn.emit(ApprovalEvent::Commented { gate, by: by.to_owned(), comment: comment.clone() })?;
    let Some(asked) = open.body.asked.as_ref().filter(|_| !comment.trim().is_empty()) else { return Ok(()) };
    let question = Notice::Question { by: by.to_owned(), comment };
    let effect = EffectBody::Message {
        channel: Channel::Chat,
        to: String::new(),
        text: MessageText::Notice { about: asked.subject.clone(), notice: question.clone() },
        gate: None,
        purpose: Purpose::Say,
        head: None,
    };
    match capacity::effects(turn, 1, effect.bytes())? {
        Some(excess) => capacity::unsent(turn, open.head.run, excess)?,
        None => {
            turn.send(open.head.run, effect)?;
        }
    }
    let people = turn.directory()?;
    for to in people.addresses(&open.body.requester).into_iter().filter(|to| !people.one_person(to, by)) {
        mails::inform(turn, open.head.run, gate, asked, &to, question.clone())?;
    }
    Ok(())
}
