//! What came of playing a scenario.

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
    /// The start is 0, then the steps in order.
    pub steps: Vec<StepReport>,
    /// The session that the scenario was at when it ended; an empty object where none ever started.
    pub session: Value,
}

/// One step of a played scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct StepReport {
    /// 0 is the start.
    pub index: usize,
    /// What happened.
    pub verb: &'static str,
    /// Where it is written.
    pub span: Span,
    /// What the author expects, by key.
    pub expected: Map<String, Value>,
    /// What was there instead, under the same keys.
    pub seen: Map<String, Value>,
    /// What does not hold.
    pub misses: Vec<Miss>,
}

/// An expectation that does not hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Miss {
    /// Where it is written.
    pub span: Span,
    /// Its key.
    pub what: &'static str,
    /// What must be there.
    pub expected: Value,
    /// What is there.
    pub seen: Value,
    /// More about it, where there is more to say.
    pub note: String,
}

impl Report {
    /// Whether every expectation holds.
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
