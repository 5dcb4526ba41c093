//! Faults: what goes wrong inside a run, and the one path that it takes: a retry, the boundary, the end of the run.

use switchward_machine::{Boundary, Ending, Outcome, RunId};

use crate::limits::RESULT_SHOWN_BYTES_MAX;
use crate::moves::{Next, exit_on, void};
use crate::state::{OpenItemBody, Why};
use crate::turn::{Stop, Turn};
use crate::{Event, Flow, ViewError};

/// Something that went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// A lower-case code.
    pub(crate) code: &'static str,
    /// What exactly, for a person.
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn operation(message: impl Into<String>) -> Self {
        Self { code: "operation", message: message.into() }
    }

    pub(crate) fn recipients(message: impl Into<String>) -> Self {
        Self { code: "recipients", message: message.into() }
    }

    /// What goes out is too much for one act, for one turn or for what the session has out already.
    pub(crate) fn outbox(message: impl Into<String>) -> Self {
        Self { code: "outbox_limit", message: message.into() }
    }

    pub(crate) fn template(message: impl Into<String>) -> Self {
        Self { code: "template", message: message.into() }
    }

    pub(crate) fn guard(message: impl Into<String>) -> Self {
        Self { code: "guard", message: message.into() }
    }

    /// A worker has given up.
    pub(crate) fn work(message: impl Into<String>) -> Self {
        Self { code: "work_error", message: message.into() }
    }

    /// A run below has ended otherwise than it should, or cannot begin.
    pub(crate) fn child(message: impl Into<String>) -> Self {
        Self { code: "child", message: message.into() }
    }

    /// A worker's result is not what was asked for.
    pub(crate) fn result(message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > RESULT_SHOWN_BYTES_MAX {
            message.truncate(message.floor_char_boundary(RESULT_SHOWN_BYTES_MAX));
            message.push('…');
        }
        Self { code: "bad_result", message }
    }

    /// Work was handed out too often, and nobody came back with it.
    pub(crate) fn lost(message: impl Into<String>) -> Self {
        Self { code: "lease_limit", message: message.into() }
    }

    /// A fault that was kept while the session was paused.
    pub(crate) fn kept(code: &str, message: String) -> Self {
        let known = ["operation", "work_error", "bad_result", "lease_limit", "outbox_limit"];
        Self { code: known.into_iter().find(|known| *known == code).unwrap_or("operation"), message }
    }

    /// Whether trying again may help.
    fn counts(&self) -> bool {
        self.code != "guard"
    }
}

/// What a fault leads to.
pub(crate) fn handle(turn: &mut Turn<'_, '_>, run: RunId, fault: Fault) -> Result<Next, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let node = machine.node(at.node).ok_or_else(|| ViewError("the run stands nowhere".into()))?;
    let (stands, again) = (at.node, fault.counts() && at.attempt < node.attempts.max);
    drop(at);
    turn.emit(Flow::Faulted {
        run,
        node: stands,
        code: fault.code.to_owned(),
        message: fault.message.clone(),
    })?;
    if again {
        void(turn, run)?;
        if node.attempts.backoff_ms == 0 {
            return Ok(Next::Again);
        }
        let due = turn.now().after_ms(node.attempts.backoff_ms);
        turn.open(run, OpenItemBody::Timer { due, why: Why::Backoff })?;
        return Ok(Next::Rest);
    }
    let failed = |reason: &str| {
        let ending = Ending { outcome: Outcome::Failed, reason: Some(reason.to_owned()) };
        Next::End(ending, fault.message.clone())
    };
    Ok(match &node.boundary {
        Boundary::Fail => failed(fault.code),
        Boundary::Port(port) => match exit_on(node, port) {
            Some(exit) => Next::Take(exit),
            None => failed("port_unconnected"),
        },
        Boundary::Ignore(port) => {
            let text = format!("{}: {}, which is ignored", node.name, fault.message);
            turn.emit(Event::Warned { text, of_definition: false })?;
            Next::Settle(port.clone())
        }
    })
}
