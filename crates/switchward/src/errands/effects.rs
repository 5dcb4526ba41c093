//! A leader's duty: effects of sessions are put on the bus, each once at a time, and no tenant's before another's turn.
//! The record is the outbox; what the bus loses is put there again when its time is over.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use switchward_bus::{Bus, BusError, Envelope, Stream};
use switchward_delivery::desk::{Errand, MAIL, POST};
use switchward_engine::{
    AckEffect, Attempt, Body, Command, Due, Effect, EffectBody, FailEffect, IndexKey, Key, Row, Scope,
    View as _,
};
use switchward_machine::{Channel, SessionId, TenantId};
use switchward_shard::{Clock as _, Failure, Shard, StateView, SystemClock};
use tokio::sync::watch;
use tokio::time::Instant;

use super::letters;

/// How long one attempt may take, from its publishing on, milliseconds.
const ATTEMPT_MS: u64 = 90_000;
/// When an attempt of which nothing was heard is taken for lost, and the effect is put on the bus again. Longer than an
/// attempt may take, so that the two cannot contradict.
const LOST: Duration = Duration::from_millis(ATTEMPT_MS + 15_000);
/// Effects of one shard that are out at one time.
const OUT_MAX: usize = 512;
/// Of these, of one tenant, so that whose receivers are slow leaves room for others.
const OUT_OF_TENANT_MAX: usize = 64;
/// Of these, to one place: whose receiver is slow delays nobody else who writes there.
const OUT_TO_PLACE_MAX: usize = 16;
/// Effects that one look at a tenant passes over.
const LOOK_MAX: usize = 1_024;
/// How long is waited where nothing is told.
const TICK: Duration = Duration::from_secs(1);

/// An effect that is out.
struct Sent {
    attempt: Attempt,
    place: String,
    /// When it is taken for lost.
    until: Instant,
}

/// Effects that are out, by their rows.
type Out = BTreeMap<Key, Sent>;

/// What came of a round.
enum Round {
    /// Everything that is due is out, or has no room.
    Done,
    /// The bus takes nothing now.
    Full(Duration),
}

