//! What happens to what goes out; what waits in the outbox is counted in the session's row.

use switchward_machine::{Channel, OpenId, SessionId};

use crate::approval::Bounced;
use crate::delivery::{
    DeliveryEvent, DeliveryFailure, Effect, EffectBody, EffectProgress, Outbox, Purpose, WebhookSourceFact,
    apply_endpoints, mail_caps,
};
use crate::limits::RESERVATION_USABLE_MS;
use crate::run::{Run, remember};
use crate::session::Session;
use crate::{Key, OutboxScope, Row, Site, ViewError, WriteRows};

/// Applies an event about what goes out.
pub(crate) fn apply(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    event: &DeliveryEvent,
) -> Result<(), ViewError> {
    match event {
        DeliveryEvent::Queued { effect } => queued(rows, site, effect)?,
        DeliveryEvent::Acked { number } => arrived(rows, site, *number)?,
        DeliveryEvent::Failed { number, code, detail } => {
            let dead = DeliveryFailure { code: code.clone(), detail: detail.clone(), at: site.at };
            change(rows, site, *number, |effect| {
                effect.progress.get_or_insert_default().dead_letter = Some(dead)
            })?;
            rows.session_at_mut(&site.session_key()?)?.outbox.get_or_insert_default().dead_letters += 1;
        }
        DeliveryEvent::Retried { number } => {
            change(rows, site, *number, |effect| {
                let progress = effect.progress.get_or_insert_default();
                **progress =
                    EffectProgress { round: progress.round.saturating_add(1), ..EffectProgress::default() };
                effect.deliver_at = site.at;
            })?;
            let outbox = rows.session_at_mut(&site.session_key()?)?.outbox.get_or_insert_default();
            outbox.dead_letters = outbox.dead_letters.saturating_sub(1);
        }
        DeliveryEvent::Deferred { number, until, code, detail } => {
            let last = DeliveryFailure { code: code.clone(), detail: detail.clone(), at: site.at };
            let counted = u32::from(!planted!(rows, AttemptNotCounted));
            change(rows, site, *number, |effect| {
                let progress = effect.progress.get_or_insert_default();
                progress.attempts = progress.attempts.saturating_add(counted);
                progress.last = Some(last);
                progress.since.get_or_insert(effect.deliver_at);
                effect.deliver_at = *until;
            })?;
        }
        DeliveryEvent::Held { number, until, code, detail } => {
            let last = DeliveryFailure { code: code.clone(), detail: detail.clone(), at: site.at };
            change(rows, site, *number, |effect| {
                let progress = effect.progress.get_or_insert_default();
                progress.last = Some(last);
                progress.since.get_or_insert(effect.deliver_at);
                effect.deliver_at = *until;
            })?;
        }
        DeliveryEvent::Dismissed { number } => dismissed(rows, site, *number)?,
        DeliveryEvent::MailBounced { gate, to, proved, .. } => bounced(rows, site, *gate, to, *proved)?,
        DeliveryEvent::EndpointNoted { id, health } => apply_endpoints::noted(rows, site, id, health)?,
        DeliveryEvent::WebhookSources(WebhookSourceFact::Put { source }) => {
            rows.put(Key::webhook_source(site.tenant, &source.name), Row::WebhookSource(source.clone()));
        }
        DeliveryEvent::WebhookSources(WebhookSourceFact::Deleted { name }) => {
            rows.delete(Key::webhook_source(site.tenant, name));
        }
    }
    Ok(())
}

/// An effect waits in its outbox from now on.
fn queued(rows: &mut dyn WriteRows, site: &Site<'_>, effect: &Effect) -> Result<(), ViewError> {
    let of = site.outbox()?;
    match of {
        OutboxScope::Session(id) => noted(rows, site, id, effect)?,
        OutboxScope::Tenant => apply_endpoints::queued(rows, site, effect.number)?,
    }
    rows.put(Key::outbox(site.tenant, of, effect.number), Row::Outbox(effect.clone()));
    Ok(())
}

