//! Resource names: `tenants/{t}/sessions/{s}` and the like, where `-` stands for the credential's tenant and a short
//! id alone is good enough. A name of another tenant is answered like one that never existed.

use switchward_machine::{OpenId, SessionId};

use crate::auth::Caller;
use crate::error::{QUARANTINED_MAIL, Refusal};

/// Longest name that is looked at, bytes.
const NAME_BYTES_MAX: usize = 512;

/// The ids inside a name: `tenants/t/definitions/d/versions/3` with `["definitions", "versions"]` gives `[d, 3]`.
fn ids<'a>(
    caller: &Caller,
    kind: &str,
    field: &str,
    name: &'a str,
    collections: &[&str],
) -> Result<Vec<&'a str>, Refusal> {
    if name.is_empty() {
        return Err(Refusal::field(field, "is required"));
    }
    if name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(Refusal::field(field, format!("is not a valid {kind} name")));
    }
    let parts: Vec<&str> = name.split('/').collect();
    let wanted = parts.len() == 2 + 2 * collections.len() && parts[0] == "tenants";
    let rest = match (wanted, parts.len()) {
        (true, _) if parts[1] == "-" || parts[1] == caller.tenant_name => &parts[2..],
        (true, _) => return Err(Refusal::not_found(kind, name)),
        (false, 1) if collections.len() == 1 => return Ok(parts),
        (false, count) if count == 2 * collections.len() => &parts[..],
        // A short id of the first collection, and the rest in full: `deploy-gate/versions/3`.
        (false, count) if count == 2 * collections.len() - 1 && count > 1 => {
            let named = parts[1..].iter().step_by(2).zip(&collections[1..]).all(|(part, of)| part == of);
            let shape = || shape(kind, field, collections);
            return if named { Ok(parts.iter().step_by(2).copied().collect()) } else { Err(shape()) };
        }
        (false, _) => return Err(shape(kind, field, collections)),
    };
    let named = rest.iter().step_by(2).zip(collections).all(|(part, of)| part == of);
    let found: Vec<&str> = rest.iter().skip(1).step_by(2).copied().collect();
    if !named || found.iter().any(|id| id.is_empty()) {
        return Err(shape(kind, field, collections));
    }
    Ok(found)
}

fn shape(kind: &str, field: &str, collections: &[&str]) -> Refusal {
    let path: Vec<String> = collections.iter().map(|of| format!("{of}/{{id}}")).collect();
    Refusal::field(field, format!("is not a valid {kind} name; write tenants/-/{}", path.join("/")))
}

/// The parent of a list: the credential's tenant, whatever way it is written.
pub(crate) fn parent(caller: &Caller, field: &str, name: &str) -> Result<(), Refusal> {
    let tenant = name.strip_prefix("tenants/").unwrap_or(name);
    if name.is_empty() || tenant == "-" || tenant == caller.tenant_name {
        return Ok(());
    }
    if tenant.contains('/') || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(Refusal::field(field, "is not a valid tenant name; write tenants/-"));
    }
    Err(Refusal::not_found("tenant", name))
}

/// The session of a name: its id, or the caller's own key for it.
pub(crate) fn session(caller: &Caller, field: &str, name: &str) -> Result<SessionId, Refusal> {
    let id = ids(caller, "session", field, name, &["sessions"])?[0];
    Ok(id.parse().unwrap_or_else(|_| SessionId::from_key(caller.tenant, id)))
}

/// Returns the last part of a name. Fails if the name is of another kind, or its tenant is not the caller's.
pub(crate) fn definition<'a>(caller: &Caller, field: &str, name: &'a str) -> Result<&'a str, Refusal> {
    Ok(ids(caller, "definition", field, name, &["definitions"])?[0])
}

/// Which version of a definition is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// The version that has this number, if there is one.
    Number(u32),
    /// The one that new sessions use.
    Active,
    /// The newest.
    Latest,
}

/// The definition of a version's name, and which of its versions is meant.
pub(crate) fn version<'a>(caller: &Caller, field: &str, name: &'a str) -> Result<(&'a str, Which), Refusal> {
    let found = ids(caller, "version", field, name, &["definitions", "versions"])?;
    let which = match found[1] {
        "active" => Which::Active,
        "latest" => Which::Latest,
        number => Which::Number(number.parse().map_err(|_| Refusal::not_found("version", name))?),
    };
    Ok((found[0], which))
}

const GATE_PREFIX: &str = "gat_";

/// The session and the number of a gate's name.
pub(crate) fn gate(caller: &Caller, field: &str, name: &str) -> Result<(SessionId, OpenId), Refusal> {
    let id = ids(caller, "gate", field, name, &["gates"])?[0];
    let split = || {
        let (session, number) = id.strip_prefix(GATE_PREFIX)?.split_once('_')?;
        Some((format!("ses_{session}").parse().ok()?, OpenId(number.parse().ok()?)))
    };
    split().ok_or_else(|| Refusal::not_found("gate", name))
}

const EFFECT_PREFIX: &str = "eff_";

/// The session and the number of an effect's name.
pub(crate) fn effect(caller: &Caller, field: &str, name: &str) -> Result<(SessionId, u64), Refusal> {
    let id = ids(caller, "effect", field, name, &["effects"])?[0];
    let split = || {
        let (session, number) = id.strip_prefix(EFFECT_PREFIX)?.split_once('_')?;
        Some((format!("ses_{session}").parse().ok()?, number.parse().ok()?))
    };
    split().ok_or_else(|| Refusal::not_found("effect", name))
}

