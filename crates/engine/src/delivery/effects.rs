//! What became of an effect of a session or of the tenant itself: it has arrived, or cannot be delivered and is a dead
//! letter, which somebody sends again or gives up. A session that has ended can still have effects.

use switchward_state::approval::TokenUse;
use switchward_state::delivery::{
    AckEffect, DeferEffect, DeliveryDetail, DeliveryEvent, DismissEffect, Effect, EffectBody, EffectSource,
    EffectSummary, FailEffect, RecordBounce, RetryEffect,
};
use switchward_state::limits::NOTE_BYTES_MAX;
use switchward_state::{Event, Key, OutboxScope, ReadRows as _, Reason, Rejection, Reply};

use crate::approval::audience;
use crate::approval::reach::reach;
use crate::turn::{Stop, Turn, check_size, check_text};

/// It has arrived. Said twice, it changes nothing.
pub(crate) fn ack(turn: &mut Turn<'_, '_>, ack: &AckEffect) -> Result<Reply, Stop> {
    if find(turn, ack.number)?.is_some() {
        turn.emit(DeliveryEvent::Acked { number: ack.number })?;
    }
    Ok(Reply::Done)
}

/// It cannot be delivered. An approval that has reached nobody escalates at once, if it would do so later.
pub(crate) fn fail(turn: &mut Turn<'_, '_>, fail: &FailEffect) -> Result<Reply, Stop> {
    expected(turn)?;
    check_detail(fail.detail.as_ref())?;
    let Some(effect) = outward(turn, fail.number)? else {
        // It has arrived meanwhile, or nobody wants it any more.
        return if was_queued(turn, fail.number)? { now(turn, fail.number) } else { Err(missing().into()) };
    };
    let is_earlier =
        fail.round.is_some_and(|round| round != effect.round()) && !planted!(turn.rows, FailedByAnotherRound);
    if effect.dead_letter().is_some() || is_earlier {
        return now(turn, fail.number);
    }
    let (number, code, detail) = (fail.number, fail.code.clone(), fail.detail.clone());
    turn.emit(match turn.site.outbox()? {
        OutboxScope::Session(_) => DeliveryEvent::Failed { number, code, detail },
        // A tenant has no incidents.
        OutboxScope::Tenant => DeliveryEvent::Dismissed { number },
    })?;
    if let EffectBody::Message { gate: Some(gate), .. } = effect.body {
        reach(turn, gate)?;
    }
    now(turn, fail.number)
}

/// It is tried again later.
pub(crate) fn defer(turn: &mut Turn<'_, '_>, defer: &DeferEffect) -> Result<Reply, Stop> {
    expected(turn)?;
    check_detail(defer.detail.as_ref())?;
    let effect = outward(turn, defer.number)?;
    let is_next =
        |effect: &Effect| effect.attempt() == defer.attempt || planted!(turn.rows, DeferredByAnotherAttempt);
    if effect.is_some_and(|effect| effect.dead_letter().is_none() && is_next(&effect)) {
        let (number, code, detail) = (defer.number, defer.code.clone(), defer.detail.clone());
        let until = turn.now().after_ms(defer.wait_ms);
        turn.emit(if defer.made {
            Event::Delivery(DeliveryEvent::Deferred { number, until, code, detail })
        } else {
            Event::Delivery(DeliveryEvent::Held { number, until, code, detail })
        })?;
    }
    moved(turn)
}

/// A mail has come back.
pub(crate) fn bounced(turn: &mut Turn<'_, '_>, bounce: &RecordBounce) -> Result<Reply, Stop> {
    check_text("message", &bounce.message, NOTE_BYTES_MAX)?;
    let gate = bounce.token.about;
    let open = turn.rows.gate(turn.tenant(), turn.session_id()?, gate)?;
    let asked = open.as_ref().and_then(|open| open.body.asked.clone());
    drop(open);
    let Some(asked) = asked else { return turn.moved() };
    let proved = turn.made_for(&bounce.token, TokenUse::Bounce, &asked.to)?;
    let (to, proved) = match proved {
        Some(to) => (to, true),
        None => match turn.made_for(&bounce.token, TokenUse::Reply, &asked.to)? {
            Some(to) => (to, false),
            None => return Err(missing().into()),
        },
    };
    let known = asked.bounced.iter().find(|known| known.to.eq_ignore_ascii_case(&to));
    let known = known.is_some_and(|known| known.proved || !proved);
    if known || asked.request_of(&to) != Some(bounce.token.request) {
        return turn.moved();
    }
    turn.emit(DeliveryEvent::MailBounced { gate, to, message: bounce.message.clone(), proved })?;
    if proved {
        reach(turn, gate)?;
    }
    turn.moved()
}

