//! Sessions as messages.

use std::collections::BTreeMap;
use switchward_api::v1;
use switchward_engine::{GateView, RunView, SessionView};
use switchward_machine::{BudgetUnit, EndReason, Exit, Node, Op, Outcome, RunId, Status, Target};
use switchward_state::OpenItem;
use switchward_state::approval::{Quorum, Reminders, SettingSource};
use switchward_state::run::{ActiveRun, ActiveRuns, Provenance};
use switchward_state::session::StatusReason;

use super::{json, timestamp};
use crate::auth::Caller;
use crate::{names, reply_tokens};

/// A session without its runs, which [`runs`] converts.
pub(crate) fn session(caller: &Caller, view: &SessionView, gates: Vec<v1::OpenGate>) -> v1::Session {
    let (row, settled) = (&view.session, &view.settled);
    v1::Session {
        name: names::of_session(caller, view.id),
        session_id: row.key.clone().unwrap_or_default(),
        definition: if row.definition.is_empty() {
            String::new()
        } else {
            names::of_definition(caller, &row.definition)
        },
        version: row.version,
        status: status(row.status).into(),
        status_word: view.word().to_owned(),
        reason: row.reason.map(StatusReason::word).unwrap_or_default().to_owned(),
        at: vec![view.at().to_owned()],
        checkpoint: view.active.is_empty().then(|| checkpoint(view)),
        role: row.role.clone(),
        budget: Some(budget(view)),
        sequence: row.sequence,
        waiting_on: gates,
        labels: row.labels.iter().cloned().collect(),
        resumable: row.status == Status::Suspended,
        create_time: Some(timestamp(row.created)),
        update_time: Some(timestamp(row.updated)),
        end_time: row.ended.map(timestamp),
        without_policy: row.without_policy,
        data: (!view.data.is_empty()).then(|| json::to_struct(&view.data)),
        runs: Vec::new(),
        incidents: view
            .incidents
            .iter()
            .map(|effect| super::effects::incident(caller, view.id, effect))
            .collect(),
        open: view.items.iter().map(|(_, item)| open_item(view, item)).collect(),
        instructions: instructions(view),
        assistant: row.assistant.as_ref().map(|it| names::of_assistant(caller, &it.name)).unwrap_or_default(),
        reply_token: reply_tokens::shown(caller, view.reply_token().as_ref()),
        audience: settled.audience.value.clone(),
        audience_source: source(settled.audience.source).into(),
        reminders: settled.reminders.value.map(reminders),
        reminders_source: source(settled.reminders.source).into(),
        quorum: settled.quorum.value.map(quorum),
        quorum_source: source(settled.quorum.source).into(),
        escalation: settled.escalation.value.clone(),
        escalation_source: source(settled.escalation.source).into(),
        assistant_instructions: row.assistant.as_ref().map(|it| it.instructions.clone()).unwrap_or_default(),
        erase_time: row.removal.as_deref().filter(|_| row.is_erased()).map(|removal| timestamp(removal.at)),
        caller_role: super::role(caller.actor.role).into(),
        voided_gates: Vec::new(),
        data_sources: data_sources(view),
        failure: failure(view),
        active_runs: active_runs(caller, row.status, &view.active),
        active_run_count: view.active.count,
    }
}

/// Where the data come from, by key.
fn data_sources(view: &SessionView) -> BTreeMap<String, v1::DataSource> {
    let name = |node| view.machine.node(node).map(|node| node.name.clone()).unwrap_or_default();
    let source = |from: &Provenance| v1::DataSource {
        source: from.by.word().to_owned(),
        who: from.who.clone(),
        state: from.node.map(name).unwrap_or_default(),
        entry: from.entry,
        attempt: from.attempt,
        sequence: from.sequence,
    };
    view.provenance.iter().map(|(key, from)| (key.clone(), source(from))).collect()
}

