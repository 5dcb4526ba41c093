//! A session begins.

use serde_json::Value;
use std::sync::Arc;
use switchward_expr::Fuel;
use switchward_machine::{Callee, Input, Machine, RunId};
use switchward_state::approval::{ApprovalEvent, VoteFact};
use switchward_state::catalogue::Role;
use switchward_state::limits::{
    CALLEES_MAX, INPUT_BYTES_MAX, INSTRUCTIONS_BYTES_MAX, LABEL_BYTES_MAX, LABELS_MAX, MESSAGE_BYTES_MAX,
    POLICIES_PINNED_MAX, QUEUE_MAX, WORKFLOWS_MAX,
};
use switchward_state::policy::{PolicyEvent, PolicyFact};
use switchward_state::run::{RunEvent, WriteProblem, Writer};
use switchward_state::session::{Attached, Queued, SessionEvent, SessionWarning, Speaker, Start};
use switchward_state::{ReadRows as _, Reason, Rejection, Reply};

use crate::approval::votes;
use crate::catalogue::quotas::check_sessions;
use crate::catalogue::tenancy::{check_members, check_reminders};
use crate::next::Next;
use crate::policy::is_for;
use crate::run::callees;
use crate::run::writes::{self, Source, Writing};
use crate::turn::{Stop, Turn, check_size, check_text};

pub(crate) fn run(turn: &mut Turn<'_, '_>, start: &Start) -> Result<Reply, Stop> {
    let id = turn.session_id()?;
    if turn.rows.session(turn.tenant(), id)?.is_some() {
        let message = "there is a session of this key already; use another key, or look at that session";
        return Err(Rejection::new(Reason::AlreadyExists, message).fact("session", id).into());
    }
    check_sessions(turn)?;
    check(start)?;
    votes::check(turn, start)?;
    let Some(machine) = turn.rows.machine(turn.tenant(), start.machine)? else {
        return Err(Rejection::new(Reason::MachineMissing, "the machine is not installed here").into());
    };
    policies_fit(turn, start)?;
    let foreign = role(turn, start, &machine)?;
    calls_known(turn, start)?;
    let data = data(&machine, &start.input)?;
    let of_queue = queued(turn, start)?;
    let asks = start.definition.is_empty();
    if asks {
        fits_all(turn, start)?;
    }
    if let Some(said) = &start.message {
        check_text("message", said, MESSAGE_BYTES_MAX)?;
        if !machine.accepts(Input::Message) {
            let message = "the definition takes no messages";
            return Err(Rejection::new(Reason::StateMismatch, message).into());
        }
    }
    turn.emit(SessionEvent::Started {
        definition: start.definition.clone(),
        version: start.version,
        machine: start.machine,
        key: start.key.clone(),
        role: start.role.clone(),
        without_policy: foreign,
        labels: start.labels.clone(),
        input: start.input.clone(),
        contact: start.contact.clone(),
        workflows: attached(start),
        any_approver_address: start.any_approver_address,
    })?;
    given(turn, start)?;
    for text in &machine.opening.warnings {
        let warning = SessionWarning::Definition { text: text.clone() };
        turn.emit(SessionEvent::Warned { warning })?;
    }
    let root = if asks { switchward_state::run::RUN } else { RunId(1) };
    let of = start.assistant.as_ref().filter(|_| asks).map(|assistant| (assistant.name.clone(), 0));
    turn.emit(RunEvent::Created { run: root, machine: start.machine, of, queued: false })?;
    let who = turn.command.actor.subject.clone();
    let source = Source { by: Writer::Start, who: &who };
    for (at, (next, begun)) in start.queue.iter().zip(of_queue).enumerate() {
        let run = RunId(u32::try_from(at).map_or(u32::MAX, |at| at.saturating_add(2)));
        let of = Some((next.definition.clone(), next.version));
        turn.emit(RunEvent::Created { run, machine: next.machine, of, queued: true })?;
        writes::record(turn, run, begun, &source)?;
    }
    writes::record(turn, root, data, &source)?;
    if let Some(text) = &start.message {
        let speaker = Speaker::for_user(turn.command.actor.role);
        turn.emit(SessionEvent::MessagePosted { text: text.clone(), speaker })?;
    }
    turn.go(root, Next::Enter(machine.start));
    turn.moved()
}

