//! Calls, grants and what is used.

use super::Site;
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
        Event::CallReported { number: Some(number), .. } | Event::CallLapsed { number } => {
            let key = Key::call(site.tenant, id, *number);
            let reserved = rows.call_at(&key)?.map_or(0, |call| call.reserved.0);
            let session = rows.session_at_mut(&site.session_key()?)?;
            session.calls.retain(|known| known != number);
            give_back(session, reserved);
            rows.delete(key);
        }
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
