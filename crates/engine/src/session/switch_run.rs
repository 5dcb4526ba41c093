//! The conversation turns to another workflow. The run is abandoned, a new one begins with its data, and the
//! queue stays as it is. See `docs/formats-conversation-operations.md#runs`.

use switchward_machine::{Ending, Input, Outcome, RunId};
use switchward_state::run::{EndComment, Json, RunEvent, Writer};
use switchward_state::session::{SessionEvent, SessionWarning, SwitchRun};
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply};

use crate::approval::frozen;
use crate::next::Next;
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
    leave::void(turn, root)?;
    // An approval that is void is closed: what waited for it goes along.
    frozen::enter(turn, root)?;
    let data = turn.rows.data_at(&Key::data(turn.tenant(), turn.session_id()?, root))?;
    let data = data.map(|data| data.values.clone()).unwrap_or_default();
    let of = Some((to.definition, to.version));
    turn.emit(RunEvent::Created { run, machine: to.machine, of, queued: false })?;
    turn.emit(RunEvent::Activated { run })?;
    let ending = Ending::plain(Outcome::Abandoned);
    turn.emit(RunEvent::Ended { run: root, ending, comment: EndComment::default() })?;
    let (old, new) = (turn.machine(&*turn.run(root)?)?, turn.machine(&*turn.run(run)?)?);
    for (key, value) in data {
        if new.reserves(&key) && !old.reserves(&key) {
            let warning = SessionWarning::NotCarriedOver { key, workflow: new.meta.name.clone() };
            turn.emit(SessionEvent::Warned { warning })?;
            continue;
        }
        turn.emit(RunEvent::Wrote { run, key, value: Json(value), by: Writer::Switch })?;
    }
    turn.go(run, Next::Enter(new.start));
    turn.moved()
}
