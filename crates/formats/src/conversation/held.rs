//! The values that an approval showed, and their later use. See `docs/formats-conversation.md#approval` and
//! `docs/formats-conversation-operations.md#data`.
//!
//! Each value that a request shows is followed from the port `approved` on, until another approval shows it again, to the
//! mails, HTTP requests and sub-workflows that use it. A use is reported if the data may have changed on the way: because
//! somebody acts in a state between, or because the state itself waits before it uses the value. Values read from
//! `approval.<state>.shown` stay as they were shown.

use std::collections::BTreeSet;

use switchward_expr::{Braces, Path, Strict, reads};
use switchward_machine::{Channel, Dialect, Message, Op, Recipient, Text};

use super::approval::APPROVED;
use super::reserved;
use super::state::{Kind, State};
use super::steps::{self, Step, What};
use super::transitions::Edge;
use crate::codes::CHANGED_SINCE_SHOWN;
use crate::document::Span;
use crate::limits::{SHOWN_STEPS_MAX, SHOWN_TRACED_MAX};
use crate::{Finding, Report, quoted};

/// Warns of values that may have changed between approval and use.
pub(super) fn warn(states: &[State<'_>], edges: &[Vec<Edge<'_>>], report: &mut Report) {
    let shown: Vec<Vec<Path>> = states.iter().map(shown).collect();
    let ways: Vec<Vec<usize>> = states.iter().zip(edges).map(|(state, edges)| ways(state, edges)).collect();
    let rests: Vec<bool> = states.iter().zip(edges).map(|(state, edges)| rests(state, edges)).collect();
    let uses: Vec<Vec<Use>> = states.iter().map(uses).collect();
    let mut found = BTreeSet::new();
    let mut left = SHOWN_STEPS_MAX;
    for (at, paths) in shown.iter().enumerate() {
        for path in paths.iter().take(SHOWN_TRACED_MAX) {
            let trace = Trace { shown: &shown, ways: &ways, rests: &rests, uses: &uses, path };
            let first = edges[at].iter().filter(|edge| edge.port == Some(APPROVED));
            let first = first.filter_map(|edge| usize::try_from(edge.to.0).ok());
            trace.follow(first, &mut left, &mut |span, used| {
                found.insert((span, at, used.to_owned()));
            });
        }
    }
    for (span, at, used) in found {
        let state = states[at].name;
        let message = format!(
            "an agent may have changed {} since the approval {} showed it",
            quoted(&used),
            quoted(state)
        );
        let finding = Finding::new(CHANGED_SINCE_SHOWN, span, message);
        report.add(finding.hint(format!("use the approved value: approval.{state}.shown.{used}")));
    }
}

/// The values that the request of a state shows, without those that only the engine writes.
fn shown(state: &State<'_>) -> Vec<Path> {
    let Kind::Approval(spec) = &state.kind else { return Vec::new() };
    let Some(inquiry) = &spec.inquiry else { return Vec::new() };
    let mut found = Used::default();
    inquiry.message.texts().for_each(|text| found.text(text));
    found.paths.retain(|path| !path.names().next().is_some_and(reserved::holds));
    found.paths.sort();
    found.paths.dedup();
    found.paths
}

/// The states that a state leads to, whatever its guards decide.
fn ways(state: &State<'_>, edges: &[Edge<'_>]) -> Vec<usize> {
    let mut targets = Vec::new();
    if let Kind::Operations(list) = &state.kind {
        steps::targets(list, &mut targets);
    }
    let all = edges.iter().map(|edge| edge.to).chain(targets);
    all.filter_map(|to| usize::try_from(to.0).ok()).collect()
}

/// Returns true if data can change between the entry of a state and its end.
fn rests(state: &State<'_>, edges: &[Edge<'_>]) -> bool {
    let stays = || !edges.is_empty() && !edges.iter().any(|edge| edge.port.is_none() && edge.guard.is_open());
    match &state.kind {
        Kind::Conversation
        | Kind::Action
        | Kind::Timer(_)
        | Kind::Event(..)
        | Kind::Work(_)
        | Kind::Reply(..)
        | Kind::Approval(_)
        | Kind::Task(_)
        | Kind::Delegate(_)
        | Kind::Subworkflow(_) => true,
        Kind::Operations(list) => steps::waits(list) || stays() || state.gate.is_some() || retried(state),
        Kind::Output(_) | Kind::NotRun => state.gate.is_some() || retried(state),
    }
}

/// Returns true if time passes before the state is tried again.
fn retried(state: &State<'_>) -> bool {
    state.errors.attempts.max > 1 && state.errors.attempts.backoff_ms > 0
}

/// What a state or one of its operations reads for the outside.
struct Use {
    span: Span,
    /// True if data may have changed since what comes before it.
    changed_before: bool,
    used: Used,
    /// True if data may change while it runs.
    changes: bool,
}

