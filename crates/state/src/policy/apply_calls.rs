//! Calls, grants and what is used.

use switchward_machine::RunId;

use crate::limits::TOOLS_NOTED_MAX;
use crate::policy::{PolicyEvent, PolicyFact, apply_ledger};
use crate::session::Session;
use crate::{Key, Row, Site, ViewError, WriteRows};

/// Applies an event about calls, usage, ledgers or policy documents.
pub(crate) fn apply(rows: &mut dyn WriteRows, site: &Site<'_>, event: &PolicyEvent) -> Result<(), ViewError> {
    match event {
        PolicyEvent::CallPermitted { number, call, mail, .. } => {
            let session = rows.session_at_mut(&site.session_key()?)?;
            session.meters.mails += u64::from(*mail);
            if let Some(number) = number {
                session.next_id = number + 1;
                session.calls.push(*number);
                reserve(session, call.reserved.0);
                rows.put(Key::call(site.tenant, site.session()?, *number), Row::Call(call.clone()));
            }
        }
        PolicyEvent::CallReported { number, capability, success, run } => {
            called(rows, site, *run, capability, *success)?;
            if let Some(number) = number {
                forget(rows, site, *number)?;
            }
        }
        PolicyEvent::CallLapsed { number } => forget(rows, site, *number)?,
        PolicyEvent::GrantMade { number, grant } => {
            let session = rows.session_at_mut(&site.session_key()?)?;
            session.next_id = number + 1;
            session.grants.push(*number);
            reserve(session, grant.reserved.0);
            rows.put(Key::grant(site.tenant, site.session()?, *number), Row::Grant(grant.clone()));
        }
        PolicyEvent::GrantUsed { number } | PolicyEvent::GrantLapsed { number } => {
            drop_grant(rows, site, *number)?
        }
        PolicyEvent::Metered { cost, tokens } => {
            let meters = &mut rows.session_at_mut(&site.session_key()?)?.meters;
            meters.usd_micros = meters.usd_micros.saturating_add(cost.0);
            meters.tokens = meters.tokens.saturating_add(*tokens);
        }
        PolicyEvent::CapRaised { run, param, value } => {
            let params = &mut rows.run_at_mut(&Key::run(site.tenant, site.session()?, *run))?.params;
            params.retain(|(known, _)| known != param);
            params.push((*param, *value));
        }
        PolicyEvent::CallDenied { .. }
        | PolicyEvent::CallAsked { .. }
        | PolicyEvent::BudgetExhausted { .. } => {}
        PolicyEvent::LedgerReserved { .. }
        | PolicyEvent::LedgerConfirmed { .. }
        | PolicyEvent::LedgerSettled { .. }
        | PolicyEvent::Swept(_) => apply_ledger::apply(rows, site, event)?,
        PolicyEvent::Policies(PolicyFact::Pinned { policies }) => {
            rows.session_at_mut(&site.session_key()?)?.policies.clone_from(policies);
        }
        PolicyEvent::Policies(PolicyFact::Attached { name, policies }) => {
            let definition = rows.definition_at_mut(&Key::definition(site.tenant, name))?;
            definition.policies.clone_from(policies);
            definition.updated = site.at;
        }
    }
    Ok(())
}

/// Forgets a call and what it reserved.
fn forget(rows: &mut dyn WriteRows, site: &Site<'_>, number: u64) -> Result<(), ViewError> {
    let key = Key::call(site.tenant, site.session()?, number);
    let reserved = rows.call_at(&key)?.map_or(0, |call| call.reserved.0);
    let session = rows.session_at_mut(&site.session_key()?)?;
    session.calls.retain(|known| *known != number);
    give_back(session, reserved);
    rows.delete(key);
    Ok(())
}

/// Notes for a run that a tool was called at its node; if none is named, for the first active leaf.
fn called(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    run: Option<RunId>,
    tool: &str,
    success: bool,
) -> Result<(), ViewError> {
    let session = rows.session_at_mut(&site.session_key()?)?;
    if session.status.ended() {
        return Ok(());
    }
    let (id, root) = (site.session()?, session.root);
    let caller = match run {
        Some(run) => run,
        None => rows.leaves(site.tenant, id, root, 1)?.first().copied().unwrap_or(root),
    };
    let at = rows.run_at_mut(&Key::run(site.tenant, id, caller))?;
    if at.ending.is_some() {
        return Ok(());
    }
    let known = &mut at.called;
    if let Some((_, worked)) = known.iter_mut().find(|(name, _)| name == tool) {
        *worked |= success;
    } else if known.len() < TOOLS_NOTED_MAX {
        known.push((tool.to_owned(), success));
    }
    Ok(())
}

/// Forgets a grant and what it reserved.
pub(crate) fn drop_grant(rows: &mut dyn WriteRows, site: &Site<'_>, number: u64) -> Result<(), ViewError> {
    let key = Key::grant(site.tenant, site.session()?, number);
    let reserved = rows.grant_at(&key)?.map_or(0, |grant| grant.reserved.0);
    let session = rows.session_at_mut(&site.session_key()?)?;
    session.grants.retain(|known| *known != number);
    give_back(session, reserved);
    rows.delete(key);
    Ok(())
}

fn reserve(session: &mut Session, micros: u64) {
    session.meters.reserved_micros = session.meters.reserved_micros.saturating_add(micros);
}

fn give_back(session: &mut Session, micros: u64) {
    session.meters.reserved_micros = session.meters.reserved_micros.saturating_sub(micros);
}
