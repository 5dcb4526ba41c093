//! Assistants: named lists of workflows. See `docs/formats-conversation-operations.md#runs`.

use std::sync::Arc;
use switchward_state::catalogue::{
    Assistant, AssistantFact, AssistantSummary, CatalogueEvent, DeleteAssistant, PutAssistant,
};
use switchward_state::limits::{ASSISTANT_NAME_CHARS_MAX, INSTRUCTIONS_BYTES_MAX, WORKFLOWS_MAX};
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply};

use crate::session::intent;
use crate::turn::{Stop, Turn, check_etag, check_size, check_text};

/// Makes an assistant, or another one of a known name; sessions that run keep what they began with. What is the same as
/// before changes nothing.
pub(crate) fn put(turn: &mut Turn<'_, '_>, put: &PutAssistant) -> Result<Reply, Stop> {
    check(turn, put)?;
    let known = turn.rows.assistant_at(&Key::assistant(turn.tenant(), &put.name))?;
    check_etag("assistant", &put.etag, known.as_ref().map(|known| known.etag()))?;
    let machine = Arc::new(intent::machine());
    let assistant = Assistant {
        name: put.name.clone(),
        workflows: put.workflows.clone(),
        instructions: put.instructions.clone(),
        machine: machine.digest(),
        created: known.as_ref().map_or(turn.now(), |known| known.created),
        updated: known.as_ref().map_or(turn.now(), |known| known.updated),
    };
    if known.is_some_and(|known| *known == assistant) {
        return Ok(Reply::Assistant(AssistantSummary::of(&assistant)));
    }
    let assistant = Assistant { updated: turn.now(), ..assistant };
    let summary = AssistantSummary::of(&assistant);
    turn.emit(CatalogueEvent::Assistants(AssistantFact::Put { assistant, machine }))?;
    Ok(Reply::Assistant(summary))
}

fn check(turn: &Turn<'_, '_>, put: &PutAssistant) -> Result<(), Stop> {
    let bad =
        |field: &str, message: String| Rejection::new(Reason::FieldInvalid, message).fact("field", field);
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !(1..=ASSISTANT_NAME_CHARS_MAX).contains(&put.name.len()) || !put.name.chars().all(fits) {
        let message = format!("an assistant's name is 1 to {ASSISTANT_NAME_CHARS_MAX} of a-z, 0-9 and -");
        return Err(bad("assistant.name", message).into());
    }
    if put.workflows.is_empty() {
        let message = "an assistant has at least one workflow".to_owned();
        return Err(bad("assistant.workflows", message).into());
    }
    check_size("assistant.workflows", put.workflows.len(), WORKFLOWS_MAX, "entries")?;
    check_text("assistant.instructions", &put.instructions, INSTRUCTIONS_BYTES_MAX)?;
    for (at, workflow) in put.workflows.iter().enumerate() {
        let field = format!("assistant.workflows[{at}]");
        if put.workflows.iter().take(at).any(|before| before == workflow) {
            let message = format!("{workflow:?} stands in the list twice");
            return Err(bad(&field, message).into());
        }
        if turn.rows.definition(turn.tenant(), workflow)?.is_none() {
            let message = format!("there is no definition {workflow:?}");
            return Err(bad(&field, message).into());
        }
    }
    Ok(())
}

/// An assistant is deleted; sessions that run keep what they began with.
pub(crate) fn delete(turn: &mut Turn<'_, '_>, delete: &DeleteAssistant) -> Result<Reply, Stop> {
    let Some(known) = turn.rows.assistant_at(&Key::assistant(turn.tenant(), &delete.name))? else {
        return Err(Rejection::new(Reason::NotFound, "there is no such assistant").into());
    };
    check_etag("assistant", &delete.etag, Some(known.etag()))?;
    drop(known);
    turn.emit(CatalogueEvent::Assistants(AssistantFact::Deleted { name: delete.name.clone() }))?;
    Ok(Reply::Done)
}
