//! What happens to what goes out; what waits in the outbox is counted in the session's row.

use switchward_machine::{Channel, OpenId};

use crate::approval::Bounced;
use crate::delivery::{
    Dead, DeliveryEvent, Effect, EffectBody, Fate, Outbox, Purpose, WebhookSourceFact, apply_endpoints,
    mail_caps,
};
use crate::run::{Run, remember};
use crate::session::Session;
use crate::{Key, Row, Site, ViewError, Working};

/// Applies an event about what goes out.
pub(crate) fn apply(rows: &mut Working<'_>, site: &Site<'_>, event: &DeliveryEvent) -> Result<(), ViewError> {
    match event {
        DeliveryEvent::Queued { effect } => queued(rows, site, effect)?,
        DeliveryEvent::Acked { number } => arrived(rows, site, *number)?,
        DeliveryEvent::Failed { number, code, message } => {
            let dead = Dead { code: code.clone(), message: message.clone(), at: site.at };
            change(rows, site, *number, |effect, outbox| {
                effect.fate.get_or_insert_default().dead = Some(dead);
                outbox.dead += 1;
            })?;
        }
        DeliveryEvent::Retried { number } => change(rows, site, *number, |effect, outbox| {
            let fate = effect.fate.get_or_insert_default();
            *fate = Fate { round: fate.round.saturating_add(1), ..Fate::default() };
            effect.deliver_at = site.at;
            outbox.dead = outbox.dead.saturating_sub(1);
        })?,
        DeliveryEvent::Deferred { number, until, code, message } => {
            let last = Dead { code: code.clone(), message: message.clone(), at: site.at };
            change(rows, site, *number, |effect, _| {
                let fate = effect.fate.get_or_insert_default();
                fate.attempts = fate.attempts.saturating_add(1);
                fate.last = Some(last);
                fate.since.get_or_insert(effect.deliver_at);
                effect.deliver_at = *until;
            })?;
        }
        DeliveryEvent::Held { number, until, code, message } => {
            let last = Dead { code: code.clone(), message: message.clone(), at: site.at };
            change(rows, site, *number, |effect, _| {
                let fate = effect.fate.get_or_insert_default();
                fate.last = Some(last);
                fate.since.get_or_insert(effect.deliver_at);
                effect.deliver_at = *until;
            })?;
        }
        DeliveryEvent::Dismissed { number } => acked(rows, site, *number)?,
        DeliveryEvent::MailBounced { gate, to, proved, .. } => bounced(rows, site, *gate, to, *proved)?,
        DeliveryEvent::Endpoints(fact) => apply_endpoints::apply(rows, site, fact)?,
        DeliveryEvent::WebhookSources(WebhookSourceFact::Put { source }) => {
            rows.put(Key::webhook_source(site.tenant, &source.name), Row::WebhookSource(source.clone()));
        }
        DeliveryEvent::WebhookSources(WebhookSourceFact::Deleted { name }) => {
            rows.delete(Key::webhook_source(site.tenant, name));
        }
    }
    Ok(())
}

/// An effect waits in the outbox from now on; a mail about a gate is noted there.
fn queued(rows: &mut Working<'_>, site: &Site<'_>, effect: &Effect) -> Result<(), ViewError> {
    let id = site.session()?;
    let session = rows.session_at_mut(&site.session_key()?)?;
    session.next_id = effect.number + 1;
    arrives(session, effect);
    if let EffectBody::Notice { gate, .. } = &effect.body {
        rows.open_at_mut(&Key::open(site.tenant, id, *gate))?.gate.notice = Some(effect.number);
    }
    if let EffectBody::Message { channel: Channel::Email, to, gate, purpose, head, .. } = &effect.body {
        let session = rows.session_at_mut(&site.session_key()?)?;
        session.mailed = Some(session.mailed.unwrap_or_default().with_one(site.at));
        match (gate, purpose) {
            (Some(gate), Purpose::Ask) => {
                asks(rows, &Key::open(site.tenant, id, *gate), to, effect.number)?;
            }
            // A reminder asks nothing new: what was sent before stays valid.
            (Some(gate), Purpose::Remind) => {
                let key = Key::open(site.tenant, id, *gate);
                if rows.open_at(&key)?.is_some()
                    && let Some(asked) = &mut rows.open_at_mut(&key)?.gate.asked
                {
                    asked.mails.push(effect.number);
                }
            }
            (Some(_), Purpose::Say | Purpose::Inform | Purpose::Code) => {}
            // Mails of an agent alone have a head of their own.
            (None, _) => {
                written(rows.run_at_mut(&Key::run(site.tenant, id, effect.run))?, to, head.is_none());
            }
        }
    }
    if let EffectBody::Confirm { call, .. } = &effect.body {
        rows.session_at_mut(&site.session_key()?)?.uncounted.push(*call);
    }
    rows.put(Key::outbox(site.tenant, id, effect.number), Row::Outbox(effect.clone()));
    Ok(())
}