/// An effect of a session is counted there; a mail is noted at its gate or in its run.
fn noted(rows: &mut dyn WriteRows, site: &Site<'_>, id: SessionId, effect: &Effect) -> Result<(), ViewError> {
    let session = rows.session_at_mut(&site.session_key()?)?;
    session.next_id = effect.number + 1;
    if !effect.body.inner() {
        session.outbox.get_or_insert_default().added(&effect.body);
    }
    if let EffectBody::Notice { gate, .. } = &effect.body {
        rows.gate_at_mut(&Key::item(site.tenant, id, *gate))?.body.notice = Some(effect.number);
    }
    if let EffectBody::Message { channel: Channel::Email, to, gate, purpose, head, .. } = &effect.body {
        if *purpose != Purpose::Code {
            // Codes have a limit of their own, and a person with a link must not use up what the session may send.
            let session = rows.session_at_mut(&site.session_key()?)?;
            session.mailed = Some(session.mailed.unwrap_or_default().with_one(site.at));
        }
        match (gate, purpose) {
            (Some(gate), Purpose::Ask) => {
                asks(rows, &Key::item(site.tenant, id, *gate), to, effect.number)?;
            }
            // A reminder asks nothing new: what was sent before stays valid.
            (Some(gate), Purpose::Remind) => {
                let key = Key::item(site.tenant, id, *gate);
                if rows.gate_at(&key)?.is_some()
                    && let Some(asked) = &mut rows.gate_at_mut(&key)?.body.asked
                {
                    asked.mails.push(effect.number);
                }
            }
            (Some(_), Purpose::Say | Purpose::Inform | Purpose::Code) => {}
            // Mails of an agent alone have a head of their own.
            (None, _) => {
                if let Some(run) = effect.source.run() {
                    written(rows.run_at_mut(&Key::run(site.tenant, id, run))?, to, head.is_none());
                }
            }
        }
    }
    if let EffectBody::Confirm { call, .. } = &effect.body {
        rows.session_at_mut(&site.session_key()?)?.uncounted.push(*call);
    }
    Ok(())
}

