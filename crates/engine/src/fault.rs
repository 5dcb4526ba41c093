//! What goes wrong inside a run.

use switchward_state::limits::RESULT_SHOWN_BYTES_MAX;
use switchward_state::run::FaultCode;

/// Something that went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Of what kind.
    pub(crate) code: FaultCode,
    /// What exactly, for a person.
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn operation(message: impl Into<String>) -> Self {
        Self { code: FaultCode::Operation, message: message.into() }
    }

    pub(crate) fn recipients(message: impl Into<String>) -> Self {
        Self { code: FaultCode::Recipients, message: message.into() }
    }

    /// What goes out is too much for one act, for one turn or for what the session has out already.
    pub(crate) fn outbox(message: impl Into<String>) -> Self {
        Self { code: FaultCode::OutboxLimit, message: message.into() }
    }

    pub(crate) fn template(message: impl Into<String>) -> Self {
        Self { code: FaultCode::Template, message: message.into() }
    }

    pub(crate) fn guard(message: impl Into<String>) -> Self {
        Self { code: FaultCode::Guard, message: message.into() }
    }

    /// A worker has given up.
    pub(crate) fn work(message: impl Into<String>) -> Self {
        Self { code: FaultCode::WorkError, message: message.into() }
    }

    /// A run below has ended otherwise than it should, or cannot begin.
    pub(crate) fn child(message: impl Into<String>) -> Self {
        Self { code: FaultCode::Child, message: message.into() }
    }

    /// A worker's result is not what was asked for.
    pub(crate) fn result(message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > RESULT_SHOWN_BYTES_MAX {
            message.truncate(message.floor_char_boundary(RESULT_SHOWN_BYTES_MAX));
            message.push('…');
        }
        Self { code: FaultCode::BadResult, message }
    }

    /// Work was handed out too often, and nobody came back with it.
    pub(crate) fn lost(message: impl Into<String>) -> Self {
        Self { code: FaultCode::LeaseLimit, message: message.into() }
    }
}