/// A mail asks somebody at a gate. One about a gate that is closed asks nobody.
fn asks(rows: &mut Working<'_>, gate: &Key, to: &str, number: u64) -> Result<(), ViewError> {
    if rows.open_at(gate)?.is_some()
        && let Some(asked) = &mut rows.open_at_mut(gate)?.gate.asked
    {
        asked.mails.push(number);
        let at = asked.to.iter().position(|known| known.eq_ignore_ascii_case(to));
        if let Some(at) = at.filter(|_| asked.round > 0) {
            asked.last.resize(asked.last.len().max(at + 1), 0);
            asked.last[at] = asked.round;
        }
    }
    Ok(())
}

/// A run has written to somebody, by its definition or by an agent.
fn written(run: &mut Run, to: &str, by_definition: bool) {
    remember(&mut run.mailed, to);
    if by_definition {
        remember(&mut run.recipients, to);
    }
}

/// A mail about a gate came back.
fn bounced(
    rows: &mut Working<'_>,
    site: &Site<'_>,
    gate: OpenId,
    to: &str,
    proved: bool,
) -> Result<(), ViewError> {
    let open = rows.open_at_mut(&Key::open(site.tenant, site.session()?, gate))?;
    if let Some(asked) = &mut open.gate.asked {
        asked.bounced.retain(|known| !known.to.eq_ignore_ascii_case(to));
        asked.bounced.push(Bounced { to: to.to_owned(), proved });
    }
    Ok(())
}

/// An effect has arrived: a mail counts for its hour.
fn arrived(rows: &mut Working<'_>, site: &Site<'_>, number: u64) -> Result<(), ViewError> {
    mail_caps::count(rows, site.tenant, site.session()?, number, site.at)?;
    acked(rows, site, number)
}

/// An effect has nothing left to do: it has arrived, or nobody wants it any more.
pub(crate) fn acked(rows: &mut Working<'_>, site: &Site<'_>, number: u64) -> Result<(), ViewError> {
    let id = site.session()?;
    let key = Key::outbox(site.tenant, id, number);
    let gate = match rows.outbox_at(&key)?.map(|effect| effect.body.clone()) {
        Some(EffectBody::Message { gate: Some(gate), .. }) => Some(Key::open(site.tenant, id, gate)),
        Some(
            EffectBody::Message { gate: None, .. }
            | EffectBody::Notice { .. }
            | EffectBody::Confirm { .. }
            | EffectBody::Settle { .. }
            | EffectBody::Publish { .. },
        )
        | None => None,
    };
    if let Some(gate) = gate
        && rows.open_at(&gate)?.is_some()
        && let Some(asked) = &mut rows.open_at_mut(&gate)?.gate.asked
    {
        asked.mails.retain(|known| *known != number);
    }
    goes(rows, site, number)
}

/// An effect stands in the outbox from now on.
pub(crate) fn arrives(session: &mut Session, effect: &Effect) {
    if effect.body.inner() {
        return;
    }
    session.outbox.get_or_insert_default().added(&effect.body);
}

/// It stands there no more; does nothing if it did not.
pub(crate) fn goes(rows: &mut Working<'_>, site: &Site<'_>, number: u64) -> Result<(), ViewError> {
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
        outbox.removed(&effect.body);
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
