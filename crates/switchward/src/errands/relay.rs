//! A leader's duty: work that the server does by itself is leased and put on the bus. The record is the work in the
//! session; what the bus loses is leased and put there again when its lease has lapsed.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use switchward_bus::{Bus, BusError, Envelope, Stream};
use switchward_delivery::desk::Errand;
use switchward_engine::{
    Body, Command, FailWork, IndexKey, LeaseWork, ReleaseWork, Reply, Scope, View as _, WorkView, work_view,
};
use switchward_machine::{Micros, OpenId, SessionId, TenantId, WorkKind};
use switchward_shard::{Clock as _, Failure, Shard, SystemClock};
use tokio::sync::watch;

/// How long an errand may take from its lease on, milliseconds; then it goes out again.
const LEASE_MS: u64 = 90_000;
/// Requests of one shard that are out at one time.
const REQUESTS_OUT_MAX: usize = 128;
/// Questions of one shard that are out at one time: what a desk can ask within a lease.
const QUESTIONS_OUT_MAX: usize = 12;
/// What is left of a lease when its errand must be over, so that its outcome comes while the lease holds, milliseconds.
const SPARE_MS: u64 = 20_000;
/// How long is waited where nothing is told, and at least after a bus that took something not.
const TICK: Duration = Duration::from_secs(1);
/// What the history calls whoever leases them.
const WORKER: &str = "delivery";

/// Work that is out, by its place, with its lease.
type Out = BTreeMap<(TenantId, SessionId, OpenId), (u64, Stream)>;

