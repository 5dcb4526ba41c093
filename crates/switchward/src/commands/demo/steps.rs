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

    /// Adds a step that the history records as an event: its type, its actor and details under the event's names.
    pub(super) fn recorded(&mut self, kind: &str, by: &str, data: &[(&str, &str)]) {
        self.push(kind, by, data, true);
    }

    /// Adds a step that was refused and is not in the history.
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

    /// The steps, one per line.
    pub(super) fn lines(&self) -> String {
        self.steps.iter().map(|step| format!("{step}\n")).collect()
    }
}