/// How an effect is named in answers.
pub(crate) fn of_effect(caller: &Caller, session: SessionId, number: u64) -> String {
    effect_name(&caller.tenant_name, session, number)
}

/// The resource name of an effect of this tenant.
#[must_use]
pub fn effect_name(tenant: &str, session: SessionId, number: u64) -> String {
    let session = session.to_string();
    let short = session.strip_prefix("ses_").unwrap_or(&session);
    format!("tenants/{tenant}/effects/{EFFECT_PREFIX}{short}_{number}")
}

const WORK_PREFIX: &str = "wrk_";

/// The session and the number of a work item's name.
pub(crate) fn work(caller: &Caller, field: &str, name: &str) -> Result<(SessionId, OpenId), Refusal> {
    let id = ids(caller, "work", field, name, &["work"])?[0];
    let split = || {
        let (session, number) = id.strip_prefix(WORK_PREFIX)?.split_once('_')?;
        Some((format!("ses_{session}").parse().ok()?, OpenId(number.parse().ok()?)))
    };
    split().ok_or_else(|| Refusal::not_found("work", name))
}

/// How a work item is named in answers.
pub(crate) fn of_work(caller: &Caller, session: SessionId, work: OpenId) -> String {
    let session = session.to_string();
    let short = session.strip_prefix("ses_").unwrap_or(&session);
    format!("tenants/{}/work/{WORK_PREFIX}{short}_{}", caller.tenant_name, work.0)
}

/// The id of an API key's name.
pub(crate) fn api_key<'a>(caller: &Caller, field: &str, name: &'a str) -> Result<&'a str, Refusal> {
    Ok(ids(caller, "API key", field, name, &["keys"])?[0])
}

/// Returns the last part of a name. Fails if the name is of another kind, or its tenant is not the caller's.
pub(crate) fn assistant<'a>(caller: &Caller, field: &str, name: &'a str) -> Result<&'a str, Refusal> {
    Ok(ids(caller, "assistant", field, name, &["assistants"])?[0])
}

/// How an assistant is named in answers.
pub(crate) fn of_assistant(caller: &Caller, name: &str) -> String {
    format!("tenants/{}/assistants/{name}", caller.tenant_name)
}

/// Returns the last part of a name. Fails if the name is of another kind, or its tenant is not the caller's.
pub(crate) fn webhook_source<'a>(caller: &Caller, field: &str, name: &'a str) -> Result<&'a str, Refusal> {
    Ok(ids(caller, "source", field, name, &["sources"])?[0])
}

/// How a source of webhooks is named in answers.
pub(crate) fn of_webhook_source(caller: &Caller, name: &str) -> String {
    format!("tenants/{}/sources/{name}", caller.tenant_name)
}

/// The mail in quarantine of a name.
pub(crate) fn quarantined<'a>(caller: &Caller, field: &str, name: &'a str) -> Result<&'a str, Refusal> {
    Ok(ids(caller, QUARANTINED_MAIL, field, name, &["quarantine"])?[0])
}

/// How a mail in quarantine is named in answers.
pub(crate) fn of_quarantined(caller: &Caller, id: &str) -> String {
    format!("tenants/{}/quarantine/{id}", caller.tenant_name)
}

/// Returns the last part of a name. Fails if the name is of another kind, or its tenant is not the caller's.
pub(crate) fn webhook_endpoint<'a>(caller: &Caller, field: &str, name: &'a str) -> Result<&'a str, Refusal> {
    Ok(ids(caller, "endpoint", field, name, &["endpoints"])?[0])
}

/// How an endpoint is named in answers.
pub(crate) fn of_webhook_endpoint(caller: &Caller, name: &str) -> String {
    endpoint_name(&caller.tenant_name, name)
}

/// The resource name of an endpoint of this tenant.
#[must_use]
pub fn endpoint_name(tenant: &str, name: &str) -> String {
    format!("tenants/{tenant}/endpoints/{name}")
}

/// How a session is named in answers.
pub(crate) fn of_session(caller: &Caller, id: SessionId) -> String {
    session_name(&caller.tenant_name, id)
}

/// The resource name of a session of this tenant.
#[must_use]
pub fn session_name(tenant: &str, id: SessionId) -> String {
    format!("tenants/{tenant}/sessions/{id}")
}

/// How a gate is named in answers.
pub(crate) fn of_gate(caller: &Caller, session: SessionId, gate: OpenId) -> String {
    gate_name(&caller.tenant_name, session, gate)
}

/// The resource name of a gate of this tenant.
#[must_use]
pub fn gate_name(tenant: &str, session: SessionId, gate: OpenId) -> String {
    let session = session.to_string();
    let short = session.strip_prefix("ses_").unwrap_or(&session);
    format!("tenants/{tenant}/gates/{GATE_PREFIX}{short}_{}", gate.0)
}

/// How a definition is named in answers.
pub(crate) fn of_definition(caller: &Caller, name: &str) -> String {
    format!("tenants/{}/definitions/{name}", caller.tenant_name)
}

/// How a version is named in answers.
pub(crate) fn of_version(caller: &Caller, name: &str, number: u32) -> String {
    format!("tenants/{}/definitions/{name}/versions/{number}", caller.tenant_name)
}

/// How an API key is named in answers.
pub(crate) fn of_api_key(caller: &Caller, id: &str) -> String {
    format!("tenants/{}/keys/{id}", caller.tenant_name)
}
