//! The start of a session: its definitions and their versions.

use switchward_api::v1;
use switchward_machine::{Digest, SessionId};
use switchward_query::{
    Evaluate, GetAssistant, GetDefinition, GetVersion, PinDefinitions, Pinning, Reader, Source,
};
use switchward_state::approval::{Quorum, Reminders};
use switchward_state::catalogue::Role;
use switchward_state::limits::{MESSAGE_BYTES_MAX, QUEUE_MAX, WORKFLOWS_MAX};
use switchward_state::session::{Assisted, Queued, SessionCommand, Start};
use switchward_state::{Body, Scope};

use crate::api::{Call, position_after, request_id};
use crate::auth::Caller;
use crate::error::{Reason, Refusal};
use crate::refusals::unreadable;
use crate::{convert, names};

const ROLE_DEFAULT: &str = "agent";

pub(super) async fn start(
    call: &Call<'_>,
    message: v1::StartSessionRequest,
) -> Result<v1::StartSessionResponse, Refusal> {
    let request = request_id(&message.request_id, "StartSession", &message)?;
    of_agents(&call.caller, &message)?;
    let key = (!message.session_id.is_empty()).then(|| message.session_id.clone());
    if let Some(key) = &key {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !(4..=63).contains(&key.len()) || !key.chars().all(fits) {
            return Err(Refusal::field("session_id", "must be 4 to 63 characters of a-z, 0-9 and -"));
        }
    }
    let tenant = call.caller.tenant;
    let id = match (&key, &request) {
        (Some(key), _) => SessionId::from_key(tenant, key),
        (None, Some(request)) => SessionId::from_request(tenant, &request.id),
        (None, None) => SessionId(rand::random()),
    };
    if message.labels.keys().any(String::is_empty) {
        return Err(Refusal::field("labels", "must have keys of 1 to 256 bytes"));
    }
    if message.message.len() > MESSAGE_BYTES_MAX {
        return Err(Refusal::field("message", format!("must be at most {MESSAGE_BYTES_MAX} bytes")));
    }
    let start = async { Ok(Body::Session(SessionCommand::Start(resolved(call, key, message).await?))) };
    let reply = call.execute_prepared(Scope::Session(id), request, start).await;
    let reply = reply.map_err(|refusal| {
        let taken = refusal.reason() == Reason::AlreadyExists;
        if taken { refusal.resource("session", names::of_session(&call.caller, id)) } else { refusal }
    })?;
    let view = position_after(id, reply, "")?;
    let warnings = view.position.warnings.iter().map(switchward_messages::session_warning).collect();
    let session = convert::positions::session(&call.caller, &view);
    Ok(v1::StartSessionResponse { session: Some(session), warnings })
}

/// Refuses settings that an agent's key must not choose: who decides about the agent, and how many must.
fn of_agents(caller: &Caller, message: &v1::StartSessionRequest) -> Result<(), Refusal> {
    let said = [
        ("audience", !message.audience.is_empty()),
        ("quorum", message.quorum.is_some()),
        ("reminders", message.reminders.is_some()),
        ("escalation", !message.escalation.is_empty()),
    ];
    match said.into_iter().find(|(_, said)| *said) {
        Some((field, _)) if caller.actor.role == Role::Agent => Err(not_for_agents(field)),
        Some(_) | None => Ok(()),
    }
}

fn not_for_agents(field: &str) -> Refusal {
    let message = match field {
        "version" => "a session starts with the active version, which an author chooses".to_owned(),
        field => format!("the directory defines who decides; an operator may set {field} for one session"),
    };
    let message = format!("an agent's key may not set `{field}`: {message}");
    let role = Role::Agent.word();
    Refusal::new(Reason::RoleNotAllowed, message).meta("field", field).meta("role", role)
}

/// The catalogue as one start sees it.
struct Catalogue<'c> {
    call: &'c Call<'c>,
    rows: Reader,
}

impl Catalogue<'_> {
    fn answer<Q: Evaluate>(&self, query: &Q) -> Result<Q::Answer, Refusal> {
        self.rows.answer(query).map_err(unreadable)
    }
}

