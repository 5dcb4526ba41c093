//! A leader task: leases the work that the server does by itself and puts it on the bus. The record is the work in the
//! session; what the bus loses is leased and published again when its lease has lapsed.

use futures::future::join_all;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use switchward_bus::{Bus, BusError, Published, Stream};
use switchward_delivery::channels::HttpRequest;
use switchward_delivery::limits::JOBS_MAX;
use switchward_delivery::model::{Kind, Question};
use switchward_delivery::worker::{DeliveryJob, JobInput, Origin};
use switchward_delivery::{DeliveryReason, Failed};
use switchward_engine::WorkView;
use switchward_machine::{Micros, OpenId, SessionId, TenantId, WorkKind};
use switchward_shard::{Failure, Shard};
use switchward_state::session::ReplyTokens;
use switchward_state::work::{FailWork, LeaseWork, ReleaseWork, WorkCommand};
use switchward_state::{Body, Command, Reply, Scope, ViewError};
use tokio::sync::watch;

use super::leading;
use super::ready::{Turn, ready};
use crate::query::{ShardView, WorkName};

/// How long a delivery job may take from its lease on, milliseconds; then it goes out again.
const LEASE_MS: u64 = 90_000;
/// Model calls of all shards in flight at one time: what a delivery worker can do within a lease.
const QUESTIONS_OUT_MAX: usize = 48;
/// What is left of a lease at the end of its job's time, so that the outcome comes while the lease holds, milliseconds.
const SPARE_MS: u64 = 20_000;
/// Work that is leased and put on the bus together.
const TOGETHER: usize = 32;
/// How long to wait if nothing is reported, and at least after the bus refused something.
const TICK: Duration = Duration::from_secs(1);
/// The worker name in the history.
pub(super) const WORKER: &str = "delivery";

/// Work that is out.
pub(super) struct Sent {
    /// Its lease.
    fence: u64,
    pub(super) stream: Stream,
    /// Its destination, as far as its input shows it.
    pub(super) destination: String,
}

/// What is in flight, and where the next round begins.
pub(super) struct Out {
    pub(super) sent: BTreeMap<WorkName, Sent>,
    pub(super) turn: Turn,
    /// How many shards share the capacity.
    pub(super) shards: usize,
}

