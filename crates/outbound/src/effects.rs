//! A leader task: publishes the effects of sessions on the bus, each once at a time, and tenants in turn. The record is the
//! outbox; what the bus loses is published again when its time is over.
//!
//! What is out is in the memory of the leader. The next leader publishes it again, under the same ids, and the bus says that
//! it has them already.

mod out;

use futures::future::join_all;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use switchward_bus::{Bus, BusError, Envelope, Published, Stream, limits::ID_KNOWN_MS};
use switchward_delivery::channels::Webhook;
use switchward_delivery::limits::JOBS_MAX;
use switchward_delivery::worker::{DeliveryJob, JobInput, Origin};
use switchward_machine::{Channel, SessionId, TenantId, Time};
use switchward_query::outgoing::{EffectKey, Queue, QueuedEffect, ShardView};
use switchward_shard::{Clock as _, Cluster, Failure, Shard, SystemClock};
use switchward_state::delivery::{
    AckEffect, Attempt, DeliveryCommand, Effect, EffectBody, FailEffect, FailureCode,
};
use switchward_state::{Body, Command, OutboxScope, ViewError};
use tokio::{sync::watch, time::Instant};

use super::capacity::{Capacities, Capacity};
use super::caps::{Admitted, Attempted, Caps};
use super::leading;
use super::rules::Known;
use crate::render::mail;
use crate::render::webhook::{self, Hook, Unsent};
use out::{Out, Sent, forget};

/// How long one attempt may take, from its publishing on, milliseconds. Shorter than its id is taken on the bus: an attempt
/// that is published again is never begun twice.
const ATTEMPT_MS: u64 = ID_KNOWN_MS - 10_000;
/// When an attempt without an outcome is taken for lost, and the effect is published again: when its id is free on the bus.
const LOST: Duration = Duration::from_millis(ID_KNOWN_MS + 5_000);
/// Effects of the catalogue that are out by one stream at one time.
pub(super) const CATALOGUE_OUT_MAX: usize = 32;
/// Effects of sessions that are in flight, of all shards together: with those of the catalogue, a worker's concurrency.
pub(super) const SESSIONS_OUT_MAX: usize = JOBS_MAX - CATALOGUE_OUT_MAX;
/// The free capacity must exceed this many times what a tenant's destination has in flight: alone it gets one fourth of all.
const DESTINATION_PART: usize = 3;
/// Effects that one look at a destination passes over.
const LOOK_MAX: usize = 1_024;
/// Effects that are gathered before they are published together; those of the last destination may make them more.
const TOGETHER: usize = 64;
/// How long a mail waits on a server that sends none, for one that does or for a new configuration, milliseconds. Then it
/// is a dead letter: it must not take the capacity of what can go out.
const UNSENT_MAIL_MS: u64 = 10 * 60_000;
/// How long to wait if nothing is reported.
const TICK: Duration = Duration::from_secs(1);

/// What came of a round.
enum Round {
    /// Everything that is due is in flight, or has no capacity.
    Done,
    /// The bus takes nothing now.
    Full(Duration),
}

/// What the relay needs.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) bus: Arc<dyn Bus>,
    /// Whether mails go out here.
    pub(super) mail: bool,
    /// The names of the tenants.
    pub(super) names: Arc<Known<Cluster>>,
    /// The mails of all shards that are out.
    pub(super) caps: Caps,
}

