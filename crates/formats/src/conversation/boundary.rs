//! What happens when something goes wrong in a state. See `docs/formats-conversation-operations.md#errors-and-retries`.

use switchward_machine::Attempts;

use super::read;
use super::reader::Reader;
use crate::document::Node;
use crate::limits::ATTEMPTS_MAX;
use crate::shape::{self, Fields, Shape};

const RETRY_POLICY: Shape =
    Shape { what: "`retry_policy`", keys: &["max_attempts", "backoff_seconds"], ignored: &[], hints: &[] };
const RETRY: Shape =
    Shape { what: "`retry`", keys: &["max_attempts", "backoff_seconds"], ignored: &[], hints: &[] };

/// The strategies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnError {
    /// No boundary: the run fails.
    Fail,
    /// Left by the port `error`.
    Port,
    /// Recorded, and the state continues as if it had succeeded.
    Ignore,
}

/// A state's keys about errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Errors {
    pub(super) on_error: OnError,
    /// Of the boundary.
    pub(super) attempts: Attempts,
    /// The attempts that the assistant may ask for.
    pub(super) asked: Attempts,
}

impl Errors {
    /// The default for a state without keys about errors.
    pub(super) const NONE: Self = {
        let once = Attempts { max: 1, backoff_ms: 0 };
        Self { on_error: OnError::Fail, attempts: once, asked: once }
    };

    /// Returns true if the state has the port `error`.
    pub(super) fn has_port(&self) -> bool {
        self.on_error == OnError::Port
    }
}

/// Reads those of a state of this `type`. An approval has no success that an error could be taken for.
pub(super) fn read<'a>(
    state: &'a Node,
    fields: &Fields<'a>,
    state_type: &str,
    cx: &mut Reader<'a, '_>,
) -> Errors {
    let words: &[&'static str] = match state_type {
        "approval" => &["port", "retry_then_port"],
        _ => &["port", "retry_then_port", "ignore"],
    };
    let word = fields.optional("on_error").and_then(|node| shape::word(node, "`on_error`", words, cx.report));
    let policy = attempts(fields.optional("retry_policy"), &RETRY_POLICY, cx);
    let asked = attempts(fields.optional("retry"), &RETRY, cx);
    let retries = word == Some("retry_then_port");
    if !retries {
        cx.idle(state, "retry_policy", "it is used only with `on_error: retry_then_port`");
    }
    let on_error = match word {
        Some("port" | "retry_then_port") => OnError::Port,
        Some("ignore") => OnError::Ignore,
        Some(_) | None => OnError::Fail,
    };
    Errors { on_error, attempts: if retries { policy } else { Attempts::default() }, asked }
}

/// One attempt and no delay by default.
fn attempts(node: Option<&Node>, shape: &'static Shape, cx: &mut Reader<'_, '_>) -> Attempts {
    let mut attempts = Attempts::default();
    let Some(fields) = node.and_then(|node| Fields::open(node, shape, cx.report)) else { return attempts };
    if let Some(node) = fields.optional("max_attempts")
        && let Some(max) = shape::integer(node, "`max_attempts`", 1..=ATTEMPTS_MAX, cx.report)
    {
        attempts.max = u32::try_from(max).unwrap_or(u32::MAX);
    }
    if let Some(node) = fields.optional("backoff_seconds")
        && let Some(ms) = read::seconds(node, "`backoff_seconds`", cx)
    {
        attempts.backoff_ms = ms;
    }
    attempts
}