/// Resolves all definitions that a start names in the current catalogue.
async fn resolved(
    call: &Call<'_>,
    key: Option<String>,
    message: v1::StartSessionRequest,
) -> Result<Start, Refusal> {
    // One view of the catalogue, so that all that the session gets fits together.
    let catalogue = Catalogue { call, rows: call.api.reader(Source::Catalogue).await? };
    let about = match message.assistant.as_str() {
        "" => plain(&catalogue, &message)?,
        assistant => assisted(&catalogue, assistant, &message)?,
    };
    let queue = runs_of(&catalogue, "queue", QUEUE_MAX, &message.queue)?;
    let others = queue.iter().chain(&about.workflows).map(|other| other.machine);
    let machines: Vec<Digest> = [about.machine].into_iter().chain(others).collect();
    let runs = queue.iter().chain(&about.workflows).map(|other| other.definition.clone());
    let definitions: Vec<String> = [about.definition.clone()].into_iter().chain(runs).collect();
    let query = PinDefinitions { tenant: call.caller.tenant, machines, definitions };
    let Pinning { callees, policies } = catalogue.answer(&query)??;
    Ok(Start {
        definition: about.definition,
        version: about.version,
        machine: about.machine,
        key,
        role: if message.role.is_empty() { ROLE_DEFAULT.to_owned() } else { message.role },
        labels: message.labels.into_iter().collect(),
        input: message.input.map(|input| json(&input)).transpose()?.unwrap_or_default(),
        queue,
        contact: (!message.contact.is_empty()).then_some(message.contact),
        workflows: about.workflows,
        assistant: about.assistant,
        message: (!message.message.is_empty()).then_some(message.message),
        callees,
        reply_tenant: Some(call.caller.tenant_name.clone()),
        audience: message.audience,
        reminders: message.reminders.map(|asked| reminders("reminders", asked)).transpose()?,
        quorum: message.quorum.map(|asked| quorum("quorum", asked)).transpose()?,
        escalation: message.escalation,
        any_approver_address: false,
        policies,
    })
}

/// Converts the reminders of approvers.
pub(super) fn reminders(field: &str, asked: v1::Reminders) -> Result<Reminders, Refusal> {
    let bad = |problem| Refusal::field(format!("{field}.every"), problem);
    let every = asked.every.ok_or_else(|| bad("is required"))?;
    let every_ms = convert::ms_of(every)
        .ok_or_else(|| bad("must be a duration that is not negative, and at most 10,000 years"))?;
    Ok(Reminders { every_ms, max: asked.max })
}

/// Converts the number of approvals needed.
pub(super) fn quorum(field: &str, asked: v1::Quorum) -> Result<Quorum, Refusal> {
    use v1::quorum::Rule;
    let truth = |rule| Refusal::field(format!("{field}.{rule}"), "must be true if it is set");
    match asked.rule {
        None | Some(Rule::Any(true)) => Ok(Quorum::AtLeast(1)),
        Some(Rule::Any(false)) => Err(truth("any")),
        Some(Rule::All(true)) => Ok(Quorum::All),
        Some(Rule::All(false)) => Err(truth("all")),
        Some(Rule::AtLeast(least)) => Ok(Quorum::AtLeast(least)),
    }
}

/// The definitions with which a session begins.
struct About {
    /// Empty if the first message decides it.
    definition: String,
    version: u32,
    machine: Digest,
    /// The workflows it may switch between; empty if there is only one.
    workflows: Vec<Queued>,
    assistant: Option<Assisted>,
}

/// A session of one definition, with those that it may switch to.
fn plain(catalogue: &Catalogue<'_>, message: &v1::StartSessionRequest) -> Result<About, Refusal> {
    let caller = &catalogue.call.caller;
    let name = names::definition(caller, "definition", &message.definition)?.to_owned();
    let (version, machine) = version(catalogue, &name, message.version, &message.definition)?;
    let mut workflows = runs_of(catalogue, "workflows", WORKFLOWS_MAX, &message.workflows)?;
    if !workflows.is_empty() && workflows.iter().all(|known| known.definition != name) {
        workflows.insert(0, Queued { definition: name.clone(), version, machine });
    }
    Ok(About { definition: name, version, machine, workflows, assistant: None })
}

