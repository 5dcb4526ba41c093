//! Calls, grants and what is used.

use super::Site;
use crate::limits::TOOLS_NOTED_MAX;
use crate::state::Session;
use crate::working::Working;
use crate::{Event, Key, Row, ViewError};

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the match in evolve/mod.rs is exhaustive and says what comes here"
)]
pub(super) fn apply(rows: &mut Working<'_>, site: &Site<'_>, event: &Event) -> Result<(), ViewError> {
    let id = site.session()?;
    match event {
        Event::CallPermitted { number, call, mail, .. } => {
            let session = rows.session_at_mut(&site.session_key()?)?;
            session.meters.mails += u64::from(*mail);
            if let Some(number) = number {
                session.next_id = number + 1;
                session.calls.push(*number);
                reserve(session, call.reserved.0);
                rows.put(Key::call(site.tenant, id, *number), Row::Call(call.clone()));
            }
        }
        Event::CallReported { number, capability, success } => {
            called(rows, site, capability, *success)?;
            if let Some(number) = number {
                forget(rows, site, *number)?;
            }
        }
        Event::CallLapsed { number } => forget(rows, site, *number)?,
        Event::GrantMade { number, grant } => {
            let session = rows.session_at_mut(&site.session_key()?)?;
            session.next_id = number + 1;
            session.grants.push(*number);
            reserve(session, grant.reserved.0);
            rows.put(Key::grant(site.tenant, id, *number), Row::Grant(grant.clone()));
        }
        Event::GrantUsed { number } | Event::GrantLapsed { number } => drop_grant(rows, site, *number)?,
        Event::Metered { cost, tokens } => {
            let meters = &mut rows.session_at_mut(&site.session_key()?)?.meters;
            meters.usd_micros = meters.usd_micros.saturating_add(cost.0);
            meters.tokens = meters.tokens.saturating_add(*tokens);
        }
        _ => {}
    }
    Ok(())
}

/// Forgets a call and what it reserved.
fn forget(rows: &mut Working<'_>, site: &Site<'_>, number: u64) -> Result<(), ViewError> {
    let key = Key::call(site.tenant, site.session()?, number);
    let reserved = rows.call_at(&key)?.map_or(0, |call| call.reserved.0);
    let session = rows.session_at_mut(&site.session_key()?)?;
    session.calls.retain(|known| *known != number);
    give_back(session, reserved);
    rows.delete(key);
    Ok(())
}

/// Notes for the active leaf that a tool was called at its node.
fn called(rows: &mut Working<'_>, site: &Site<'_>, tool: &str, success: bool) -> Result<(), ViewError> {
    let session = rows.session_at_mut(&site.session_key()?)?;
    if session.status.ended() {
        return Ok(());
    }
    let (id, root) = (site.session()?, session.root);
    let leaf = rows.leaf(site.tenant, id, root)?;
    let known = &mut rows.run_at_mut(&Key::run(site.tenant, id, leaf))?.called;
    if let Some((_, worked)) = known.iter_mut().find(|(name, _)| name == tool) {
        *worked |= success;
    } else if known.len() < TOOLS_NOTED_MAX {
        known.push((tool.to_owned(), success));
    }
    Ok(())
}

/// Forgets a grant and what it reserved.
pub(super) fn drop_grant(rows: &mut Working<'_>, site: &Site<'_>, number: u64) -> Result<(), ViewError> {
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
