//! Whom mails about a gate reach, and what happens where that is too few.

use switchward_machine::{OpenId, SessionId, TenantId};

use crate::gates;
use crate::state::{EffectBody, Open};
use crate::turn::{Stop, Turn};
use crate::working::Working;
use crate::{Event, Key, ViewError, votes};

/// Whose mails about an open gate have come back, or are dead letters: addresses, each once.
pub(crate) fn unreached(
    rows: &Working<'_>,
    (tenant, session): (TenantId, SessionId),
    open: &Open,
) -> Result<Vec<String>, ViewError> {
    let Some(asked) = &open.gate.asked else { return Ok(Vec::new()) };
    let mut unreached = asked.bounced.clone();
    for number in &asked.mails {
        let Some(effect) = rows.outbox_at(&Key::outbox(tenant, session, *number))? else { continue };
        if let (Some(_), EffectBody::Message { to, .. }) = (effect.dead(), &effect.body)
            && !unreached.iter().any(|known| known.eq_ignore_ascii_case(to))
        {
            unreached.push(to.clone());
        }
    }
    Ok(unreached)
}

/// Where mails about an open gate have reached nobody whom it asks, and cannot any more, or too few for the approvals
/// that it needs, its next round begins. A mail that has arrived is no more among those of the gate.
pub(crate) fn reach(turn: &mut Turn<'_, '_>, gate: OpenId) -> Result<(), Stop> {
    let open = turn.rows.open(turn.tenant(), turn.session_id()?, gate)?.map(|open| Open::clone(&open));
    let Some(open) = open else { return Ok(()) };
    let Some(asked) = &open.gate.asked else { return Ok(()) };
    let dead = unreached(turn.rows, (turn.tenant(), turn.session_id()?), &open)?;
    let alive = |one: &String| !dead.iter().any(|dead| dead.eq_ignore_ascii_case(one));
    let people = turn.directory()?;
    let hers = |one: &str| asked.to.iter().any(|known| alive(known) && people.one_person(known, one));
    let few = votes::out_of_reach(&open, &people, hers);
    if let Some(why) = &few {
        let text = format!("gate {} cannot get the approvals that it needs: {why}", gate.0);
        turn.emit(Event::Warned { text, of_definition: false })?;
    }
    if few.is_some() || !asked.to.iter().any(alive) {
        gates::escalate_now(turn, gate)?;
    }
    Ok(())
}
