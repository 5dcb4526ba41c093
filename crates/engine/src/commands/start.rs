//! A session begins.

use switchward_machine::RunId;

use crate::command::Start;
use crate::limits::{INPUT_BYTES_MAX, LABEL_BYTES_MAX, LABELS_MAX};
use crate::moves;
use crate::turn::{Stop, Turn, check_size, check_text};
use crate::{Event, Reason, Rejection, Reply};

pub(super) fn run(turn: &mut Turn<'_, '_>, start: &Start) -> Result<Reply, Stop> {
    let id = turn.session_id()?;
    if turn.rows.session(turn.tenant(), id)?.is_some() {
        let message = "there is a session of this key already; use another key, or look at that session";
        return Err(Rejection::new(Reason::AlreadyExists, message).fact("session", id).into());
    }
    check(start)?;
    let Some(machine) = turn.rows.machine(turn.tenant(), start.machine)? else {
        return Err(Rejection::new(Reason::MachineMissing, "the machine is not installed here").into());
    };
    let foreign = machine.opening.role.as_ref().is_some_and(|role| *role != start.role);
    if foreign && !turn.command.settings.allow_foreign_role {
        let role = machine.opening.role.clone().unwrap_or_default();
        let message = format!("the policy is for the role {role:?}, not for {:?}", start.role);
        return Err(Rejection::new(Reason::PolicyDenied, message).allowed([role.as_str()]).into());
    }
    turn.emit(Event::SessionStarted {
        definition: start.definition.clone(),
        version: start.version,
        machine: start.machine,
        key: start.key.clone(),
        role: start.role.clone(),
        without_policy: foreign,
        labels: start.labels.clone(),
        input: start.input.clone(),
    })?;
    for text in &machine.opening.warnings {
        turn.emit(Event::Warned { text: text.clone(), of_definition: true })?;
    }
    let root = RunId(1);
    turn.emit(Event::RunCreated { run: root, machine: start.machine })?;
    moves::enter(turn, root, machine.start)?;
    turn.moved()
}

fn check(start: &Start) -> Result<(), Rejection> {
    check_text("role", &start.role, LABEL_BYTES_MAX)?;
    check_size("input", start.input.len(), INPUT_BYTES_MAX, "bytes")?;
    check_size("labels", start.labels.len(), LABELS_MAX, "entries")?;
    for (key, value) in &start.labels {
        check_text("labels", key, LABEL_BYTES_MAX)?;
        check_text("labels", value, LABEL_BYTES_MAX)?;
    }
    Ok(())
}