/// Sends a dead letter again; a notice that nobody got goes to those whom the directory resolves now.
pub(crate) fn retry(turn: &mut Turn<'_, '_>, retry: &RetryEffect) -> Result<Reply, Stop> {
    expected(turn)?;
    let effect = outward(turn, retry.number)?.ok_or_else(missing)?;
    if effect.dead_letter().is_some() {
        turn.emit(DeliveryEvent::Retried { number: retry.number })?;
    }
    audience::notify(turn, &effect)?;
    now(turn, retry.number)
}

/// A dead letter is given up. One that is on its way cannot be called back.
pub(crate) fn dismiss(turn: &mut Turn<'_, '_>, dismiss: &DismissEffect) -> Result<Reply, Stop> {
    expected(turn)?;
    let effect = outward(turn, dismiss.number)?.ok_or_else(missing)?;
    let tenancy = turn.rows.tenancy_at(&Key::tenancy(turn.tenant()))?;
    let held = tenancy.is_some_and(|tenancy| tenancy.holds_effects());
    if effect.dead_letter().is_none() && !held {
        let message = "the effect is on its way; only one that cannot be delivered or is held is dismissed";
        return Err(Rejection::new(Reason::StateMismatch, message).into());
    }
    turn.emit(DeliveryEvent::Dismissed { number: dismiss.number })?;
    moved(turn)
}

/// Checks that what is reported of a delivery is within its limit.
fn check_detail(detail: Option<&DeliveryDetail>) -> Result<(), Rejection> {
    check_size("message", detail.map_or(0, DeliveryDetail::bytes), NOTE_BYTES_MAX, "bytes")
}

/// The reply with an effect as it is now.
fn now(turn: &Turn<'_, '_>, number: u64) -> Result<Reply, Stop> {
    let OutboxScope::Session(session) = turn.site.outbox()? else { return Ok(Reply::Done) };
    let sequence = turn.session()?.sequence;
    let Some(effect) = outward(turn, number)? else {
        return Ok(Reply::Effect { session, sequence, effect: None });
    };
    let EffectSource::Run { run, node, .. } = effect.source else {
        return Ok(Reply::Effect { session, sequence, effect: None });
    };
    let machine = turn.machine(&*turn.run(run)?)?;
    let node = machine.node(node).map(|node| node.name.clone()).unwrap_or_default();
    let effect = EffectSummary::of(&effect, node).map(Box::new);
    Ok(Reply::Effect { session, sequence, effect })
}

/// Checks the sequence that the caller saw of the session whose effect it is.
fn expected(turn: &Turn<'_, '_>) -> Result<(), Stop> {
    match turn.site.outbox()? {
        OutboxScope::Session(_) => Ok(turn.expect_sequence(&*turn.session()?)?),
        OutboxScope::Tenant => Ok(()),
    }
}

/// The reply to what was reported of an effect.
fn moved(turn: &Turn<'_, '_>) -> Result<Reply, Stop> {
    match turn.site.outbox()? {
        OutboxScope::Session(_) => turn.moved(),
        OutboxScope::Tenant => Ok(Reply::Done),
    }
}

/// Returns true if the outbox has had an effect of this number.
fn was_queued(turn: &Turn<'_, '_>, number: u64) -> Result<bool, Stop> {
    Ok(match turn.site.outbox()? {
        OutboxScope::Session(_) => number < turn.session()?.next_id,
        OutboxScope::Tenant => {
            let tenancy = turn.rows.tenancy_at(&Key::tenancy_record(turn.tenant()))?;
            tenancy.and_then(|known| known.outbox).is_some_and(|outbox| number <= outbox.last)
        }
    })
}

fn find(turn: &Turn<'_, '_>, number: u64) -> Result<Option<Effect>, Stop> {
    let key = Key::outbox(turn.tenant(), turn.site.outbox()?, number);
    Ok(turn.rows.outbox_at(&key)?.map(|effect| Effect::clone(&effect)))
}

/// The effect of this number, if it goes outside: the server handles what it carries itself.
fn outward(turn: &Turn<'_, '_>, number: u64) -> Result<Option<Effect>, Stop> {
    Ok(find(turn, number)?.filter(|effect| !effect.body.inner()))
}

fn missing() -> Rejection {
    Rejection::new(Reason::NotFound, "there is no such effect")
}
