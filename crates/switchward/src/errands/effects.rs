//! A leader's duty: effects of sessions are put on the bus, each once at a time, and no tenant's before another's turn.
//! The record is the outbox; what the bus loses is put there again when its time is over.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use switchward_bus::{Bus, BusError, Envelope, Stream};
use switchward_delivery::desk::{Errand, HOOK, MAIL, POST};
use switchward_delivery::limits::ERRANDS_MAX;
use switchward_engine::{
    AckEffect, Attempt, Body, Command, Due, Effect, EffectBody, FailEffect, IndexKey, Key, Row, View as _,
    ViewError, holds_effects, scope_of_effects,
};
use switchward_machine::{Channel, SessionId, TenantId, Time};
use switchward_shard::{Clock as _, Cluster, Failure, Shard, StateView, SystemClock};
use tokio::sync::watch;
use tokio::time::Instant;

use super::caps::{Caps, Counted};
use super::hooks::{self, Hook};
use super::lanes::Lanes;
use super::letters;
use super::places::{Place, Places};
use super::room::{Room, Rooms};
use super::rules::Known;

/// How long one attempt may take, from its publishing on, milliseconds.
const ATTEMPT_MS: u64 = 90_000;
/// When an attempt of which nothing was heard is taken for lost, and the effect is put on the bus again. Longer than an
/// attempt may take, so that the two cannot contradict.
const LOST: Duration = Duration::from_millis(ATTEMPT_MS + 15_000);
/// Effects of the catalogue that are out by one stream at one time.
pub(super) const CATALOGUE_OUT_MAX: usize = 32;
/// Of all shards with sessions together: together with those, what a desk does at one time.
pub(super) const SESSIONS_OUT_MAX: usize = ERRANDS_MAX - CATALOGUE_OUT_MAX;
/// What is free must be more than this many times what a place of a tenant has out: alone it comes to one fourth of all.
const PLACE_PART: usize = 3;
/// Effects that one look at a place passes over.
const LOOK_MAX: usize = 1_024;
/// Effects that are gathered before they are put on the bus together; a place's last may make them more.
const TOGETHER: usize = 64;
/// How long a mail waits, where this server sends none, for one that does or for a configuration that says how,
/// milliseconds. Then it is a dead letter: it must not take the room of what can go out.
const UNSENT_MAIL_MS: u64 = 10 * 60_000;
/// The code of such a dead letter.
const NO_MAIL: &str = "mail.not_configured";
/// How long is waited where nothing is told.
const TICK: Duration = Duration::from_secs(1);

/// An effect that is out.
struct Sent {
    attempt: Attempt,
    stream: Stream,
    place: Place,
    /// Counts it, if it is a mail.
    _counted: Counted,
    /// When it is taken for lost.
    until: Instant,
}

/// What is out.
#[derive(Default)]
struct Out {
    /// Effects by their rows.
    sent: BTreeMap<Key, Sent>,
    places: Places,
    lanes: Lanes,
    /// Behind which entry of the index the next round begins, so that who stands first has no advantage.
    turn: Option<Vec<u8>>,
    /// Whether it was said that mails are given up because this server sends none.
    told_of_mail: bool,
}

impl Out {
    /// The rooms for what goes out, so much by each stream, less what is out.
    fn rooms(&self, most: usize) -> Rooms {
        let mut rooms: Rooms =
            [Stream::Mail, Stream::Webhook].map(|stream| (stream, Room::new(most, PLACE_PART))).into();
        for Sent { stream, place: (tenant, place), .. } in self.sent.values() {
            if let Some(room) = rooms.get_mut(stream) {
                room.take(*tenant, place);
            }
        }
        rooms
    }
}

/// What came of a round.
enum Round {
    /// Everything that is due is out, or has no room.
    Done,
    /// The bus takes nothing now.
    Full(Duration),
}

/// The way out.
#[derive(Clone)]
pub(super) struct Road {
    pub(super) bus: Arc<dyn Bus>,
    /// Whether mails go out here.
    pub(super) mail: bool,
    /// What tenants are called.
    pub(super) names: Arc<Known<Cluster>>,
    /// The mails of all shards that are out.
    pub(super) caps: Caps,
}

