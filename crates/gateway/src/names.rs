//! Resource names: `tenants/{t}/sessions/{s}` and the like, where `-` stands for the credential's tenant and a short
//! id alone is good enough. A name of another tenant is answered like one that never existed.

use switchward_machine::{OpenId, SessionId};

use crate::auth::Caller;
use crate::error::{QUARANTINED_MAIL, Refusal};

/// Longest name that is looked at, bytes.
const NAME_BYTES_MAX: usize = 512;
/// Parts of a name that are looked at: more than any valid one has.
const PARTS: usize = 7;

/// The ids inside a name: `tenants/t/definitions/d/versions/3` with `["definitions", "versions"]` gives `[d, 3]`.
fn ids<'a, const N: usize>(
    caller: &Caller,
    kind: &str,
    field: &str,
    name: &'a str,
    collections: [&str; N],
) -> Result<[&'a str; N], Refusal> {
    if name.is_empty() {
        return Err(Refusal::field(field, "is required"));
    }
    if name.len() > NAME_BYTES_MAX || has_control(name) {
        return Err(Refusal::field(field, format!("is not a valid {kind} name")));
    }
    let mut parts = [""; PARTS];
    let mut count = 0;
    for (slot, part) in parts.iter_mut().zip(name.split('/')) {
        *slot = part;
        count += 1;
    }
    let parts = &parts[..count];
    let wanted = count == 2 + 2 * N && parts[0] == "tenants";
    let rest = match (wanted, count) {
        (true, _) if parts[1] == "-" || parts[1] == caller.tenant_name => &parts[2..],
        (true, _) => return Err(Refusal::not_found(kind, name)),
        (false, 1) if N == 1 => return Ok([name; N]),
        (false, count) if count == 2 * N => parts,
        // A short id of the first collection, and the rest in full: `deploy-gate/versions/3`.
        (false, count) if count == 2 * N - 1 && count > 1 => {
            let named = parts[1..].iter().step_by(2).zip(&collections[1..]).all(|(part, of)| part == of);
            let found = || std::array::from_fn(|at| parts[2 * at]);
            return if named { Ok(found()) } else { Err(shape(kind, field, &collections)) };
        }
        (false, _) => return Err(shape(kind, field, &collections)),
    };
    let named = rest.iter().step_by(2).zip(&collections).all(|(part, of)| part == of);
    let found: [&str; N] = std::array::from_fn(|at| rest[2 * at + 1]);
    if !named || found.iter().any(|id| id.is_empty()) {
        return Err(shape(kind, field, &collections));
    }
    Ok(found)
}

/// Returns true if a text holds control characters. Most texts are ASCII, which need not be decoded.
pub(crate) fn has_control(text: &str) -> bool {
    if text.is_ascii() {
        text.bytes().any(|byte| byte.is_ascii_control())
    } else {
        text.chars().any(char::is_control)
    }
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
    if tenant.contains('/') || name.len() > NAME_BYTES_MAX || has_control(name) {
        return Err(Refusal::field(field, "is not a valid tenant name; write tenants/-"));
    }
    Err(Refusal::not_found("tenant", name))
}

/// The session of a name: its id, or the caller's own key for it.
pub(crate) fn session(caller: &Caller, field: &str, name: &str) -> Result<SessionId, Refusal> {
    let id = ids(caller, "session", field, name, ["sessions"])?[0];
    Ok(id.parse().unwrap_or_else(|_| SessionId::from_key(caller.tenant, id)))
}

/// Returns the last part of a name. Fails if the name is of another kind, or its tenant is not the caller's.
pub(crate) fn definition<'a>(caller: &Caller, field: &str, name: &'a str) -> Result<&'a str, Refusal> {
    Ok(ids(caller, "definition", field, name, ["definitions"])?[0])
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
    let found = ids(caller, "version", field, name, ["definitions", "versions"])?;
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
    let id = ids(caller, "gate", field, name, ["gates"])?[0];
    let split = || {
        let (session, number) = id.strip_prefix(GATE_PREFIX)?.split_once('_')?;
        Some((format!("ses_{session}").parse().ok()?, OpenId(number.parse().ok()?)))
    };
    split().ok_or_else(|| Refusal::not_found("gate", name))
}

const EFFECT_PREFIX: &str = "eff_";