/// What the session's own run has failed of.
fn failure(view: &SessionView) -> Option<v1::Failure> {
    let failure = view.run.failure.as_ref()?;
    let reason = view.run.ending.as_ref().and_then(|ending| ending.reason);
    Some(v1::Failure {
        state: view.at().to_owned(),
        attempt: failure.attempt,
        code: reason.map(EndReason::word).unwrap_or_default().to_owned(),
        message: switchward_messages::fault(&failure.fault),
        remedy: reason.map(switchward_messages::remedy).unwrap_or_default().to_owned(),
    })
}

fn source(source: SettingSource) -> v1::SettingSource {
    match source {
        SettingSource::Unset => v1::SettingSource::Unspecified,
        SettingSource::Start => v1::SettingSource::Start,
        SettingSource::DefinitionEntry => v1::SettingSource::DefinitionEntry,
        SettingSource::OwnerEntry => v1::SettingSource::OwnerEntry,
        SettingSource::Directory => v1::SettingSource::Directory,
        SettingSource::Definition => v1::SettingSource::Definition,
    }
}

pub(crate) fn reminders(asked: Reminders) -> v1::Reminders {
    v1::Reminders { every: Some(super::duration(asked.every_ms)), max: asked.max }
}

pub(crate) fn quorum(quorum: Quorum) -> v1::Quorum {
    let rule = match quorum {
        Quorum::AtLeast(1) => v1::quorum::Rule::Any(true),
        Quorum::All => v1::quorum::Rule::All(true),
        Quorum::AtLeast(least) => v1::quorum::Rule::AtLeast(least),
    };
    v1::Quorum { rule: Some(rule) }
}

/// Returns the agent's instructions in a state that has no question with answers.
fn instructions(view: &SessionView) -> String {
    let (_, text) = view.shows();
    text.filter(|_| view.answers().next().is_none()).unwrap_or_default()
}

/// The runs of a session, in the given order.
pub(crate) fn runs(caller: &Caller, runs: Vec<RunView>) -> Vec<v1::SessionRun> {
    let run = |run: RunView| v1::SessionRun {
        definition: names::of_definition(caller, &run.definition),
        status: self::status(run.status).into(),
        run: run.id.0,
        parent: run.parent.map_or(0, |parent| parent.0),
        state: run.at,
        version: run.version,
        label: run.label.unwrap_or_default(),
    };
    runs.into_iter().map(run).collect()
}

/// The runs of a session that are active side by side.
pub(crate) fn active_runs(caller: &Caller, status: Status, active: &ActiveRuns) -> Vec<v1::SessionRun> {
    let run = |run: &ActiveRun| v1::SessionRun {
        definition: names::of_definition(caller, &run.definition),
        status: self::status(status).into(),
        run: run.run.0,
        parent: run.parent.map_or(0, |parent| parent.0),
        state: run.state.clone(),
        version: run.version,
        label: run.label.clone().unwrap_or_default(),
    };
    active.runs.iter().map(run).collect()
}

/// The number of a run; 0 if it is the session's own.
fn number_below(view: &SessionView, run: RunId) -> u32 {
    if run == view.session.root { 0 } else { run.0 }
}

fn open_item(view: &SessionView, item: &OpenItem) -> v1::OpenItem {
    let head = item.head();
    v1::OpenItem {
        kind: item.kind().word().into(),
        r#type: item.item_type().word().into(),
        state: view.name_of(head.run, head.node).to_owned(),
        create_time: Some(timestamp(head.at)),
        due_time: item.due().map(timestamp),
        run: number_below(view, head.run),
    }
}

pub(crate) fn status(status: Status) -> v1::SessionStatus {
    match status {
        Status::Queued => v1::SessionStatus::Queued,
        Status::Running => v1::SessionStatus::Running,
        Status::Waiting => v1::SessionStatus::Waiting,
        Status::Suspended => v1::SessionStatus::Suspended,
        Status::Completed => v1::SessionStatus::Completed,
        Status::Blocked => v1::SessionStatus::Blocked,
        Status::Failed => v1::SessionStatus::Failed,
        Status::Cancelled => v1::SessionStatus::Cancelled,
        Status::Abandoned => v1::SessionStatus::Abandoned,
    }
}