/// A session with an assistant: of the workflow that is named, else of its only one, else of those that the first
/// message selects.
fn assisted(
    catalogue: &Catalogue<'_>,
    asked: &str,
    message: &v1::StartSessionRequest,
) -> Result<About, Refusal> {
    let caller = &catalogue.call.caller;
    let name = names::assistant(caller, "assistant", asked)?;
    if !message.workflows.is_empty() {
        return Err(Refusal::field(
            "workflows",
            "must be empty: the session has the workflows of the assistant",
        ));
    }
    let query = GetAssistant { tenant: caller.tenant, name: name.to_owned() };
    let row = catalogue.answer(&query)?.ok_or_else(|| Refusal::not_found("assistant", asked))?;
    let assistant = Some(Assisted { name: row.name.clone(), instructions: row.instructions.clone() });
    let mut workflows = runs_of(catalogue, "assistant", WORKFLOWS_MAX, &row.workflows)?;
    let first = match (message.definition.as_str(), workflows.as_slice()) {
        ("", [only]) => Some(only.definition.clone()),
        ("", _) => None,
        (requested, _) => Some(names::definition(caller, "definition", requested)?.to_owned()),
    };
    let Some(definition) = first else {
        if message.version.is_some() {
            return Err(Refusal::field("version", "may be set only together with a definition"));
        }
        if !message.queue.is_empty() {
            return Err(Refusal::field("queue", "may be set only together with a definition"));
        }
        let (definition, version, machine) = (String::new(), 0, row.machine);
        return Ok(About { definition, version, machine, workflows, assistant });
    };
    let names = || workflows.iter().map(|known| known.definition.clone()).collect::<Vec<_>>();
    let at = workflows.iter().position(|known| known.definition == definition);
    let at = at.ok_or_else(|| {
        Refusal::field(
            "definition",
            format!("is not one of the assistant's workflows: {}", names().join(", ")),
        )
    })?;
    let (version, machine) = version(catalogue, &definition, message.version, &message.definition)?;
    // The version that was asked for is also the one to come back to.
    workflows[at] = Queued { definition: definition.clone(), version, machine };
    if workflows.len() == 1 {
        workflows.clear();
    }
    Ok(About { definition, version, machine, workflows, assistant })
}

/// Definitions that a start names beside its own, each in its active version.
fn runs_of(
    catalogue: &Catalogue<'_>,
    field: &str,
    max: usize,
    names: &[String],
) -> Result<Vec<Queued>, Refusal> {
    if names.len() > max {
        return Err(Refusal::field(field, format!("must hold at most {max} definitions")));
    }
    let mut queue = Vec::new();
    for asked in names {
        let definition = names::definition(&catalogue.call.caller, field, asked)?.to_owned();
        let (version, machine) = version(catalogue, &definition, None, asked)?;
        queue.push(Queued { definition, version, machine });
    }
    Ok(queue)
}

/// The version that a start uses, and its machine.
fn version(
    catalogue: &Catalogue<'_>,
    name: &str,
    requested: Option<u32>,
    asked: &str,
) -> Result<(u32, Digest), Refusal> {
    let caller = &catalogue.call.caller;
    let definition = catalogue.answer(&GetDefinition { tenant: caller.tenant, name: name.to_owned() })?;
    let definition = definition.ok_or_else(|| Refusal::not_found("definition", asked))?;
    if requested.is_some_and(|requested| definition.active != Some(requested))
        && caller.actor.role == Role::Agent
    {
        return Err(not_for_agents("version"));
    }
    let number = requested.or(definition.active).ok_or_else(|| {
        let message = format!("the definition {name} has no active version; activate one, or name one");
        Refusal::new(Reason::StateMismatch, message)
    })?;
    if definition.archived.is_some() {
        let message = format!("the definition {name} is archived: no session starts with it");
        return Err(Refusal::new(Reason::DefinitionArchived, message).meta("definition", name));
    }
    if definition.retired(number).is_some() {
        let message = format!("version {number} of {name} is retired: new sessions cannot use it");
        return Err(Refusal::new(Reason::VersionRetired, message).meta("version", number.to_string()));
    }
    let query = GetVersion { tenant: caller.tenant, name: name.to_owned(), number };
    let version = catalogue.answer(&query)?;
    let missing = || Refusal::not_found("version", names::of_version(caller, name, number));
    Ok((number, version.ok_or_else(missing)?.machine))
}

/// A struct as JSON. Doubles that stand for no number, and integers that a double cannot hold, are refused.
fn json(input: &prost_types::Struct) -> Result<Vec<u8>, Refusal> {
    let value = convert::json::of_struct(input).map_err(|problem| Refusal::field("input", problem))?;
    serde_json::to_vec(&value).map_err(|error| Refusal::field("input", error.to_string()))
}