/// What a state reads for the outside, in order.
fn uses(state: &State<'_>) -> Vec<Use> {
    let (mut used, mut inner) = (Used::default(), Vec::new());
    let mut changed_before = retried(state);
    match &state.kind {
        Kind::Output(Some(message)) => used.message(message),
        Kind::Task(spec) => spec.inquiry.iter().for_each(|inquiry| used.message(&inquiry.message)),
        Kind::Subworkflow(call) => used.paths.extend(call.input.iter().map(|one| one.from.clone())),
        Kind::Operations(list) => {
            changed_before |= state.errors.attempts.max > 1 && steps::waits(list);
            uses_of(list, &[], &mut inner);
        }
        Kind::Conversation
        | Kind::Action
        | Kind::Output(None)
        | Kind::Timer(_)
        | Kind::Event(..)
        | Kind::Work(_)
        | Kind::Reply(..)
        | Kind::Approval(_)
        | Kind::Delegate(_)
        | Kind::NotRun => {}
    }
    let whole = Use { span: state.span, changed_before, used, changes: false };
    std::iter::once(whole).chain(inner).collect()
}

/// The same of operations; `items` are the item names of the enclosing loops.
fn uses_of(list: &[Step], items: &[&str], found: &mut Vec<Use>) {
    for step in list {
        let mut used = Used::default();
        match &step.what {
            What::Run(Op::Send(message)) => used.message(message),
            What::Http(work) => work.input.iter().for_each(|input| used.braces(input)),
            What::Loop { item, steps: inner, .. } => {
                let (changed_before, used) = (steps::waits(inner), Used::default());
                found.push(Use { span: step.span, changed_before, used, changes: false });
                let items: Vec<&str> = items.iter().copied().chain([item.as_str()]).collect();
                uses_of(inner, &items, found);
            }
            What::Run(_) | What::Branch(..) | What::Wait(_) => {}
        }
        used.paths.retain(|path| !path.names().next().is_some_and(|name| items.contains(&name)));
        let changes = matches!(step.what, What::Http(_) | What::Wait(_));
        found.push(Use { span: step.span, changed_before: false, used, changes });
    }
}

/// Follows one value.
struct Trace<'t> {
    shown: &'t [Vec<Path>],
    ways: &'t [Vec<usize>],
    rests: &'t [bool],
    uses: &'t [Vec<Use>],
    path: &'t Path,
}

impl Trace<'_> {
    /// Follows the value from these states; calls `emit` with each use of a value that may have changed, and its span.
    /// Stops if no steps are left.
    fn follow(
        &self,
        first: impl Iterator<Item = usize>,
        left: &mut usize,
        emit: &mut impl FnMut(Span, &str),
    ) {
        let mut open: Vec<(usize, bool)> = first.map(|at| (at, false)).collect();
        let mut seen = vec![[false; 2]; self.uses.len()];
        let mut cost = seen.len();
        while let Some((at, changed)) = open.pop() {
            let Some(uses) = self.uses.get(at) else { continue };
            // A visit with `changed` covers one without.
            if seen[at][1] || std::mem::replace(&mut seen[at][usize::from(changed)], true) {
                continue;
            }
            let paths: usize = uses.iter().map(|one| 1 + one.used.paths.len()).sum();
            cost += 1 + self.shown[at].len() + self.ways[at].len() + paths;
            *left = left.saturating_sub(std::mem::take(&mut cost));
            if *left == 0 {
                return;
            }
            if self.shown[at].iter().any(|shown| covers(shown, self.path)) {
                continue;
            }
            self.visit(uses, changed, emit);
            let changed = changed || self.rests[at];
            open.extend(self.ways[at].iter().map(|to| (*to, changed)));
        }
    }

    /// Checks what a state reads, in order.
    fn visit(&self, uses: &[Use], mut changed: bool, emit: &mut impl FnMut(Span, &str)) {
        for one in uses {
            changed |= one.changed_before;
            self.used(one.span, &one.used, changed, emit);
            changed |= one.changes;
        }
    }

    fn used(&self, span: Span, used: &Used, changed: bool, emit: &mut impl FnMut(Span, &str)) {
        if !changed {
            return;
        }
        if used.whole {
            emit(span, self.path.as_str());
        }
        for path in &used.paths {
            if covers(self.path, path) {
                emit(span, path.as_str());
            } else if covers(path, self.path) {
                emit(span, self.path.as_str());
            }
        }
    }
}

/// Returns true if one path is the other or a prefix of it.
fn covers(outer: &Path, inner: &Path) -> bool {
    let (outer, inner) = (outer.as_str(), inner.as_str());
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The parts of the data that something reads.
#[derive(Default)]
struct Used {
    paths: Vec<Path>,
    whole: bool,
}

impl Used {
    /// Records a message that leaves the server; one in the conversation does not.
    fn message(&mut self, message: &Message) {
        if message.channel == Channel::Chat {
            return;
        }
        message.texts().for_each(|text| self.text(text));
        for recipient in &message.to {
            match recipient {
                Recipient::Address(text) => self.braces(text),
                Recipient::Listed(path) => self.paths.push(path.clone()),
                Recipient::Contact | Recipient::Participants => {}
            }
        }
    }

    fn text(&mut self, text: &Text) {
        match text.dialect {
            Dialect::Plain => {}
            Dialect::Braces => self.braces(&text.source),
            Dialect::Strict => self.paths.extend(Strict::parse(&text.source).references().cloned()),
            Dialect::Jinja => {
                let found = reads(&text.source);
                self.paths.extend(found.paths);
                self.whole |= found.whole;
            }
        }
    }

    fn braces(&mut self, source: &str) {
        self.paths.extend(Braces::parse(source).references().cloned());
    }
}
