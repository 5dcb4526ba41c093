//! The conversation turns to another workflow. The run is abandoned, a new one begins with its data, and the
//! queue stays as it is. See `docs/formats-conversation-operations.md#runs`.

use serde_json::Value;
use std::sync::Arc;
use switchward_machine::{Ending, Input, Machine, Outcome, RunId};
use switchward_state::run::{EndComment, RunEvent, WriteProblem, Writer};
use switchward_state::session::{SessionEvent, SessionWarning, SwitchRun};
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply};

use crate::approval::frozen;
use crate::next::Next;
use crate::run::writes::{self, Source, Writing};
use crate::run::{inputs, leave};
use crate::turn::{Stop, Turn, not_paused};

pub(crate) fn run(turn: &mut Turn<'_, '_>, switch: &SwitchRun) -> Result<Reply, Stop> {
    let session = turn.live_session()?;
    let root = session.root;
    inputs::check(turn, root, Input::Switch)?;
    not_paused(&session)?;
    let Some(to) = session.workflows.iter().find(|known| known.definition == switch.workflow).cloned() else {
        let allowed: Vec<&str> = session.workflows.iter().map(|known| known.definition.as_str()).collect();
        let message = if allowed.is_empty() {
            "the session has one workflow, and there is nothing to switch to".to_owned()
        } else {
            format!("there is no workflow {:?} here; there is {}", switch.workflow, allowed.join(", "))
        };
        return Err(Rejection::new(Reason::NoSuchWorkflow, message).allowed(allowed).into());
    };
    let run = RunId(session.runs.saturating_add(1));
    drop(session);
    if root == switchward_state::run::RUN {
        // A switch that names the workflow makes the question unnecessary.
        turn.go(root, Next::Chosen(vec![to.definition]));
        return turn.moved();
    }
    let Some(new) = turn.rows.machine(turn.tenant(), to.machine)? else {
        return Err(Rejection::new(Reason::MachineMissing, "a machine is not installed here").into());
    };
    if new.data_schema.is_some() {
        begun(turn, root, &new)?.map_err(|problem| {
            Rejection::new(Reason::SchemaViolation, problem.to_string()).fact("field", "workflow")
        })?;
    }
    leave::void(turn, root)?;
    // An approval that is void is closed: what waited for it goes along.
    frozen::enter(turn, root)?;
    let of = Some((to.definition, to.version));
    turn.emit(RunEvent::Created { run, machine: to.machine, of, queued: false })?;
    turn.emit(RunEvent::Activated { run })?;
    let ending = Ending::plain(Outcome::Abandoned);
    turn.emit(RunEvent::Ended { run: root, ending, comment: EndComment::default() })?;
    let (carried, left) = match begun(turn, root, &new)? {
        Ok(begun) => begun,
        // It fitted before what waited for an approval came to it.
        Err(problem) => {
            turn.emit(SessionEvent::Warned { warning: SessionWarning::NotMerged { problem } })?;
            (Vec::new(), Vec::new())
        }
    };
    for key in left {
        let warning = SessionWarning::NotCarriedOver { key, workflow: new.meta.name.clone() };
        turn.emit(SessionEvent::Warned { warning })?;
    }
    let who = turn.run(root)?.definition.clone();
    writes::record(turn, run, carried, &Source { by: Writer::Switch, who: &who })?;
    turn.go(run, Next::Enter(new.start));
    turn.moved()
}

/// What the next run begins with, and the keys that are not carried over.
type Begun = (Vec<(String, Value)>, Vec<String>);

/// What a run of the machine `new` begins with: what its definition says, and over that the data of the run before it.
/// Keys that only the engine writes come from its own keys alone.
fn begun(turn: &Turn<'_, '_>, root: RunId, new: &Arc<Machine>) -> Result<Result<Begun, WriteProblem>, Stop> {
    let old = turn.machine(&*turn.run(root)?)?;
    let data = turn.rows.data_at(&Key::data(turn.tenant(), turn.session_id()?, root))?;
    let data = data.map(|data| data.values.clone()).unwrap_or_default();
    let mut written = match Writing::beginning(new, &turn.fuel) {
        Ok(begun) => begun.written(),
        Err(problem) => return Ok(Err(problem)),
    };
    let mut left = Vec::new();
    for (key, value) in data {
        if new.reserves(&key) && !old.reserves(&key) {
            left.push(key);
            continue;
        }
        if new.initial.iter().any(|initial| initial.key == key) {
            written.retain(|(known, _)| *known != key);
        }
        written.push((key, value));
    }
    if new.data_schema.is_none() {
        return Ok(Ok((written, left)));
    }
    let all = Value::Object(written.iter().cloned().collect());
    Ok(writes::fits(new, &all, &turn.fuel).map(|()| (written, left)))
}