fn checkpoint(view: &SessionView) -> v1::Checkpoint {
    let (prompt, question) = view.shows();
    checkpoint_of(view.node(), prompt.unwrap_or_default(), question.as_deref(), view.answers())
}

/// A checkpoint: the node, the text before the first turn, the question, and the answers that are accepted now.
pub(crate) fn checkpoint_of<'a>(
    node: Option<&Node>,
    prompt: &str,
    question: Option<&str>,
    accepted: impl Iterator<Item = &'a str>,
) -> v1::Checkpoint {
    let taken: Vec<&str> = accepted.collect();
    let exits = node.into_iter().flat_map(|node| &node.exits);
    let answers = exits.filter_map(|exit| {
        let key = exit.answer().filter(|key| taken.contains(key))?;
        Some(v1::AnswerOption { key: key.to_owned(), effect: effect(exit).into() })
    });
    v1::Checkpoint {
        state: node.map(|node| node.name.clone()).unwrap_or_default(),
        question: question.unwrap_or_default().to_owned(),
        prompt: prompt.to_owned(),
        answers: answers.collect(),
    }
}

fn effect(exit: &Exit) -> v1::AnswerEffect {
    let warns = exit.ops.iter().any(|op| matches!(op, Op::Log(_)));
    match &exit.to {
        _ if exit.hold.is_some() => v1::AnswerEffect::NotifyHuman,
        _ if warns => v1::AnswerEffect::Warn,
        Target::End(ending) if ending.outcome == Outcome::Blocked => v1::AnswerEffect::Block,
        Target::End(_) => v1::AnswerEffect::Complete,
        Target::Node(_) => v1::AnswerEffect::Continue,
    }
}

/// Caps and use of a session.
pub(crate) fn budget(view: &SessionView) -> v1::Budget {
    super::positions::budget(view.session.meters, view.usd_cap(), view.cap(BudgetUnit::Mails))
}

/// An open gate, as its session shows it.
pub(crate) fn open_gate(
    caller: &Caller,
    view: &SessionView,
    gate: switchward_machine::OpenId,
    row: &GateView,
) -> Option<v1::OpenGate> {
    let GateView::Open(open, ..) = row else { return None };
    let all = open.body.asked.as_ref();
    let (asked, notified) = (all.filter(|asked| !asked.open), all.filter(|asked| asked.open));
    let voting = all.and_then(|asked| asked.voting.as_ref());
    let call = open.body.call.as_ref();
    Some(v1::OpenGate {
        name: names::of_gate(caller, view.id, gate),
        kind: super::gates::kind(open.body.kind).into(),
        state: row.node().map(|node| node.name.clone()).unwrap_or_default(),
        capability: call.map(|call| call.capability.clone()).unwrap_or_default(),
        args_digest: open.body.shown().map(|digest| digest.to_string()).unwrap_or_default(),
        create_time: Some(timestamp(open.head.at)),
        approvers: asked.map(|asked| asked.to.clone()).unwrap_or_default(),
        notified: notified.map(|notified| notified.to.clone()).unwrap_or_default(),
        undeliverable: row.unreached().to_vec(),
        unnotified: row.unnotified(),
        warnings: super::gates::warnings(row),
        approvals_needed: voting.map(|voting| voting.need).unwrap_or_default(),
        caller_decisions: super::gates::caller_decisions(caller, row),
        approvals: voting.map_or(0, |voting| u32::try_from(voting.votes.len()).unwrap_or(u32::MAX)),
        held_inputs: row.held(),
        run: number_below(view, open.head.run),
    })
}