/// Relays the effects of one shard, so many by each stream at one time, until it is told to stop.
pub(super) async fn work((shard, most): (Shard, usize), road: Road, mut stop: watch::Receiver<bool>) {
    let mut news = shard.watch_outbox();
    let (mut out, mut told) = (Out::default(), false);
    loop {
        let wait = match round((&shard, most), &road, &mut out).await {
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
            Err(Failure::Electing | Failure::Overloaded | Failure::DiskLow { .. } | Failure::Rejected(_)) => {
                Some(TICK)
            }
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

async fn round((shard, most): (&Shard, usize), road: &Road, out: &mut Out) -> Result<Round, Failure> {
    let view = shard.read().await?;
    forget(&view, out)?;
    out.lanes.age(Instant::now());
    let began = out.turn.clone();
    let (mut after, mut wrapped) = (began.clone(), false);
    let mut ready = Vec::new();
    let mut rooms = out.rooms(most);
    while !rooms.values().all(Room::is_full) {
        let entry = out.lanes.next(&view, after.as_deref(), shard.now());
        let Some(entry) = entry.map_err(|error| unreadable(&error))? else {
            if wrapped || began.is_none() {
                break;
            }
            (after, wrapped) = (None, true);
            continue;
        };
        let behind = IndexKey::behind_lane(&entry);
        if wrapped && began.as_ref().is_some_and(|began| behind > *began) {
            break;
        }
        let due = if is_held(&view, &entry)? {
            Vec::new()
        } else {
            due_of((&view, shard.now()), &entry, road.mail, out, &mut rooms)?
        };
        for due in due {
            if unsent(shard, &view, road, &due, out).await? {
                continue;
            }
            if let Some(counted) = road.caps.counted(shard, &view, &due).await? {
                ready.extend(pack(shard, &view, road, (&due, counted), out).await?);
            }
        }
        out.turn = Some(behind.clone());
        after = Some(behind);
        if ready.len() >= TOGETHER
            && let Some(wait) = publish(shard, road, std::mem::take(&mut ready), out).await?
        {
            return Ok(Round::Full(wait));
        }
    }
    Ok(publish(shard, road, ready, out).await?.map_or(Round::Done, Round::Full))
}

/// Returns true if nothing of the tenant of an entry may go out now.
fn is_held(view: &StateView, entry: &Key) -> Result<bool, Failure> {
    let tenant = IndexKey::tenant_of_queued(entry);
    let held = tenant.map_or(Ok(false), |tenant| holds_effects(view, tenant));
    held.map_err(|error| unreadable(&error))
}

pub(super) fn unreadable(error: &switchward_engine::ViewError) -> Failure {
    tracing::error!(%error, "failed to read the outbox");
    Failure::Stopped
}

/// Forgets what has arrived, was put off or is taken for lost, and learns from it how places do.
fn forget(view: &StateView, out: &mut Out) -> Result<(), Failure> {
    let (now, mut broken) = (Instant::now(), None);
    let Out { sent, places, .. } = out;
    sent.retain(|key, sent| {
        is_out(view, (key, sent), places, now).unwrap_or_else(|error| {
            broken = Some(error);
            true
        })
    });
    broken.map_or(Ok(()), |error| Err(unreadable(&error)))
}

/// Whether an effect that went out may still arrive.
fn is_out(
    view: &StateView,
    (key, sent): (&Key, &Sent),
    places: &mut Places,
    now: Instant,
) -> Result<bool, ViewError> {
    let row = view.row(key)?;
    let Some(Row::Outbox(effect)) = row.as_deref() else {
        places.took(&sent.place);
        return Ok(false);
    };
    // What is given up says that it could not be taken; what is put off, that the place could not take it.
    if effect.dead().is_none() && effect.attempt() != sent.attempt {
        places.failed(&sent.place, now);
    }
    Ok(effect.dead().is_none() && effect.attempt() == sent.attempt && sent.until > now)
}

/// What is due and not out of what goes to the place of this entry, as much as there is room for.
fn due_of(
    (view, now): (&StateView, Time),
    entry: &Key,
    mail: bool,
    out: &Out,
    rooms: &mut Rooms,
) -> Result<Vec<Due>, Failure> {
    let (mut found, mut looked, mut broken) = (Vec::new(), 0, None);
    let scanned = view.scan(&IndexKey::lane(entry), out.lanes.begin(entry), &mut |entry, _| {
        looked += 1;
        let Some(due) = IndexKey::queued_of(entry) else { return ControlFlow::Break(()) };
        if due.at > now || looked > LOOK_MAX {
            return ControlFlow::Break(());
        }
        if out.sent.contains_key(&due.key) {
            return ControlFlow::Continue(());
        }
        match view.row(&due.key) {
            Ok(row) => {
                let Some(Row::Outbox(effect)) = row.as_deref() else { return ControlFlow::Continue(()) };
                let mail = mail || due.at.after_ms(UNSENT_MAIL_MS) <= now;
                let room = stream_of(&effect.body, mail).and_then(|stream| rooms.get_mut(&stream));
                let Some(room) = room else { return ControlFlow::Continue(()) };
                let place @ (tenant, name) = &(due.key.tenant_of(), effect.body.place());
                let most = out.places.room(place, Instant::now());
                if room.out(*tenant, name) >= most || !room.has_for(*tenant, name) {
                    return ControlFlow::Break(());
                }
                room.take(*tenant, name);
                found.push(due);
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

/// The stream by which an effect goes from here, or would go that is to be given up.
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

/// Gives up a mail that has waited long where this server sends none; its session then says so, and it can be sent anew
/// once the configuration says how.
async fn unsent(
    shard: &Shard,
    view: &StateView,
    road: &Road,
    due: &Due,
    out: &mut Out,
) -> Result<bool, Failure> {
    if road.mail {
        return Ok(false);
    }
    let row = view.row(&due.key).map_err(|error| unreadable(&error))?;
    let (Some(Row::Outbox(effect)), Some(session)) = (row.as_deref(), due.key.session_of()) else {
        return Ok(false);
    };
    let EffectBody::Message { channel: Channel::Email, .. } = &effect.body else { return Ok(false) };
    if !std::mem::replace(&mut out.told_of_mail, true) {
        tracing::warn!("mails are given up as {NO_MAIL}: the configuration has no [mail]");
    }
    let message =
        "the server sends no mail: its configuration has no [mail]; send it anew once it has".to_owned();
    let named = Named { key: due.key.clone(), session, number: effect.number, round: effect.round() };
    give_up(shard, &named, (NO_MAIL, message)).await.map(|()| true)
}

/// An effect: its row, its session, its number there, and how often it was sent anew.
struct Named {
    key: Key,
    session: SessionId,
    number: u64,
    round: u32,
}

/// An effect that is to be put on the bus.
struct Packed {
    due: Named,
    stream: Stream,
    envelope: Envelope,
}

/// Makes one effect ready for the bus, from where on it counts as out; nothing where it does not go there.
async fn pack(
    shard: &Shard,
    view: &StateView,
    road: &Road,
    (due, counted): (&Due, Counted),
    out: &mut Out,
) -> Result<Option<Packed>, Failure> {
    let row = view.row(&due.key).map_err(|error| unreadable(&error))?;
    let (Some(Row::Outbox(effect)), Some(session)) = (row.as_deref(), due.key.session_of()) else {
        return Ok(None);
    };
    let tenant = due.key.tenant_of();
    let place = (tenant, effect.body.place());
    let named = Named { key: due.key.clone(), session, number: effect.number, round: effect.round() };
    let parcel =
        parcel((view, shard.now()), road, tenant, session, effect).map_err(|error| unreadable(&error))?;
    let (stream, kind, input) = match parcel {
        Parcel::Out(stream, kind, input) => (stream, kind, input),
        Parcel::Stays => return Ok(None),
        Parcel::Arrived => {
            let ack = Body::AckEffect(AckEffect { number: effect.number });
            return submit(shard, tenant, session, ack).await.map(|()| None);
        }
        Parcel::Dead(message) => {
            return give_up(shard, &named, (hooks::FAILED, message)).await.map(|()| None);
        }
    };
    let (attempt, until) = (effect.attempt(), Instant::now() + LOST);
    out.sent.insert(due.key.clone(), Sent { attempt, stream, place, _counted: counted, until });
    Ok(Some(Packed { due: named, stream, envelope: envelope(tenant, session, effect, kind, input) }))
}

/// Puts effects on the bus, in their order and without waiting for one before the next; how long to wait where the bus
/// takes nothing now.
async fn publish(
    shard: &Shard,
    road: &Road,
    ready: Vec<Packed>,
    out: &mut Out,
) -> Result<Option<Duration>, Failure> {
    let each = ready.into_iter().map(|it| async move {
        let Packed { due, stream, envelope } = it;
        (due, road.bus.publish(stream, envelope).await)
    });
    let mut wait = None;
    for (due, told) in join_all(each).await {
        let Err(error) = told else { continue };
        out.sent.remove(&due.key);
        match error {
            BusError::Size { .. } => {
                // It will never fit, and must not stand before the others.
                give_up(shard, &due, ("too_large", "it is too large to go out".to_owned())).await?;
            }
            BusError::Full { retry_after, .. } | BusError::Unreachable { retry_after, .. } => {
                wait = Some(retry_after);
            }
            BusError::Closed => return Err(Failure::Draining),
        }
    }
    Ok(wait)
}

/// What is to be done with an effect.
enum Parcel {
    /// It goes out: over which stream, as which kind of errand, and what the errand holds.
    Out(Stream, &'static str, serde_json::Value),
    /// It stays where it is, for another server or a later time.
    Stays,
    /// There is nothing left to do.
    Arrived,
    /// It cannot be sent, for this reason.
    Dead(String),
}

fn parcel(
    (view, now): (&StateView, Time),
    road: &Road,
    tenant: TenantId,
    session: SessionId,
    effect: &Effect,
) -> Result<Parcel, ViewError> {
    Ok(match &effect.body {
        EffectBody::Message { channel, to, body, .. } => match channel {
            Channel::Chat => Parcel::Stays,
            Channel::Email => match letters::letter(view, tenant, session, effect, now)? {
                Some(letter) => Parcel::Out(Stream::Mail, MAIL, letter),
                None => Parcel::Arrived,
            },
            Channel::Webhook => {
                Parcel::Out(Stream::Webhook, POST, letters::message(view, (tenant, session), (to, body))?)
            }
        },
        EffectBody::Publish { .. } => {
            match hooks::hook(view, &*road.names, (tenant, session), effect, SystemClock.now())? {
                Hook::Send(input) => Parcel::Out(Stream::Webhook, HOOK, input),
                Hook::Drop => Parcel::Arrived,
                Hook::Fail(why) => Parcel::Dead(why),
            }
        }
        EffectBody::Notice { .. } | EffectBody::Confirm { .. } | EffectBody::Settle { .. } => Parcel::Stays,
    })
}

/// An effect that will never go out must not stand before the others.
async fn give_up(shard: &Shard, due: &Named, (code, message): (&str, String)) -> Result<(), Failure> {
    let (number, round, code) = (due.number, Some(due.round), code.to_owned());
    let fail = FailEffect { number, code, message, round };
    submit(shard, due.key.tenant_of(), due.session, Body::FailEffect(fail)).await
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

pub(super) async fn submit(
    shard: &Shard,
    tenant: TenantId,
    session: SessionId,
    body: Body,
) -> Result<(), Failure> {
    let command = Command::of_server(tenant, scope_of_effects(session), body);
    match shard.submit(command).await {
        // It is gone meanwhile.
        Ok(_) | Err(Failure::Rejected(_)) => Ok(()),
        Err(failure) => Err(failure),
    }
}

#[cfg(test)]
mod tests;
