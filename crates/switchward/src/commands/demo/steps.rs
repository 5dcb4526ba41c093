//! The steps of the demo, in a form that can be compared with what the server recorded.

use serde_json::{Value, json};

/// The steps, in order.
#[derive(Default)]
pub(super) struct Steps {
    steps: Vec<Value>,
    session: String,
}

impl Steps {
    /// Sets the session of the steps.
    pub(super) fn of(&mut self, session: &str) {
        session.clone_into(&mut self.session);
    }

    /// A step that the history has an event of: its type, who caused it, and details under the event's own names.
    pub(super) fn recorded(&mut self, kind: &str, by: &str, data: &[(&str, &str)]) {
        self.push(kind, by, data, true);
    }

    /// A step that was refused, and so is no part of the history.
    pub(super) fn refused(&mut self, by: &str, data: &[(&str, &str)]) {
        self.push("refused", by, data, false);
    }

    fn push(&mut self, kind: &str, by: &str, data: &[(&str, &str)], recorded: bool) {
        let data: serde_json::Map<String, Value> =
            data.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        self.steps.push(json!({ "type": kind, "by": by, "recorded": recorded, "data": data }));
    }

    /// `{"session","steps":[{"type","by","recorded","data"}]}`.
    pub(super) fn json(&self) -> String {
        format!("{}\n", json!({ "session": self.session, "steps": self.steps }))
    }

    /// The steps alone, one a line.
    pub(super) fn lines(&self) -> String {
        self.steps.iter().map(|step| format!("{step}\n")).collect()
    }
}
