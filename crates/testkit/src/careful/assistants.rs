//! Checks of an assistant's name, and that it is created once.

use switchward_machine::Time;
use switchward_scenario::{Answer, Broken, System};
use switchward_state::catalogue::{CatalogueCommand, PutAssistant};
use switchward_state::{Body, Command, Key, Reason, Row, View};

use super::CarefulMemory;
use super::rows::unchanged;

/// The longest name of an assistant, characters.
const NAME_CHARS: usize = switchward_state::limits::ASSISTANT_NAME_CHARS_MAX;

/// Before an assistant is created: an invalid name is refused and nothing changes, and the longest and
/// oddest valid names would be accepted.
pub(super) fn names_of_assistants(memory: &mut CarefulMemory, command: &Command) -> Result<(), Broken> {
    let Body::Catalogue(CatalogueCommand::PutAssistant(put)) = &command.body else { return Ok(()) };
    let called = |name: &str| {
        let body = Body::Catalogue(CatalogueCommand::PutAssistant(PutAssistant {
            name: name.to_owned(),
            ..put.clone()
        }));
        Command { request: None, body, ..command.clone() }
    };
    for name in ["", "A", "a_b", "a b", &"a".repeat(NAME_CHARS + 1)] {
        let answer = unchanged(memory, &called(name))?;
        if !answer.as_ref().is_err_and(|refusal| refusal.reason == Reason::FieldInvalid) {
            return Err(wrong(name, &answer));
        }
    }
    let fits = memory.clone().execute(command.clone())?.is_ok();
    for name in ["7-b", &"z".repeat(NAME_CHARS)] {
        let answer = memory.clone().execute(called(name))?;
        if answer.is_ok() != fits {
            return Err(wrong(name, &answer));
        }
    }
    Ok(())
}

/// After an assistant was created: putting the same again changes nothing, and a later change keeps
/// the time of creation and records that of the change.
pub(super) fn assistant_again(memory: &CarefulMemory, command: &Command) -> Result<(), Broken> {
    let Body::Catalogue(CatalogueCommand::PutAssistant(put)) = &command.body else { return Ok(()) };
    let again = Command { request: None, ..command.clone() };
    let mut elsewhere = memory.clone();
    let answer = unchanged(&mut elsewhere, &again)?;
    let made = assistant(&elsewhere, command, &put.name)?;
    elsewhere.set_now(memory.now().after_ms(1));
    let instructions = format!("{} Be brief.", put.instructions);
    let body = Body::Catalogue(CatalogueCommand::PutAssistant(PutAssistant {
        instructions,
        etag: String::new(),
        ..put.clone()
    }));
    let other = elsewhere.execute(Command { body, ..again })?;
    let changed = assistant(&elsewhere, command, &put.name)?;
    let times = made.zip(changed).map(|(made, changed)| (made.0 == changed.0, changed.1 == elsewhere.now()));
    if answer.is_ok() && other.is_ok() && times == Some((true, true)) {
        return Ok(());
    }
    Err(Broken(format!(
        "a repeated put of an assistant had the wrong result: {answer:?} {other:?} {times:?}"
    )))
}

/// The times at which an assistant was created and last changed.
fn assistant(memory: &CarefulMemory, command: &Command, name: &str) -> Result<Option<(Time, Time)>, Broken> {
    let row = memory.shards()[0].row(&Key::assistant(command.tenant, name))?;
    let Some(Row::Assistant(row)) = row.as_deref() else { return Ok(None) };
    Ok(Some((row.created, row.updated)))
}

fn wrong(name: &str, answer: &Answer) -> Broken {
    Broken(format!("an assistant with the name {name:?} got the answer {answer:?}"))
}