/// The role under which policies look at the session. A caller with an agent's key must not choose one under which a
/// policy does not hold. Returns whether the session runs without its policy.
fn role(turn: &Turn<'_, '_>, start: &Start, machine: &Machine) -> Result<bool, Stop> {
    let policy = machine.opening.role.as_deref();
    let foreign = policy.is_some_and(|role| *role != start.role);
    if foreign && !turn.command.settings.allow_foreign_role {
        let role = policy.unwrap_or_default();
        let message = format!("the policy is for the role {role:?}, not for {:?}", start.role);
        return Err(Rejection::new(Reason::PolicyDenied, message).allowed([role]).into());
    }
    let mut own = policy.map(str::to_owned);
    for pinned in &start.policies {
        let attached = turn.rows.machine(turn.tenant(), pinned.machine)?;
        own = own.or_else(|| attached.and_then(|attached| attached.opening.role.clone()));
    }
    let own = own.unwrap_or_else(|| Role::Agent.word().to_owned());
    if turn.command.actor.role == Role::Agent && own != start.role {
        let message = format!(
            "an agent's key starts a session with the role {own:?}; an operator may choose another one than that"
        );
        let refusal = Rejection::new(Reason::RoleNotAllowed, message).fact("field", "role");
        return Err(refusal.allowed([own.as_str()]).into());
    }
    Ok(foreign)
}

/// What the start takes along beside its definition.
fn given(turn: &mut Turn<'_, '_>, start: &Start) -> Result<(), Stop> {
    if let Some(assistant) = start.assistant.clone() {
        turn.emit(SessionEvent::Assisted { assistant })?;
    }
    if let Some(tenant) = start.reply_tenant.clone().filter(|_| listens_to_events(turn, start)) {
        turn.emit(SessionEvent::ReplyTokensBegun { tenant })?;
    }
    if !start.audience.is_empty() {
        turn.emit(ApprovalEvent::AudienceSet { audience: start.audience.clone() })?;
        let people = turn.directory()?;
        for name in people.nobody(&start.audience) {
            let warning = SessionWarning::NobodyBehind { name: name.to_owned() };
            turn.emit(SessionEvent::Warned { warning })?;
        }
    }
    if let Some(reminders) = start.reminders {
        turn.emit(ApprovalEvent::RemindersSet { reminders })?;
    }
    if let Some(quorum) = start.quorum {
        turn.emit(ApprovalEvent::Votes(VoteFact::QuorumSet { quorum }))?;
    }
    if !start.escalation.is_empty() {
        let contacts = start.escalation.clone();
        turn.emit(ApprovalEvent::Votes(VoteFact::EscalationSet { contacts }))?;
    }
    if !start.callees.is_empty() {
        turn.emit(RunEvent::CalleesPinned { callees: start.callees.clone() })?;
    }
    if !start.policies.is_empty() {
        turn.emit(PolicyEvent::Policies(PolicyFact::Pinned { policies: start.policies.clone() }))?;
    }
    Ok(())
}

/// While the first workflow is not known yet, the input must be what any of them could begin with.
fn fits_all(turn: &Turn<'_, '_>, start: &Start) -> Result<(), Stop> {
    if start.assistant.is_none() || start.workflows.is_empty() || !start.queue.is_empty() {
        let message = "without a definition it must be with an assistant, and can queue nothing";
        return Err(Rejection::new(Reason::FieldInvalid, message).fact("field", "definition").into());
    }
    for workflow in &start.workflows {
        if let Some(machine) = turn.rows.machine(turn.tenant(), workflow.machine)? {
            data(&machine, &start.input)?;
        }
    }
    Ok(())
}

/// What the first run's data begin with: what its definition says, and over that the input, if the format has data.
/// Refused before anything is recorded.
fn data(machine: &Arc<Machine>, input: &[u8]) -> Result<Vec<(String, Value)>, Rejection> {
    let bad = |message: String| Rejection::new(Reason::SchemaViolation, message).fact("field", "input");
    let breaks = |problem: WriteProblem| match &problem {
        WriteProblem::Schema { path, .. } => bad(problem.to_string()).fact("path", path),
        WriteProblem::Reserved { .. }
        | WriteProblem::KeyLength
        | WriteProblem::TooDeep { .. }
        | WriteProblem::TooManyKeys
        | WriteProblem::Clash { .. }
        | WriteProblem::TooLarge { .. }
        | WriteProblem::NotDeclared { .. } => bad(problem.to_string()),
    };
    let mut begun = Writing::beginning(machine, &Fuel::unlimited()).map_err(breaks)?;
    if !input.is_empty() && machine.opening.input_is_data {
        let Ok(Value::Object(values)) = serde_json::from_slice(input) else {
            let message = "the input must be a JSON object: it is what the first run begins with".to_owned();
            return Err(bad(message));
        };
        begun.put_all(&values).map_err(breaks)?;
    }
    begun.checked().map_err(breaks)
}