/// Relays the errands of one shard until it is told to stop.
pub(super) async fn work(
    shard: Shard,
    bus: Arc<dyn Bus>,
    kinds: Vec<WorkKind>,
    mut stop: watch::Receiver<bool>,
) {
    let mut news = shard.watch_work();
    let mut out = Out::new();
    loop {
        let pause = match round(&shard, bus.as_ref(), &kinds, &mut out).await {
            Ok(pause) => pause,
            Err(Failure::Electing | Failure::Overloaded | Failure::Rejected(_)) => Some(TICK),
            Err(Failure::Draining | Failure::Stopped) => return,
        };
        // Whichever comes first: a change that comes while nobody waits is kept.
        tokio::select! {
            told = news.changed(), if pause.is_none() => if !told { return },
            () = tokio::time::sleep(pause.unwrap_or(TICK)) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// Puts on the bus what is ready, as far as there is room; how long to wait where the bus took something not.
async fn round(
    shard: &Shard,
    bus: &dyn Bus,
    kinds: &[WorkKind],
    out: &mut Out,
) -> Result<Option<Duration>, Failure> {
    forget_done(shard, out).await?;
    for kind in kinds {
        let (stream, most) = stream_of(*kind);
        let room = most.saturating_sub(out.values().filter(|(_, of)| *of == stream).count());
        for (tenant, session, work) in ready(shard, *kind, room).await? {
            let fence = match submit(shard, tenant, session, lease(work)).await {
                Ok(Reply::Leased { fence, .. }) => fence,
                // A worker was faster, or the work is void.
                Ok(_) | Err(Failure::Rejected(_)) => continue,
                Err(failure) => return Err(failure),
            };
            let view = shard.read().await?.steady(|rows| work_view(rows, tenant, session, work));
            let Ok(Some(view)) = view else { continue };
            match bus.publish(stream, envelope(tenant, session, &view, fence)).await {
                Ok(()) => drop(out.insert((tenant, session, work), (fence, stream))),
                Err(BusError::Size { .. }) => {
                    // It will never fit, and must not stand before the others.
                    let (message, cost, tokens) = ("it is too large to go out".to_owned(), Micros(0), 0);
                    let fail = Body::FailWork(FailWork { thing: work, fence, message, cost, tokens });
                    submit(shard, tenant, session, fail).await.map(drop)?;
                }
                Err(error) => {
                    let release = Body::ReleaseWork(ReleaseWork { thing: work, fence });
                    submit(shard, tenant, session, release).await.map(drop)?;
                    return Ok(Some(refused(&error).max(TICK)));
                }
            }
        }
    }
    Ok(None)
}

/// The stream that this kind of work goes out by, and how much of one shard is on it at one time.
fn stream_of(kind: WorkKind) -> (Stream, usize) {
    match kind {
        WorkKind::Http => (Stream::Http, REQUESTS_OUT_MAX),
        WorkKind::Agent
        | WorkKind::Extract
        | WorkKind::Judge
        | WorkKind::Classify
        | WorkKind::Delegate
        | WorkKind::Intent => (Stream::Model, QUESTIONS_OUT_MAX),
    }
}

/// How long to wait before the bus is asked again.
fn refused(error: &BusError) -> Duration {
    match error {
        // The bus tells by itself that it cannot be reached.
        BusError::Unreachable { retry_after, .. } => *retry_after,
        BusError::Full { .. } | BusError::Closed | BusError::Size { .. } => {
            tracing::warn!(%error, "an errand was not taken by the bus; it waits");
            TICK
        }
    }
}

fn lease(thing: OpenId) -> Body {
    Body::LeaseWork(LeaseWork { thing, worker: WORKER.into(), lease_ms: LEASE_MS })
}

/// The first work of this kind that nobody has.
async fn ready(
    shard: &Shard,
    kind: WorkKind,
    max: usize,
) -> Result<Vec<(TenantId, SessionId, OpenId)>, Failure> {
    let mut found = Vec::new();
    if max == 0 {
        return Ok(found);
    }
    let view = shard.read().await?;
    let read = view.scan(&IndexKey::errands(kind), None, &mut |entry, _| {
        found.extend(IndexKey::errand_of(entry));
        if found.len() < max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    match read {
        Ok(()) => Ok(found),
        Err(error) => {
            tracing::error!(%error, "failed to read the work that is ready");
            Err(Failure::Stopped)
        }
    }
}

/// Forgets what is done, given back or lost.
async fn forget_done(shard: &Shard, out: &mut Out) -> Result<(), Failure> {
    let view = shard.read().await?;
    out.retain(|(tenant, session, work), (fence, _)| {
        let found = view.steady(|rows| work_view(rows, *tenant, *session, *work)).ok().flatten();
        found.is_some_and(|found| found.owed.fence == *fence && found.owed.lease.is_some())
    });
    Ok(())
}

async fn submit(shard: &Shard, tenant: TenantId, session: SessionId, body: Body) -> Result<Reply, Failure> {
    let command = Command::of_server(tenant, Scope::Session(session), body);
    shard.submit(command).await
}

fn envelope(tenant: TenantId, session: SessionId, view: &WorkView, fence: u64) -> Envelope {
    let mut input = view.owed.input.0.clone();
    if let (WorkKind::Judge, Some(input)) = (view.kind, input.as_object_mut()) {
        // A judge judges what is so now.
        input.insert("data".into(), serde_json::Value::Object(view.data.clone()));
        input.extend(view.said.clone().map(|said| ("said".to_owned(), said.into())));
    }
    let key = format!("{session}-{}", view.id.0);
    let errand = Errand {
        name: format!("{key}.{fence}"),
        tenant: tenant.0,
        session: session.to_string(),
        item: view.id.0,
        token: fence.to_string(),
        kind: view.kind.word().to_owned(),
        input,
        result_schema: view.schema.clone(),
        // By the machine's clock and not the server's, which may stand still.
        deadline_ms: SystemClock.now().after_ms(LEASE_MS - SPARE_MS).0,
        idempotency_key: key,
        traceparent: view.thing.trace.clone(),
    };
    let body = serde_json::to_vec(&errand).expect("an errand is plain JSON");
    Envelope { tenant: tenant.0, id: errand.name, body }
}