/// Relays the delivery jobs of one shard of `shards` while this server leads it, until it is stopped.
pub(super) async fn work(
    shard: Shard,
    bus: Arc<dyn Bus>,
    kinds: Vec<WorkKind>,
    shards: usize,
    mut stop: watch::Receiver<bool>,
) {
    let mut news = shard.watch_work();
    let mut out = Out { sent: BTreeMap::new(), turn: None, shards };
    loop {
        if !shard.leads() {
            (out.sent, out.turn) = (BTreeMap::new(), None);
            if !leading::began(&shard, &mut stop).await {
                return;
            }
        }
        let pause = match round(&shard, bus.as_ref(), &kinds, &mut out).await {
            Ok(pause) => pause,
            Err(failure) if failure.is_final() => return,
            Err(_) => Some(TICK),
        };
        // Whichever comes first: a change that comes while nobody waits is kept.
        tokio::select! {
            open = news.changed(), if pause.is_none() => if !open { return },
            () = tokio::time::sleep(pause.unwrap_or(TICK)) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// Publishes what is ready, as far as there is capacity. Returns how long to wait if the bus refused something.
async fn round(
    shard: &Shard,
    bus: &dyn Bus,
    kinds: &[WorkKind],
    out: &mut Out,
) -> Result<Option<Duration>, Failure> {
    forget_done(shard, out).await?;
    let ready = ready(&ShardView::linearizable(shard).await?, kinds, out).map_err(|error| {
        tracing::error!(%error, "failed to read the work items that are ready");
        Failure::Stopped
    })?;
    for (stream, ready) in ready {
        // A lease and its end are two entries of the log: a bus that is down must not cost them at every try.
        if let Err(error) = bus.ready(stream).await {
            return Ok(Some(refused(&error).max(TICK)));
        }
        for some in ready.chunks(TOGETHER) {
            if let Some(wait) = send(shard, bus, stream, some, out).await? {
                return Ok(Some(wait));
            }
        }
    }
    Ok(None)
}

/// Leases work and publishes it, without waiting for one before the next. Returns how long to wait if the bus refused
/// something.
async fn send(
    shard: &Shard,
    bus: &dyn Bus,
    stream: Stream,
    ready: &[(WorkName, String)],
    out: &mut Out,
) -> Result<Option<Duration>, Failure> {
    let leased = join_all(ready.iter().map(|((tenant, session, work), _)| async {
        match submit(shard, *tenant, *session, lease(*work)).await {
            Ok(Reply::Leased { fence, .. }) => Ok(Some(fence)),
            // A worker was faster, or the work is void.
            Ok(_) | Err(Failure::Rejected(_)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }));
    let leased = leased.await;
    let view = ShardView::linearizable(shard).await?;
    let (mut packed, mut unreadable, mut failed) = (Vec::new(), Vec::new(), None);
    for ((name, destination), fence) in ready.iter().zip(leased) {
        // What is leased goes out, whatever became of the others.
        let fence = fence.unwrap_or_else(|failure| {
            failed = Some(failure);
            None
        });
        let (Some(fence), (tenant, session, work)) = (fence, *name) else { continue };
        let Ok(Some(work)) = view.work(tenant, session, work) else { continue };
        let Ok(found) = stored_input(&view, tenant, session, &work) else { continue };
        match input(&work, &found) {
            Ok(input) => {
                packed.push((name, destination, fence, job(tenant, session, &work, fence, input).envelope()));
            }
            Err(why) => {
                unreadable.push((*name, fail(name.2, fence, format!("{}: {}", why.reason, why.message))))
            }
        }
    }
    let published = join_all(packed.into_iter().map(|(name, destination, fence, envelope)| async move {
        (name, destination, fence, bus.publish(stream, envelope).await)
    }));
    let mut wait = None;
    for (name @ (tenant, session, work), destination, fence, published) in published.await {
        match published {
            Ok(Published::Added | Published::Already) => {
                out.sent.insert(*name, Sent { fence, stream, destination: destination.clone() });
            }
            Err(BusError::Size { .. }) => {
                // It will never fit, and must not stand before the others.
                let fail = fail(*work, fence, "the work item is too large to be sent".to_owned());
                submit(shard, *tenant, *session, fail).await.map(drop)?;
            }
            Err(error) => {
                let release = Body::Work(WorkCommand::Release(ReleaseWork { item: *work, fence }));
                submit(shard, *tenant, *session, release).await.map(drop)?;
                wait = Some(refused(&error).max(TICK));
            }
        }
    }
    for ((tenant, session, _), fail) in unreadable {
        submit(shard, tenant, session, fail).await.map(drop)?;
    }
    failed.map_or(Ok(wait), Err)
}

/// The stream of this kind of work, and how much of all shards of a server is in flight on it.
pub(super) fn stream_of(kind: WorkKind) -> (Stream, usize) {
    match kind {
        WorkKind::Http => (Stream::Http, JOBS_MAX),
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
        // The bus itself reports that it cannot be reached.
        BusError::Unreachable { retry_after, .. } => *retry_after,
        BusError::Full { .. } | BusError::Closed | BusError::Size { .. } => {
            tracing::warn!(%error, "the bus did not accept a delivery job; it waits");
            TICK
        }
    }
}

fn lease(item: OpenId) -> Body {
    Body::Work(WorkCommand::Lease(LeaseWork { item, worker: WORKER.into(), lease_ms: LEASE_MS }))
}

/// Ends work that cannot be sent. An earlier attempt at it may have been done.
fn fail(item: OpenId, fence: u64, message: String) -> Body {
    let (cost, tokens, unknown) = (Micros(0), 0, true);
    Body::Work(WorkCommand::Fail(FailWork { item, fence, message, cost, tokens, unknown }))
}

/// Forgets what is done, given back or lost.
async fn forget_done(shard: &Shard, out: &mut Out) -> Result<(), Failure> {
    let view = ShardView::linearizable(shard).await?;
    out.sent.retain(|(tenant, session, work), sent| {
        let found = view.work(*tenant, *session, *work).ok().flatten();
        found.is_some_and(|found| found.owed.fence == sent.fence && found.owed.lease.is_some())
    });
    Ok(())
}

async fn submit(shard: &Shard, tenant: TenantId, session: SessionId, body: Body) -> Result<Reply, Failure> {
    let command = Command::of_server(tenant, Scope::Session(session), body);
    shard.submit(command).await
}

/// The input of work as it is now. Reply tokens are put into what is sent outside; a model, which could not return them, sees
/// the placeholders that are stored instead.
fn stored_input(
    view: &ShardView,
    tenant: TenantId,
    session: SessionId,
    work: &WorkView,
) -> Result<Value, ViewError> {
    let mut input = work.owed.input.0.clone();
    if let (WorkKind::Judge, Some(input)) = (work.kind, input.as_object_mut()) {
        // A judge judges what is so now.
        input.insert("data".into(), Value::Object(work.data.clone()));
        input.extend(work.said.clone().map(|said| ("said".to_owned(), said.into())));
    }
    if work.kind == WorkKind::Http
        && let Some(tokens) = ReplyTokens::of_session(view.rows(), tenant, session)?
    {
        tokens.put_into_json(&mut input);
    }
    Ok(input)
}

/// Reads the input of a delivery job.
fn input(work: &WorkView, stored: &Value) -> Result<JobInput, Failed> {
    let kind = match work.kind {
        WorkKind::Http => return HttpRequest::read(stored).map(JobInput::Http),
        WorkKind::Extract => Kind::Extract,
        WorkKind::Judge => Kind::Judge,
        WorkKind::Classify => Kind::Classify,
        WorkKind::Intent => Kind::Intent,
        WorkKind::Agent | WorkKind::Delegate => {
            return Err(Failed::new(DeliveryReason::JobInvalid, "only workers do this kind of work"));
        }
    };
    let question = Question::read(kind, stored)?;
    Ok(JobInput::Model { question, result_schema: work.schema.0.clone() })
}

/// The job of leased work.
fn job(tenant: TenantId, session: SessionId, work: &WorkView, fence: u64, input: JobInput) -> DeliveryJob {
    DeliveryJob {
        tenant,
        session,
        origin: Origin::Work { item: work.id, fence },
        input,
        ttl_ms: LEASE_MS - SPARE_MS,
        idempotency_key: work.name_outside(session),
        traceparent: work.head.trace.clone(),
    }
}
