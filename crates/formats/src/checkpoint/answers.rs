//! Answers, and how an action changes their `next`. See `docs/formats-checkpoint.md#states-and-answers`.

use switchward_machine::limits::{EXITS_MAX, NAME_BYTES_MAX};
use switchward_machine::{Ending, Exit, Op, Outcome, Target, Trigger};

use super::process::NOTIFY;
use super::states::Names;
use crate::codes::{NEXT_DANGLING, NEXT_IGNORED};
use crate::document::Node;
use crate::shape::{self, Fields, Shape};
use crate::{Finding, Report, quoted};

const ANSWER: Shape = Shape {
    what: "an answer",
    keys: &["next", "action"],
    ignored: &[],
    hints: &[("next", "write `null` if the answer ends the session")],
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Block,
    Warn,
    Complete,
    NotifyHuman,
}

impl Action {
    const WORDS: [&'static str; 4] = ["block", "warn", "complete", "notify_human"];

    fn named(word: &str) -> Option<Self> {
        match word {
            "block" => Some(Self::Block),
            "warn" => Some(Self::Warn),
            "complete" => Some(Self::Complete),
            "notify_human" => Some(Self::NotifyHuman),
            _ => None,
        }
    }
}

/// The exits of a state, in the author's order, without those that could not be read.
pub(super) fn read(node: &Node, state: &str, names: &Names<'_>, report: &mut Report) -> Vec<Exit> {
    let what = format!("`answers` of the state {}", quoted(state));
    let entries = shape::map(node, &what, EXITS_MAX, report).unwrap_or_default();
    let exits = entries.iter().filter_map(|(key, answer)| {
        let named = shape::is_name(&key.text, "the name of an answer", NAME_BYTES_MAX, key.span, report);
        let exit = Answer { state, name: &key.text }.read(answer, names, report)?;
        named.then_some(exit)
    });
    exits.collect()
}

struct Answer<'a> {
    state: &'a str,
    name: &'a str,
}

impl Answer<'_> {
    fn read(&self, answer: &Node, names: &Names<'_>, report: &mut Report) -> Option<Exit> {
        let fields = Fields::open(answer, &ANSWER, report)?;
        let action = match fields.optional("action") {
            None => Some(None),
            Some(node) => shape::word(node, "`action`", &Action::WORDS, report).map(Action::named),
        };
        let next_node = fields.required("next", report);
        let next = next_node.and_then(|node| self.next(node, names, report));
        let (action, next) = (action?, next?);
        match (action, next_node) {
            (Some(Action::Block | Action::Complete), Some(node)) if !node.is_null() => {
                self.warn_ignored(action, node, report);
            }
            (None | Some(Action::Block | Action::Warn | Action::Complete | Action::NotifyHuman), _) => {}
        }
        Some(self.exit(action, next))
    }

    /// The target of `next`: a state, or the completed end.
    fn next(&self, node: &Node, names: &Names<'_>, report: &mut Report) -> Option<Target> {
        if node.is_null() {
            return Some(Target::End(Ending::plain(Outcome::Completed)));
        }
        let Some(name) = node.as_text() else {
            let what = format!("`next` of {}", self.description());
            return shape::wrong_type(node, &what, "a text or null", report);
        };
        let found = names.find(name);
        if found.is_none() {
            let message =
                format!("{} leads to the state {}, which does not exist", self.description(), quoted(name));
            shape::dangling(NEXT_DANGLING, node, message, names.all(), report);
        }
        found.map(Target::Node)
    }

    /// The table of action and next: `block` and `complete` end the session whatever `next` says.
    fn exit(&self, action: Option<Action>, next: Target) -> Exit {
        let plain = |to| Exit::plain(Trigger::Answer(self.name.to_owned()), to);
        match action {
            None => plain(next),
            Some(Action::Block) => plain(Target::End(Ending::plain(Outcome::Blocked))),
            Some(Action::Complete) => plain(Target::End(Ending::plain(Outcome::Completed))),
            Some(Action::Warn) => {
                Exit { ops: vec![Op::Log(format!("{}: {}", self.state, self.name))], ..plain(next) }
            }
            Some(Action::NotifyHuman) => Exit { hold: Some(NOTIFY), ..plain(next) },
        }
    }

    fn warn_ignored(&self, action: Option<Action>, next: &Node, report: &mut Report) {
        let does = if action == Some(Action::Block) { "blocks" } else { "completes" };
        let message = format!("{} {does} the session, so its `next` is ignored", self.description());
        report.add(Finding::new(NEXT_IGNORED, next.span, message).hint("write `null`"));
    }

    fn description(&self) -> String {
        format!("the answer {} of the state {}", quoted(self.name), quoted(self.state))
    }
}