/// Relays the effects of one shard until it is told to stop.
pub(super) async fn work(shard: Shard, bus: Arc<dyn Bus>, mail: bool, mut stop: watch::Receiver<bool>) {
    let mut news = shard.watch_outbox();
    let (mut out, mut told) = (Out::new(), false);
    loop {
        let wait = match round(&shard, bus.as_ref(), mail, &mut out).await {
            Ok(Round::Done) => {
                told = false;
                None
            }
            Ok(Round::Full(wait)) => {
                if !std::mem::replace(&mut told, true) {
                    tracing::warn!("the bus takes nothing now; effects wait in the outbox");
                }
                Some(wait.clamp(Duration::from_millis(50), TICK))
            }
            Err(Failure::Electing | Failure::Overloaded | Failure::Rejected(_)) => Some(TICK),
            Err(Failure::Draining | Failure::Stopped) => return,
        };
        // Whichever comes first: a change that comes while nobody waits is kept.
        tokio::select! {
            told = news.changed(), if wait.is_none() => if !told { return },
            () = tokio::time::sleep(wait.unwrap_or(TICK)) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

async fn round(shard: &Shard, bus: &dyn Bus, mail: bool, out: &mut Out) -> Result<Round, Failure> {
    let view = shard.read().await?;
    forget(&view, out)?;
    let mut after: Option<Vec<u8>> = None;
    while out.len() < OUT_MAX
        && let Some(tenant) = next_tenant(&view, after.as_deref())?
    {
        after = Some(IndexKey::behind_deliveries_of(tenant));
        for due in due_of(&view, tenant, shard.now(), mail, out)? {
            if let Some(wait) = send(shard, &view, bus, &due, out).await? {
                return Ok(Round::Full(wait));
            }
        }
    }
    Ok(Round::Done)
}

fn unreadable(error: &switchward_engine::ViewError) -> Failure {
    tracing::error!(%error, "failed to read the outbox");
    Failure::Stopped
}

/// Forgets what has arrived, was put off or is taken for lost.
fn forget(view: &StateView, out: &mut Out) -> Result<(), Failure> {
    let (now, mut broken) = (Instant::now(), None);
    out.retain(|key, sent| match view.row(key) {
        Ok(row) => {
            let Some(Row::Outbox(effect)) = row.as_deref() else { return false };
            effect.dead().is_none() && effect.attempt() == sent.attempt && sent.until > now
        }
        Err(error) => {
            broken = Some(error);
            true
        }
    });
    broken.map_or(Ok(()), |error| Err(unreadable(&error)))
}

/// The next tenant that has anything to go out.
fn next_tenant(view: &StateView, after: Option<&[u8]>) -> Result<Option<TenantId>, Failure> {
    let mut found = None;
    view.scan(&IndexKey::deliveries(), after, &mut |entry, _| {
        found = IndexKey::delivery_of(entry).map(|due| due.key.tenant_of());
        ControlFlow::Break(())
    })
    .map_err(|error| unreadable(&error))?;
    Ok(found)
}

/// What of a tenant is due and not out, as much as there is room for. What cannot go now, because there is nothing set up
/// for it or its place has no room, stands before nothing that can.
fn due_of(
    view: &StateView,
    tenant: TenantId,
    now: switchward_machine::Time,
    mail: bool,
    out: &Out,
) -> Result<Vec<Due>, Failure> {
    let own = || out.iter().filter(|(key, _)| key.tenant_of() == tenant).map(|(_, sent)| sent);
    let room = OUT_OF_TENANT_MAX.saturating_sub(own().count()).min(OUT_MAX.saturating_sub(out.len()));
    let (mut found, mut looked, mut broken) = (Vec::new(), 0, None);
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for sent in own() {
        *places.entry(sent.place.clone()).or_default() += 1;
    }
    let scanned = view.scan(&IndexKey::deliveries_of(tenant), None, &mut |entry, _| {
        looked += 1;
        let Some(due) = IndexKey::delivery_of(entry) else { return ControlFlow::Break(()) };
        if due.at > now || found.len() >= room || looked > LOOK_MAX {
            return ControlFlow::Break(());
        }
        if out.contains_key(&due.key) {
            return ControlFlow::Continue(());
        }
        match view.row(&due.key) {
            Ok(row) => {
                let Some(Row::Outbox(effect)) = row.as_deref() else { return ControlFlow::Continue(()) };
                let Some(place) = place_of(&effect.body, mail) else { return ControlFlow::Continue(()) };
                let taken = places.entry(place).or_default();
                if *taken < OUT_TO_PLACE_MAX {
                    *taken += 1;
                    found.push(due);
                }
                ControlFlow::Continue(())
            }
            Err(error) => {
                broken = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    scanned.map_err(|error| unreadable(&error))?;
    broken.map_or(Ok(found), |error| Err(unreadable(&error)))
}

/// Where an effect goes; nothing where it cannot go from here.
fn place_of(body: &EffectBody, mail: bool) -> Option<String> {
    let EffectBody::Message { channel, to, .. } = body else { return None };
    match channel {
        Channel::Chat => None,
        Channel::Email => mail.then(|| host_of_mail(to)),
        Channel::Webhook => Some(host_of_url(to)),
    }
}

/// Puts one effect on the bus; how long to wait where the bus takes nothing now.
async fn send(
    shard: &Shard,
    view: &StateView,
    bus: &dyn Bus,
    due: &Due,
    out: &mut Out,
) -> Result<Option<Duration>, Failure> {
    let row = view.row(&due.key).map_err(|error| unreadable(&error))?;
    let (Some(Row::Outbox(effect)), Some(session)) = (row.as_deref(), due.key.session_of()) else {
        return Ok(None);
    };
    let tenant = due.key.tenant_of();
    let EffectBody::Message { channel, to, body, .. } = &effect.body else { return Ok(None) };
    let Some(place) = place_of(&effect.body, true) else { return Ok(None) };
    let (stream, kind, input) = match channel {
        Channel::Chat => return Ok(None),
        Channel::Email => match letters::letter(view, tenant, session, effect) {
            Ok(Some(letter)) => (Stream::Mail, MAIL, letter),
            Ok(None) => {
                let ack = Body::AckEffect(AckEffect { number: effect.number });
                return submit(shard, tenant, session, ack).await.map(|_| None);
            }
            Err(error) => return Err(unreadable(&error)),
        },
        Channel::Webhook => (Stream::Webhook, POST, letters::post(to, body)),
    };
    let envelope = envelope(tenant, session, effect, kind, input);
    match bus.publish(stream, envelope).await {
        Ok(()) => {
            let (attempt, until) = (effect.attempt(), Instant::now() + LOST);
            out.insert(due.key.clone(), Sent { attempt, place, until });
            Ok(None)
        }
        Err(BusError::Size { .. }) => {
            // It will never fit, and must not stand before the others.
            let (code, message) = ("too_large".to_owned(), "it is too large to go out".to_owned());
            let (number, round) = (effect.number, Some(effect.round()));
            let fail = Body::FailEffect(FailEffect { number, code, message, round });
            submit(shard, tenant, session, fail).await.map(|()| None)
        }
        Err(BusError::Full { retry_after, .. } | BusError::Unreachable { retry_after, .. }) => {
            Ok(Some(retry_after))
        }
        Err(BusError::Closed) => Err(Failure::Draining),
    }
}

fn host_of_mail(to: &str) -> String {
    let host = to.rsplit_once('@').map_or("", |(_, host)| host);
    format!("mail {}", host.to_ascii_lowercase())
}

pub(super) fn host_of_url(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let place = rest.split(['/', '?', '#']).next().unwrap_or_default();
    format!("web {}", place.to_ascii_lowercase())
}

/// The name of an attempt, and what an answer to it must bring back.
pub(super) fn token(attempt: Attempt) -> String {
    format!("{}.{}", attempt.round, attempt.number)
}

/// Reads it.
pub(super) fn attempt(token: &str) -> Option<Attempt> {
    let (round, number) = token.split_once('.')?;
    Some(Attempt { round: round.parse().ok()?, number: number.parse().ok()? })
}

fn envelope(
    tenant: TenantId,
    session: SessionId,
    effect: &Effect,
    kind: &str,
    input: serde_json::Value,
) -> Envelope {
    let (key, token) = (format!("{session}-{}", effect.number), token(effect.attempt()));
    let errand = Errand {
        name: format!("{key}.{token}"),
        tenant: tenant.0,
        session: session.to_string(),
        item: effect.number,
        token,
        kind: kind.to_owned(),
        input,
        result_schema: serde_json::Value::Null,
        // By the machine's clock and not the server's, which may stand still.
        deadline_ms: SystemClock.now().after_ms(ATTEMPT_MS).0,
        idempotency_key: key,
        traceparent: effect.trace.clone(),
    };
    let body = serde_json::to_vec(&errand).expect("an errand is plain JSON");
    Envelope { tenant: tenant.0, id: errand.name, body }
}

async fn submit(shard: &Shard, tenant: TenantId, session: SessionId, body: Body) -> Result<(), Failure> {
    let command = Command::of_server(tenant, Scope::Session(session), body);
    match shard.submit(command).await {
        // It is gone meanwhile.
        Ok(_) | Err(Failure::Rejected(_)) => Ok(()),
        Err(failure) => Err(failure),
    }
}
