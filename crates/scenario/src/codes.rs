//! Error codes of a scenario itself; all other errors of its text have codes of `switchward_formats`.

use switchward_formats::Severity;
use switchward_formats::codes::Code;

const fn error(id: &'static str, about: &'static str) -> Code {
    Code { id, severity: Severity::Error, about }
}

/// A step is one thing that happens.
pub(crate) const VERB_COUNT: Code = error("SW1901", "a step has no verb, or more than one");
/// Times and durations.
pub(crate) const TIME: Code = error("SW1902", "a text is not a time, or not a duration");
/// A file that the loader did not provide.
pub(crate) const FILE: Code = error("SW1903", "a file that the scenario names cannot be read");
