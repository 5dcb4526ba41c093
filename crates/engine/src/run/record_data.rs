//! The agent records data: all of the values, or none. See `docs/formats-conversation-operations.md#data`.

use switchward_machine::Input;
use switchward_state::run::{RecordData, WriteProblem, Writer};
use switchward_state::{Rejection, Reply};

use crate::approval::frozen;
use crate::run::inputs;
use crate::run::writes::{self, Source, Writing};
use crate::session::intent;
use crate::turn::{Stop, Turn, not_paused};

pub(crate) fn run(turn: &mut Turn<'_, '_>, record: &RecordData) -> Result<Reply, Stop> {
    let session = turn.live_session()?;
    let leaf = turn.leaf()?;
    inputs::check(turn, leaf, Input::Data)?;
    not_paused(&session)?;
    intent::known(&session)?;
    drop(session);
    frozen::may_record(turn, leaf)?;
    let mut writing = Writing::at_node(turn, leaf)?;
    for (key, value) in &record.values {
        writing.put(key, value.clone()).map_err(|problem| refusal(&problem, &format!("values.{key}")))?;
    }
    let written = writing.checked().map_err(|problem| refusal(&problem, "values"))?;
    let who = turn.command.actor.subject.clone();
    writes::record(turn, leaf, written, &Source { by: Writer::Agent, who: &who })?;
    turn.moved()
}

/// A value that does not fit refuses them all.
fn refusal(problem: &WriteProblem, field: &str) -> Rejection {
    Rejection::new(problem.reason(), problem.to_string()).fact("field", field)
}