/// A mail asks somebody at a gate. One about a gate that is closed asks nobody.
fn asks(rows: &mut dyn WriteRows, gate: &Key, to: &str, number: u64) -> Result<(), ViewError> {
    if rows.gate_at(gate)?.is_some()
        && let Some(asked) = &mut rows.gate_at_mut(gate)?.body.asked
    {
        asked.mails.push(number);
        asked.dismissed.retain(|known| !known.eq_ignore_ascii_case(to));
        let at = asked.to.iter().position(|known| known.eq_ignore_ascii_case(to));
        if let Some(at) = at.filter(|_| asked.request > 0) {
            asked.last.resize(asked.last.len().max(at + 1), 0);
            asked.last[at] = asked.request;
            asked.newest.resize(asked.newest.len().max(at + 1), 0);
            asked.newest[at] = number;
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
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    gate: OpenId,
    to: &str,
    proved: bool,
) -> Result<(), ViewError> {
    let open = rows.gate_at_mut(&Key::item(site.tenant, site.session()?, gate))?;
    if let Some(asked) = &mut open.body.asked {
        asked.bounced.retain(|known| !known.to.eq_ignore_ascii_case(to));
        asked.bounced.push(Bounced { to: to.to_owned(), proved });
    }
    Ok(())
}

/// An effect has arrived: a mail counts for its hour, and a call in its ledger.
fn arrived(rows: &mut dyn WriteRows, site: &Site<'_>, number: u64) -> Result<(), ViewError> {
    if let OutboxScope::Session(id) = site.outbox()? {
        mail_caps::count(rows, site.tenant, id, number, site.at)?;
        counted(rows, site, id, number)?;
    }
    acked(rows, site, number)
}

/// A ledger counts a call. Its name stays known until everything is too old that was reserved under it before.
fn counted(rows: &mut dyn WriteRows, site: &Site<'_>, id: SessionId, number: u64) -> Result<(), ViewError> {
    let effect = rows.outbox_at(&Key::outbox(site.tenant, id, number))?;
    if let Some(effect) = effect
        && let EffectBody::Confirm { call, .. } = &effect.body
    {
        let until = site.at.after_ms(RESERVATION_USABLE_MS);
        rows.put(Key::counted(site.tenant, id, *call), Row::Recorded(until));
    }
    Ok(())
}

/// An effect is given up. If it was the newest request that its recipient was sent at a gate, they have not been notified of
/// the gate.
fn dismissed(rows: &mut dyn WriteRows, site: &Site<'_>, number: u64) -> Result<(), ViewError> {
    let effect = rows.outbox_at(&Key::outbox(site.tenant, site.outbox()?, number))?;
    if let Some(effect) = effect
        && let EffectBody::Message { to, gate: Some(gate), purpose: Purpose::Ask, .. } = &effect.body
    {
        let key = Key::item(site.tenant, site.session()?, *gate);
        if rows.gate_at(&key)?.is_some()
            && let Some(asked) = &mut rows.gate_at_mut(&key)?.body.asked
            && asked.newest_of(to).is_none_or(|newest| number >= newest)
            && !asked.dismissed.iter().any(|known| known.eq_ignore_ascii_case(to))
        {
            asked.dismissed.push(to.clone());
        }
    }
    acked(rows, site, number)
}

/// An effect has nothing left to do: it has arrived, or nobody wants it any more.
fn acked(rows: &mut dyn WriteRows, site: &Site<'_>, number: u64) -> Result<(), ViewError> {
    let key = Key::outbox(site.tenant, site.outbox()?, number);
    let gate = match rows.outbox_at(&key)?.map(|effect| effect.body.clone()) {
        Some(EffectBody::Message { gate: Some(gate), .. }) => {
            Some(Key::item(site.tenant, site.session()?, gate))
        }
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
        && rows.gate_at(&gate)?.is_some()
        && let Some(asked) = &mut rows.gate_at_mut(&gate)?.body.asked
    {
        asked.mails.retain(|known| *known != number);
    }
    goes(rows, site, number)
}

/// An effect stands in its outbox no more; does nothing if it did not.
pub(crate) fn goes(rows: &mut dyn WriteRows, site: &Site<'_>, number: u64) -> Result<(), ViewError> {
    let of = site.outbox()?;
    let key = Key::outbox(site.tenant, of, number);
    let Some(effect) = rows.outbox_at(&key)? else { return Ok(()) };
    match of {
        OutboxScope::Session(_) => uncount(rows.session_at_mut(&site.session_key()?)?, &effect),
        OutboxScope::Tenant => apply_endpoints::gone(rows, site)?,
    }
    rows.delete(key);
    Ok(())
}

/// An effect of a session is counted no more.
fn uncount(session: &mut Session, effect: &Effect) {
    if let EffectBody::Confirm { call, .. } = &effect.body {
        // A call that counts in several ledgers stands there once for each.
        if let Some(at) = session.uncounted.iter().position(|known| known == call) {
            session.uncounted.remove(at);
        }
    }
    if !effect.body.inner() {
        // What was queued before anybody counted is not in the sum.
        let mut outbox = session.outbox();
        outbox.removed(&effect.body);
        outbox.dead_letters = outbox.dead_letters.saturating_sub(u32::from(effect.dead_letter().is_some()));
        session.outbox = (outbox != Outbox::default()).then(|| Box::new(outbox));
    }
}

fn change(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    number: u64,
    how: impl FnOnce(&mut Effect),
) -> Result<(), ViewError> {
    let key = Key::outbox(site.tenant, site.outbox()?, number);
    let mut effect = rows.outbox_at(&key)?.map(|effect| Effect::clone(&effect));
    let Some(effect) = &mut effect else { return Err(ViewError(format!("key {key:?} holds no effect"))) };
    how(effect);
    rows.put(key, Row::Outbox(effect.clone()));
    Ok(())
}