/// What the data of the queued runs begin with.
fn queued(turn: &Turn<'_, '_>, start: &Start) -> Result<Vec<Vec<(String, Value)>>, Stop> {
    let mut all = Vec::with_capacity(start.queue.len());
    for next in &start.queue {
        let machine = turn.rows.machine(turn.tenant(), next.machine)?;
        all.push(machine.map(|machine| data(&machine, &[])).transpose()?.unwrap_or_default());
    }
    Ok(all)
}

/// Every machine is installed, and all that they call is among what the start takes along.
fn calls_known(turn: &Turn<'_, '_>, start: &Start) -> Result<(), Stop> {
    for digest in start.machines() {
        let Some(machine) = turn.rows.machine(turn.tenant(), digest)? else {
            return Err(Rejection::new(Reason::MachineMissing, "a machine is not installed here").into());
        };
        let known = |callee: &&Callee| start.callees.iter().any(|pinned| pinned.callee == **callee);
        if let Some(callee) = machine.callees.iter().find(|callee| !known(callee)) {
            let message =
                format!("{} calls {}, which the start knows nothing of", machine.meta.name, callee.name);
            return Err(callees::absent(callee, message).into());
        }
    }
    Ok(())
}

/// The definitions that the start runs must not be policy documents, and what is attached to them must be; those must be
/// for the session's role: one for another role is a refusal as the definition's own policy would be, unless the tenant
/// opts in.
fn policies_fit(turn: &Turn<'_, '_>, start: &Start) -> Result<(), Stop> {
    for digest in start.machines() {
        let Some(machine) = turn.rows.machine(turn.tenant(), digest)? else { continue };
        let pinned = start.policies.iter().find(|pinned| pinned.machine == digest);
        let Some(pinned) = pinned else {
            if machine.opening.only_policy {
                let name = &machine.meta.name;
                let message = format!("{name} is a policy: it is attached to definitions, and never started");
                return Err(Rejection::new(Reason::StateMismatch, message).fact("policy", name).into());
            }
            continue;
        };
        if !machine.opening.only_policy {
            let message = format!("{} is no policy and cannot be attached", pinned.name);
            return Err(Rejection::new(Reason::StateMismatch, message).fact("policy", &pinned.name).into());
        }
        if !is_for(&machine, &start.role) && !turn.command.settings.allow_foreign_role {
            let role = machine.opening.role.clone().unwrap_or_default();
            let (name, of) = (&pinned.name, &pinned.of);
            let message =
                format!("the policy {name} of {of} is for the role {role:?}, not for {:?}", start.role);
            return Err(Rejection::new(Reason::PolicyDenied, message).allowed([role.as_str()]).into());
        }
    }
    Ok(())
}

/// Whether events from outside can be for any state that the session may enter.
fn listens_to_events(turn: &Turn<'_, '_>, start: &Start) -> bool {
    let mut machines =
        start.machines().filter_map(|digest| turn.rows.machine(turn.tenant(), digest).ok().flatten());
    machines.any(|machine| machine.listens_to_events())
}

/// The workflows that the session may switch between.
fn attached(start: &Start) -> Vec<Attached> {
    let one = |queued: &Queued| Attached {
        definition: queued.definition.clone(),
        version: queued.version,
        machine: queued.machine,
    };
    start.workflows.iter().map(one).collect()
}

fn check(start: &Start) -> Result<(), Rejection> {
    check_text("role", &start.role, LABEL_BYTES_MAX)?;
    check_size("input", start.input.len(), INPUT_BYTES_MAX, "bytes")?;
    check_size("queue", start.queue.len(), QUEUE_MAX, "runs")?;
    check_size("callees", start.callees.len(), CALLEES_MAX, "entries")?;
    check_size("policies", start.policies.len(), POLICIES_PINNED_MAX, "entries")?;
    check_size("workflows", start.workflows.len(), WORKFLOWS_MAX, "entries")?;
    if let Some(assistant) = &start.assistant {
        check_text("assistant", &assistant.instructions, INSTRUCTIONS_BYTES_MAX)?;
    }
    check_text("contact", start.contact.as_deref().unwrap_or_default(), LABEL_BYTES_MAX)?;
    check_members("audience", &start.audience)?;
    check_members("escalation", &start.escalation)?;
    if let Some(reminders) = start.reminders {
        check_reminders("reminders", reminders)?;
    }
    check_size("labels", start.labels.len(), LABELS_MAX, "entries")?;
    for (key, value) in &start.labels {
        check_text("labels", key, LABEL_BYTES_MAX)?;
        check_text("labels", value, LABEL_BYTES_MAX)?;
    }
    Ok(())
}
