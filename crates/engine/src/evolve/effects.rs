//! The outbox: what waits in it is counted in the session's row.

use super::{Site, gates};
use crate::state::{Dead, Effect, EffectBody, Fate, Outbox, Session};
use crate::working::Working;
use crate::{Flow, Key, Row, ViewError};

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the match in evolve/flow.rs is exhaustive and says what comes here"
)]
pub(super) fn apply(rows: &mut Working<'_>, site: &Site<'_>, flow: &Flow) -> Result<(), ViewError> {
    match flow {
        Flow::EffectFailed { number, code, message } => {
            let dead = Dead { code: code.clone(), message: message.clone(), at: site.at };
            change(rows, site, *number, |effect, outbox| {
                effect.fate.get_or_insert_default().dead = Some(dead);
                outbox.dead += 1;
            })
        }
        Flow::EffectRetried { number } => change(rows, site, *number, |effect, outbox| {
            let fate = effect.fate.get_or_insert_default();
            *fate = Fate { round: fate.round.saturating_add(1), ..Fate::default() };
            effect.deliver_at = site.at;
            outbox.dead = outbox.dead.saturating_sub(1);
        }),
        Flow::EffectDeferred { number, until, code, message } => {
            let last = Dead { code: code.clone(), message: message.clone(), at: site.at };
            change(rows, site, *number, |effect, _| {
                let fate = effect.fate.get_or_insert_default();
                fate.attempts = fate.attempts.saturating_add(1);
                fate.last = Some(last);
                fate.since.get_or_insert(effect.deliver_at);
                effect.deliver_at = *until;
            })
        }
        Flow::EffectHeld { number, until, code, message } => {
            let last = Dead { code: code.clone(), message: message.clone(), at: site.at };
            change(rows, site, *number, |effect, _| {
                let fate = effect.fate.get_or_insert_default();
                fate.last = Some(last);
                fate.since.get_or_insert(effect.deliver_at);
                effect.deliver_at = *until;
            })
        }
        Flow::EffectDismissed { number } => gates::acked(rows, site, *number),
        _ => Ok(()),
    }
}

/// An effect stands in the outbox from now on.
pub(super) fn arrives(session: &mut Session, effect: &Effect) {
    if effect.body.inner() {
        return;
    }
    session.outbox.get_or_insert_default().counted(&effect.body, false);
}

/// It stands there no more; does nothing if it did not.
pub(super) fn goes(rows: &mut Working<'_>, site: &Site<'_>, number: u64) -> Result<(), ViewError> {
    let key = Key::outbox(site.tenant, site.session()?, number);
    let Some(effect) = rows.outbox_at(&key)? else { return Ok(()) };
    if let EffectBody::Confirm { call, .. } = &effect.body {
        // A call that counts in several ledgers stands there once for each.
        let uncounted = &mut rows.session_at_mut(&site.session_key()?)?.uncounted;
        if let Some(at) = uncounted.iter().position(|known| known == call) {
            uncounted.remove(at);
        }
    }
    if !effect.body.inner() {
        let session = rows.session_at_mut(&site.session_key()?)?;
        // What was queued before anybody counted is not in the sum.
        let mut outbox = session.outbox();
        outbox.counted(&effect.body, true);
        outbox.dead = outbox.dead.saturating_sub(u32::from(effect.dead().is_some()));
        session.outbox = (outbox != Outbox::default()).then(|| Box::new(outbox));
    }
    rows.delete(key);
    Ok(())
}

fn change(
    rows: &mut Working<'_>,
    site: &Site<'_>,
    number: u64,
    how: impl FnOnce(&mut Effect, &mut Outbox),
) -> Result<(), ViewError> {
    let key = Key::outbox(site.tenant, site.session()?, number);
    let mut effect = rows.outbox_at(&key)?.map(|effect| Effect::clone(&effect));
    let Some(effect) = &mut effect else { return Err(ViewError(format!("key {key:?} holds no effect"))) };
    let outbox = rows.session_at_mut(&site.session_key()?)?.outbox.get_or_insert_default();
    how(effect, outbox);
    rows.put(key, Row::Outbox(effect.clone()));
    Ok(())
}
