//! A participant answers their part of a task. See `docs/formats-conversation.md#task`.

use switchward_machine::Decision;
use switchward_state::Reply;
use switchward_state::approval::AnswerGate;
use switchward_state::limits::{ANSWER_BYTES_MAX, ANSWER_DEPTH_MAX};
use switchward_state::run::{json_depth, json_length};

use crate::approval::decide_gate::{is_meant, may_decide, open_gate, proved, resolution_of, unsaid, via};
use crate::approval::tasks::Given;
use crate::approval::{resolve, tasks};
use crate::turn::{Stop, Turn, check_size};

pub(crate) fn run(turn: &mut Turn<'_, '_>, answer: &AnswerGate) -> Result<Reply, Stop> {
    let open = open_gate(turn, answer.gate)?;
    proved(turn, answer.gate, &open, answer.proof.as_ref())?;
    may_decide(&turn.command.actor, &open, &*turn.directory()?)?;
    is_meant(&open, answer.shown, &answer.comment)?;
    resolution_of(&resolve::spec_of(turn, &open)?, Decision::Answer)?;
    if answer.answer.is_null() {
        return Err(unsaid().into());
    }
    check_size("answer", json_length(&answer.answer), ANSWER_BYTES_MAX, "JSON bytes")?;
    check_size("answer", json_depth(&answer.answer), ANSWER_DEPTH_MAX, "levels deep")?;
    let by = turn.command.actor.subject.clone();
    let comment = answer.comment.clone();
    let given = Given { answer: answer.answer.clone(), by, comment, via: via(answer.proof.as_ref()) };
    tasks::answer(turn, answer.gate, &open, given)?;
    Ok(Reply::Gate { gate: answer.gate, sequence: turn.session()?.sequence, summary: None })
}