/// Relays the effects of one shard while this server leads it, at most `most` by each stream at one time, until it is
/// stopped.
pub(super) async fn work(shard: Shard, most: usize, context: Context, mut stop: watch::Receiver<bool>) {
    let mut news = shard.watch_outbox();
    let (mut out, mut reported) = (Out::default(), false);
    loop {
        if !shard.leads() {
            out = Out::default();
            if !leading::began(&shard, &mut stop).await {
                return;
            }
        }
        let wait = match round(&shard, most, &context, &mut out).await {
            Ok(Round::Done) => {
                reported = false;
                None
            }
            Ok(Round::Full(wait)) => {
                if !std::mem::replace(&mut reported, true) {
                    tracing::warn!("the bus accepts nothing now; effects wait in the outbox");
                }
                Some(wait.clamp(Duration::from_millis(50), TICK))
            }
            Err(failure) if failure.is_final() => return,
            Err(_) => Some(TICK),
        };
        // Whichever comes first: a change that comes while nobody waits is kept.
        tokio::select! {
            open = news.changed(), if wait.is_none() => if !open { return },
            () = tokio::time::sleep(wait.unwrap_or(TICK)) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

async fn round(shard: &Shard, most: usize, context: &Context, out: &mut Out) -> Result<Round, Failure> {
    let view = ShardView::linearizable(shard).await?;
    let now = view.due_by(shard.now()).map_err(|error| unreadable(&error))?;
    context.caps.give_back(forget(&view, out)?).await;
    out.destinations.age(Instant::now());
    let began = out.turn.clone();
    let (mut after, mut wrapped) = (began.clone(), false);
    let (mut ready, mut later) = (Vec::new(), None);
    let mut capacities = out.capacities(most);
    'round: while !capacities.values().all(Capacity::is_full) {
        let queue = out.destinations.next(&view, after.as_deref(), now);
        let Some(queue) = queue.map_err(|error| unreadable(&error))? else {
            if wrapped || began.is_none() {
                break;
            }
            (after, wrapped) = (None, true);
            continue;
        };
        let behind = queue.end();
        if wrapped && began.as_ref().is_some_and(|began| behind > *began) {
            break;
        }
        let due = if view.holds(&queue).map_err(|error| unreadable(&error))? {
            Vec::new()
        } else {
            due_of(&view, now, &queue, context.mail, out, &mut capacities)?
        };
        for due in due {
            if unsent(shard, &view, context, &due, out).await? {
                continue;
            }
            match pack(shard, &view, context, &due).await? {
                Packing::Packed(packed) => ready.push(*packed),
                Packing::Nothing => {}
                Packing::Later(wait) => {
                    later = Some(wait);
                    break 'round;
                }
            }
        }
        out.turn = Some(behind.clone());
        after = Some(behind);
        if ready.len() >= TOGETHER
            && let Some(wait) = publish(shard, context, std::mem::take(&mut ready), out).await?
        {
            return Ok(Round::Full(wait));
        }
    }
    Ok(publish(shard, context, ready, out).await?.or(later).map_or(Round::Done, Round::Full))
}

pub(super) fn unreadable(error: &switchward_state::ViewError) -> Failure {
    tracing::error!(%error, "failed to read the outbox");
    Failure::Stopped
}

/// The due effects of this queue that are not in flight, as many as there is capacity for.
fn due_of(
    view: &ShardView,
    now: Time,
    queue: &Queue,
    mail: bool,
    out: &Out,
    capacities: &mut Capacities,
) -> Result<Vec<QueuedEffect>, Failure> {
    let (mut found, mut looked) = (Vec::new(), 0);
    let scanned = view.each_effect(queue, out.destinations.begin(queue), &mut |due| {
        looked += 1;
        if due.at > now || looked > LOOK_MAX {
            return Ok(ControlFlow::Break(()));
        }
        if out.sent.contains_key(&due.key) {
            return Ok(ControlFlow::Continue(()));
        }
        let Some(effect) = view.effect(&due.key)? else { return Ok(ControlFlow::Continue(())) };
        let mail = mail || due.at.after_ms(UNSENT_MAIL_MS) <= now;
        let capacity = stream_of(&effect.body, mail).and_then(|stream| capacities.get_mut(&stream));
        let Some(capacity) = capacity else { return Ok(ControlFlow::Continue(())) };
        let destination @ (tenant, name) = &(due.key.tenant(), effect.body.destination());
        let most = out.backoff.limit(destination, Instant::now());
        if capacity.out(*tenant, name) >= most || !capacity.has_for(*tenant, name) {
            return Ok(ControlFlow::Break(()));
        }
        capacity.take(*tenant, name);
        found.push(due);
        Ok(ControlFlow::Continue(()))
    });
    scanned.map(|()| found).map_err(|error| unreadable(&error))
}

/// The stream by which an effect goes out from here, or would go if it is to be given up.
fn stream_of(body: &EffectBody, mail: bool) -> Option<Stream> {
    match body {
        EffectBody::Message { channel, .. } => match channel {
            Channel::Chat => None,
            Channel::Email => mail.then_some(Stream::Mail),
            Channel::Webhook => Some(Stream::Webhook),
        },
        EffectBody::Publish { .. } => Some(Stream::Webhook),
        EffectBody::Notice { .. } | EffectBody::Confirm { .. } | EffectBody::Settle { .. } => None,
    }
}

/// Gives up a mail that has waited long on a server that sends none. Its session records that, and it can be sent again
/// once mail is configured.
async fn unsent(
    shard: &Shard,
    view: &ShardView,
    context: &Context,
    due: &QueuedEffect,
    out: &mut Out,
) -> Result<bool, Failure> {
    if context.mail {
        return Ok(false);
    }
    let effect = view.effect(&due.key).map_err(|error| unreadable(&error))?;
    let (Some(effect), Some(session)) = (effect, due.key.session()) else { return Ok(false) };
    let EffectBody::Message { channel: Channel::Email, .. } = &effect.body else { return Ok(false) };
    if !std::mem::replace(&mut out.mail_reported, true) {
        let code = FailureCode::MailNotConfigured;
        tracing::warn!(%code, "mails become dead letters: the configuration has no [mail]");
    }
    let named = Named { key: due.key.clone(), session, number: effect.number, round: effect.round() };
    give_up(shard, &named, Unsent::from(FailureCode::MailNotConfigured)).await.map(|()| true)
}

/// An effect: its key, its session, its number there, and how often it was sent again.
struct Named {
    key: EffectKey,
    session: SessionId,
    number: u64,
    round: u32,
}

/// An effect that is to be put on the bus.
struct Packed {
    due: Named,
    envelope: Envelope,
    /// What it counts as once it is there.
    sent: Sent,
}

/// What came of the preparation of an effect.
enum Packing {
    /// It is to be published.
    Packed(Box<Packed>),
    /// It does not go out now.
    Nothing,
    /// It cannot be counted now; it is worth trying again after this time.
    Later(Duration),
}

/// Prepares one effect for the bus, and counts it towards the caps.
async fn pack(
    shard: &Shard,
    view: &ShardView,
    context: &Context,
    due: &QueuedEffect,
) -> Result<Packing, Failure> {
    let effect = view.effect(&due.key).map_err(|error| unreadable(&error))?;
    let (Some(effect), Some(session)) = (&effect, due.key.session()) else { return Ok(Packing::Nothing) };
    let tenant = due.key.tenant();
    let destination = (tenant, effect.body.destination());
    let named = Named { key: due.key.clone(), session, number: effect.number, round: effect.round() };
    let prepared =
        prepare(view, shard.now(), context, tenant, session, effect).map_err(|error| unreadable(&error))?;
    let input = match prepared {
        Prepared::Send(input) => input,
        Prepared::Keep => return Ok(Packing::Nothing),
        Prepared::Done => {
            let ack = Body::Delivery(DeliveryCommand::AckEffect(AckEffect { number: effect.number }));
            return submit(shard, tenant, session, ack).await.map(|()| Packing::Nothing);
        }
        Prepared::Fail(unsent) => {
            return give_up(shard, &named, unsent).await.map(|()| Packing::Nothing);
        }
    };
    let (attempt, stream) = (effect.attempt(), input.stream());
    let envelope = job(tenant, session, effect, input).envelope();
    let attempted = Attempted { tenant, session, effect, name: envelope.id.clone() };
    let counted = match context.caps.admit(shard, view, &attempted).await? {
        Admitted::Counted(counted) => counted,
        Admitted::Deferred => return Ok(Packing::Nothing),
        Admitted::Later(wait) => return Ok(Packing::Later(wait)),
    };
    let sent = Sent { attempt, stream, destination, counted, until: Instant::now() + LOST };
    Ok(Packing::Packed(Box::new(Packed { due: named, envelope, sent })))
}

/// Publishes effects in their order, without waiting for one before the next. What the bus has is in flight, also if
/// another one cannot be given up. Returns how long to wait if the bus takes nothing now.
async fn publish(
    shard: &Shard,
    context: &Context,
    ready: Vec<Packed>,
    out: &mut Out,
) -> Result<Option<Duration>, Failure> {
    let each = ready.into_iter().map(|it| async move {
        let Packed { due, envelope, sent } = it;
        let published = context.bus.publish(sent.stream, envelope).await;
        (due, sent, published)
    });
    let (mut wait, mut too_large, mut closed) = (None, Vec::new(), false);
    for (due, sent, published) in join_all(each).await {
        match published {
            Ok(Published::Added | Published::Already) => {
                out.sent.insert(due.key, sent);
            }
            // It will never fit, and must not stand before the others.
            Err(BusError::Size { .. }) => too_large.push(due),
            Err(BusError::Full { retry_after, .. } | BusError::Unreachable { retry_after, .. }) => {
                wait = Some(retry_after);
            }
            Err(BusError::Closed) => closed = true,
        }
    }
    for due in too_large {
        give_up(shard, &due, Unsent::from(FailureCode::TooLarge)).await?;
    }
    if closed { Err(Failure::Draining) } else { Ok(wait) }
}

/// What is to be done with an effect.
enum Prepared {
    /// It goes out in a job with this input.
    Send(JobInput),
    /// It stays in the outbox, for another server or a later time.
    Keep,
    /// There is nothing left to do.
    Done,
    /// It cannot be sent, for this reason.
    Fail(Unsent),
}

fn prepare(
    view: &ShardView,
    now: Time,
    context: &Context,
    tenant: TenantId,
    session: SessionId,
    effect: &Effect,
) -> Result<Prepared, ViewError> {
    Ok(match &effect.body {
        EffectBody::Message { channel, to, text, .. } => match channel {
            Channel::Chat => Prepared::Keep,
            Channel::Email => match mail::outbound(view, tenant, session, effect, now)? {
                Some(outbound) => Prepared::Send(JobInput::Mail(Box::new(outbound))),
                None => Prepared::Done,
            },
            Channel::Webhook => {
                let body = switchward_messages::text(*channel, text).body;
                let message = mail::message(view, tenant, session, to, &body)?;
                Prepared::Send(JobInput::Webhook(Webhook::Message(message)))
            }
        },
        EffectBody::Publish { .. } => {
            match webhook::hook(view, &*context.names, tenant, session, effect, SystemClock.now())? {
                Hook::Send(event) => Prepared::Send(JobInput::Webhook(Webhook::Event(event))),
                Hook::Drop => Prepared::Done,
                Hook::Fail(why) => Prepared::Fail(why),
            }
        }
        EffectBody::Notice { .. } | EffectBody::Confirm { .. } | EffectBody::Settle { .. } => Prepared::Keep,
    })
}

/// An effect that will never go out must not stand before the others.
async fn give_up(shard: &Shard, due: &Named, unsent: Unsent) -> Result<(), Failure> {
    let (number, round) = (due.number, Some(due.round));
    let Unsent { code, detail } = unsent;
    let fail = FailEffect { number, code, detail, round };
    submit(shard, due.key.tenant(), due.session, Body::Delivery(DeliveryCommand::FailEffect(fail))).await
}

/// The job of the current attempt to deliver an effect.
fn job(tenant: TenantId, session: SessionId, effect: &Effect, input: JobInput) -> DeliveryJob {
    let (number, Attempt { round, number: attempt }) = (effect.number, effect.attempt());
    DeliveryJob {
        tenant,
        session,
        origin: Origin::Effect { number, round, attempt },
        input,
        ttl_ms: ATTEMPT_MS,
        idempotency_key: format!("{session}-{number}"),
        traceparent: effect.trace.clone(),
    }
}

pub(super) async fn submit(
    shard: &Shard,
    tenant: TenantId,
    session: SessionId,
    body: Body,
) -> Result<(), Failure> {
    let command = Command::of_server(tenant, OutboxScope::from(session).scope(), body);
    match shard.submit(command).await {
        // It has gone meanwhile.
        Ok(_) | Err(Failure::Rejected(_)) => Ok(()),
        Err(failure) => Err(failure),
    }
}

#[cfg(test)]
mod tests;