/// The session and the number of an effect's name.
pub(crate) fn effect(caller: &Caller, field: &str, name: &str) -> Result<(SessionId, u64), Refusal> {
    let id = ids(caller, "effect", field, name, ["effects"])?[0];
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
    let id = ids(caller, "work", field, name, ["work"])?[0];
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
    Ok(ids(caller, "API key", field, name, ["keys"])?[0])
}

/// Returns the last part of a name. Fails if the name is of another kind, or its tenant is not the caller's.
pub(crate) fn assistant<'a>(caller: &Caller, field: &str, name: &'a str) -> Result<&'a str, Refusal> {
    Ok(ids(caller, "assistant", field, name, ["assistants"])?[0])
}

/// How an assistant is named in answers.
pub(crate) fn of_assistant(caller: &Caller, name: &str) -> String {
    format!("tenants/{}/assistants/{name}", caller.tenant_name)
}

/// Returns the last part of a name. Fails if the name is of another kind, or its tenant is not the caller's.
pub(crate) fn webhook_source<'a>(caller: &Caller, field: &str, name: &'a str) -> Result<&'a str, Refusal> {
    Ok(ids(caller, "source", field, name, ["sources"])?[0])
}

/// How a source of webhooks is named in answers.
pub(crate) fn of_webhook_source(caller: &Caller, name: &str) -> String {
    format!("tenants/{}/sources/{name}", caller.tenant_name)
}

/// The mail in quarantine of a name.
pub(crate) fn quarantined<'a>(caller: &Caller, field: &str, name: &'a str) -> Result<&'a str, Refusal> {
    Ok(ids(caller, QUARANTINED_MAIL, field, name, ["quarantine"])?[0])
}

/// How a mail in quarantine is named in answers.
pub(crate) fn of_quarantined(caller: &Caller, id: &str) -> String {
    format!("tenants/{}/quarantine/{id}", caller.tenant_name)
}

/// Returns the last part of a name. Fails if the name is of another kind, or its tenant is not the caller's.
pub(crate) fn webhook_endpoint<'a>(caller: &Caller, field: &str, name: &'a str) -> Result<&'a str, Refusal> {
    Ok(ids(caller, "endpoint", field, name, ["endpoints"])?[0])
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
    ["tenants/", tenant, "/sessions/", &id.to_string()].concat()
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
    ["tenants/", &caller.tenant_name, "/definitions/", name].concat()
}

/// How a version is named in answers.
pub(crate) fn of_version(caller: &Caller, name: &str, number: u32) -> String {
    format!("tenants/{}/definitions/{name}/versions/{number}", caller.tenant_name)
}

/// How an API key is named in answers.
pub(crate) fn of_api_key(caller: &Caller, id: &str) -> String {
    format!("tenants/{}/keys/{id}", caller.tenant_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_machine::TenantId;
    use switchward_state::Actor;
    use switchward_state::catalogue::{Role, Settings};

    fn caller() -> Caller {
        Caller {
            tenant: TenantId(1),
            tenant_name: "acme".into(),
            settings: Settings::default(),
            actor: Actor { subject: "kim".into(), role: Role::Agent },
            key_id: String::new(),
        }
    }

    #[test]
    fn a_name_is_read_in_each_of_its_forms_and_in_no_other() {
        let read = |name: &str| {
            let found = ids(&caller(), "version", "name", name, ["definitions", "versions"]);
            found.map(|ids| ids.join(" ")).ok()
        };
        for name in [
            "tenants/acme/definitions/gate/versions/3",
            "tenants/-/definitions/gate/versions/3",
            "definitions/gate/versions/3",
            "gate/versions/3",
        ] {
            assert_eq!(read(name).as_deref(), Some("gate 3"), "{name}");
        }
        for name in [
            "",
            "/",
            "gate",
            "gate/3",
            "gate/version/3",
            "definitions/gate/versions/",
            "definitions/gate/versions/3/",
            "tenants/other/definitions/gate/versions/3",
            "tenants/acme/definitions/gate/versions/3/",
            "tenants/acme/definitions/gate/versions/3/a/b/c/d",
            "tenants/acme/definitions//versions/3",
        ] {
            assert_eq!(read(name), None, "{name}");
        }
    }

    #[test]
    fn control_characters_are_found_in_every_text() {
        for text in ["a\n", "\u{7f}", "ä\t", "\u{85}", "ä\u{9f}"] {
            assert!(has_control(text), "{text:?}");
        }
        assert!(!has_control("") && !has_control("a b~") && !has_control("ä\u{a0}"));
    }
}
