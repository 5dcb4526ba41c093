//! Policy documents: attached to a definition by its author, set for the tenant by its admin.

use std::sync::Arc;
use switchward_machine::Machine;
use switchward_state::catalogue::Tenancy;
use switchward_state::limits::POLICIES_MAX;
use switchward_state::policy::{
    AttachPolicy, PolicyEvent, PolicyFact, RemoveTenantPolicy, SetTenantPolicy, TenantPolicy,
};
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply};

use crate::catalogue::archive_definition::check_not_archived;
use crate::catalogue::{definitions, tenancy};
use crate::turn::{Stop, Turn, check_etag};

/// Sessions that start from now on have it, or no longer have it; those that run keep what they began with. Setting what
/// is set already changes nothing.
pub(crate) fn attach(turn: &mut Turn<'_, '_>, attach: &AttachPolicy) -> Result<Reply, Stop> {
    let AttachPolicy { definition, policy, attached, etag } = attach;
    let known = turn.rows.definition(turn.tenant(), definition)?;
    let known = known.ok_or_else(|| missing("definition", definition))?;
    check_etag("definition", etag, Some(known.etag()))?;
    let mut policies = known.policies.clone();
    drop(known);
    let found = policies.binary_search(policy);
    match (found, *attached) {
        (Ok(_), true) => return definitions::reply(turn, definition),
        (Err(_), false) => {
            let message = format!("the policy {policy} is not attached to {definition}");
            return Err(Rejection::new(Reason::NotFound, message).fact("policy", policy).into());
        }
        (Ok(at), false) => {
            policies.remove(at);
        }
        (Err(at), true) => {
            attachable(turn, definition)?;
            document(turn, policy, None)?;
            if policies.len() >= POLICIES_MAX {
                return Err(full().into());
            }
            policies.insert(at, policy.clone());
        }
    }
    turn.emit(PolicyEvent::Policies(PolicyFact::Attached { name: definition.clone(), policies }))?;
    definitions::reply(turn, definition)
}

/// A policy is attached to what sessions run.
fn attachable(turn: &Turn<'_, '_>, definition: &str) -> Result<(), Stop> {
    let known = turn.rows.definition(turn.tenant(), definition)?;
    let number = known.map_or(1, |known| known.active.unwrap_or(known.latest));
    let key = Key::version(turn.tenant(), definition, number);
    let digest = turn.rows.version_at(&key)?.map(|version| version.machine);
    let machine = match digest {
        Some(digest) => turn.rows.machine(turn.tenant(), digest)?,
        None => None,
    };
    if machine.is_some_and(|machine| machine.opening.only_policy) {
        let message = format!("{definition} is a policy, to which none can be attached");
        return Err(Rejection::new(Reason::StateMismatch, message).fact("definition", definition).into());
    }
    Ok(())
}

/// It holds at once, also for sessions that run, in this version until another one is set.
pub(crate) fn set(turn: &mut Turn<'_, '_>, set: &SetTenantPolicy) -> Result<Reply, Stop> {
    let (version, machine) = document(turn, &set.name, set.version)?;
    let known = turn.rows.tenancy_at(&Key::tenancy_record(turn.tenant()))?;
    let known = known.map(|known| Tenancy::clone(&known));
    let before = known.as_ref().map_or(&[][..], |known| known.policies.as_slice());
    let mut policies = before.to_vec();
    let fresh = TenantPolicy {
        name: set.name.clone(),
        version,
        machine: machine.digest(),
        by: turn.command.actor.subject.clone(),
        at: turn.now(),
    };
    match policies.binary_search_by(|policy| policy.name.cmp(&set.name)) {
        Ok(at) if policies[at].version == version => {
            return Ok(Reply::Policy(Box::new(policies.swap_remove(at))));
        }
        Ok(at) => policies[at] = fresh.clone(),
        Err(_) if policies.len() >= POLICIES_MAX => return Err(full().into()),
        Err(at) => policies.insert(at, fresh.clone()),
    }
    let tenancy = match known {
        Some(known) => Tenancy { revision: known.revision + 1, policies, ..known },
        None => Tenancy { policies, ..Tenancy::first(set.key.clone()) },
    };
    tenancy::record(turn, tenancy)?;
    Ok(Reply::Policy(Box::new(fresh)))
}

/// It stops to hold.
pub(crate) fn remove(turn: &mut Turn<'_, '_>, remove: &RemoveTenantPolicy) -> Result<Reply, Stop> {
    let known = turn.rows.tenancy_at(&Key::tenancy_record(turn.tenant()))?;
    let Some(known) = known else { return Err(missing("policy", &remove.name).into()) };
    let mut tenancy = Tenancy::clone(&known);
    drop(known);
    let before = tenancy.policies.len();
    tenancy.policies.retain(|policy| policy.name != remove.name);
    if tenancy.policies.len() == before {
        return Err(missing("policy", &remove.name).into());
    }
    tenancy.revision += 1;
    tenancy::record(turn, tenancy)?;
    Ok(Reply::Done)
}

/// The policy document of this name: the version, and what it compiled to.
fn document(turn: &Turn<'_, '_>, name: &str, version: Option<u32>) -> Result<(u32, Arc<Machine>), Stop> {
    let known = turn.rows.definition(turn.tenant(), name)?;
    let known = known.ok_or_else(|| missing("policy", name))?;
    check_not_archived(&known)?;
    let inactive = || {
        let message = format!("the policy {name} has no active version; activate one");
        Rejection::new(Reason::StateMismatch, message).fact("policy", name)
    };
    let number = version.or(known.active).ok_or_else(inactive)?;
    let found = turn.rows.version_at(&Key::version(turn.tenant(), name, number))?;
    let digest = found.map(|found| found.machine).ok_or_else(|| missing("version", name))?;
    let machine = turn.rows.machine(turn.tenant(), digest)?.ok_or_else(|| missing("version", name))?;
    if !machine.opening.only_policy {
        let message = format!("{name} is a {} definition and no policy", known.format);
        return Err(Rejection::new(Reason::StateMismatch, message).fact("policy", name).into());
    }
    Ok((number, machine))
}

fn missing(what: &str, name: &str) -> Rejection {
    Rejection::new(Reason::NotFound, format!("there is no such {what}: {name}"))
        .fact(if what == "definition" { "definition" } else { "policy" }, name)
}

fn full() -> Rejection {
    Rejection::new(Reason::QuotaExceeded, format!("at most {POLICIES_MAX} policies can be attached"))
}
