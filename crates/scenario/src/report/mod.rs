//! The result of playing a scenario.

mod text;

use serde_json::{Map, Value, json};
use switchward_formats::document::Span;

/// The key under which refusals are compared.
pub(crate) const REFUSAL: &str = "expect_error";

/// A played scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The scenario, as the caller named it.
    pub file: String,
    /// The start at index 0, then the steps in order.
    pub steps: Vec<StepReport>,
    /// The scenario's current session at its end; an empty object if none ever started.
    pub session: Value,
}

/// One step of a played scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct StepReport {
    /// 0 is the start.
    pub index: usize,
    /// The step's verb.
    pub verb: &'static str,
    /// Its position in the source.
    pub span: Span,
    /// What the author expects, by key.
    pub expected: Map<String, Value>,
    /// What was seen instead, under the same keys.
    pub seen: Map<String, Value>,
    /// The expectations that do not hold.
    pub misses: Vec<Miss>,
}

/// An expectation that does not hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Miss {
    /// Its position in the source.
    pub span: Span,
    /// Its key.
    pub what: &'static str,
    /// What the author wrote.
    pub expected: Value,
    /// What the step led to instead.
    pub seen: Value,
    /// More about it, if there is more to say.
    pub note: String,
}

impl Report {
    /// Returns true if every expectation holds.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.steps.iter().all(|step| step.misses.is_empty())
    }

    /// `{"file","ok","steps":[{"index","verb","ok","expected","seen"}],"session":{}}`.
    #[must_use]
    pub fn json(&self) -> Value {
        let steps = self.steps.iter().map(|step| {
            json!({
                "index": step.index,
                "verb": step.verb,
                "ok": step.misses.is_empty(),
                "expected": step.expected,
                "seen": step.seen,
            })
        });
        json!({
            "file": self.file,
            "ok": self.ok(),
            "steps": steps.collect::<Vec<_>>(),
            "session": self.session,
        })
    }
}
