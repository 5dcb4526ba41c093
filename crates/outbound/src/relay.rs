//! A leader task: leases the work that the server does by itself and puts it on the bus. The record is the work in the
//! session; what the bus loses is leased and published again when its lease has lapsed. What an earlier leader had leased is
//! published again at once, see [`adopt`].

mod adopt;

use futures::future::join_all;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use switchward_bus::{Bus, BusError, Envelope, Published, Stream};
use switchward_delivery::channels::HttpRequest;
use switchward_delivery::limits::JOBS_MAX;
use switchward_delivery::model::{Kind, Question};
use switchward_delivery::worker::{DeliveryJob, JobInput, Origin};
use switchward_delivery::{DeliveryReason, Failed};
use switchward_engine::WorkView;
use switchward_machine::{Micros, OpenId, SessionId, TenantId, WorkKind};
use switchward_query::outgoing::{ShardView, WorkName};
use switchward_shard::{Failure, Shard};
use switchward_state::delivery::JobProblem;
use switchward_state::session::ReplyTokens;
use switchward_state::work::{FailWork, LeaseWork, ReleaseWork, SERVER_WORKER, WorkCommand, WorkFailure};
use switchward_state::{Body, Command, Reply, Scope, ViewError};
use tokio::sync::watch;

use super::leading;
use super::ready::{Turn, ready};
use crate::reach::BusReach;

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

/// Work that servers have leased.
struct Leased {
    name: WorkName,
    /// Its destination, as far as its input shows it.
    destination: String,
    /// The number of its lease.
    fence: u64,
}

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
    /// The term in which the leases of earlier ones were looked for, and no round has failed since then.
    adopted: Option<u64>,
}

/// What the relay needs.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) bus: Arc<dyn Bus>,
    pub(super) reach: BusReach,
    /// The kinds of work that go out.
    pub(super) kinds: Vec<WorkKind>,
    /// How many shards share the capacity.
    pub(super) shards: usize,
}

/// Relays the delivery jobs of one shard while this server leads it, until it is stopped.
pub(super) async fn work(shard: Shard, context: Context, mut stop: watch::Receiver<bool>) {
    let mut news = shard.watch_work();
    let mut out = Out { sent: BTreeMap::new(), turn: None, shards: context.shards, adopted: None };
    loop {
        if !shard.leads() {
            (out.sent, out.turn, out.adopted) = (BTreeMap::new(), None, None);
            if !leading::began(&shard, &mut stop).await {
                return;
            }
        }
        let pause = match round(&shard, &context, &mut out).await {
            Ok(pause) => pause,
            Err(failure) if failure.is_final() => return,
            Err(_) => {
                // It may have leased work that it has not published.
                out.adopted = None;
                Some(TICK)
            }
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
async fn round(shard: &Shard, context: &Context, out: &mut Out) -> Result<Option<Duration>, Failure> {
    let bus = context.bus.as_ref();
    forget_done(shard, out).await?;
    if let Some(wait) = adopt::leases(shard, context, out).await? {
        return Ok(Some(wait));
    }
    let ready = ready(&ShardView::linearizable(shard).await?, &context.kinds, out)
        .map_err(|error| unreadable(&error))?;
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

fn unreadable(error: &ViewError) -> Failure {
    tracing::error!(%error, "failed to read the work items that are ready");
    Failure::Stopped
}

/// Leases work and publishes it. Returns how long to wait if the bus refused something.
async fn send(
    shard: &Shard,
    bus: &dyn Bus,
    stream: Stream,
    ready: &[(WorkName, String)],
    out: &mut Out,
) -> Result<Option<Duration>, Failure> {
    let leasing = join_all(ready.iter().map(|((tenant, session, work), _)| async {
        // Not passed on to another leader: that one has looked for leases without a job already, see `adopt`.
        let command = Command::of_server(*tenant, Scope::Session(*session), lease(*work));
        match shard.submit_here(Arc::new(command)).await {
            Ok(Reply::Leased { fence, .. }) => Ok(Some(fence)),
            // A worker was faster, or the work is void.
            Ok(_) | Err(Failure::Rejected(_)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }));
    let (mut leased, mut failed) = (Vec::new(), None);
    for ((name, destination), fence) in ready.iter().zip(leasing.await) {
        match fence {
            Ok(Some(fence)) => leased.push(Leased { name: *name, destination: destination.clone(), fence }),
            Ok(None) => {}
            // What is leased goes out, whatever became of the others.
            Err(failure) => failed = Some(failure),
        }
    }
    let mut wait = None;
    for (leased, error) in publish(shard, bus, stream, leased, out).await? {
        give_back(shard, &leased).await?;
        wait = Some(refused(&error).max(TICK));
    }
    failed.map_or(Ok(wait), Err)
}

/// Publishes leased work, without waiting for one before the next, and ends what can never be sent. Returns what the bus
/// refused.
async fn publish(
    shard: &Shard,
    bus: &dyn Bus,
    stream: Stream,
    leased: Vec<Leased>,
    out: &mut Out,
) -> Result<Vec<(Leased, BusError)>, Failure> {
    let view = ShardView::linearizable(shard).await?;
    let (mut unsendable, mut refused) = (Vec::new(), Vec::new());
    let publishing = pack(&view, leased, &mut unsendable).into_iter().map(|(leased, envelope)| async move {
        let published = bus.publish(stream, envelope).await;
        (leased, published)
    });
    for (leased, published) in join_all(publishing).await {
        match published {
            Ok(Published::Added | Published::Already) => {
                let Leased { name, destination, fence } = leased;
                out.sent.insert(name, Sent { fence, stream, destination });
            }
            // It will never fit, and must not stand before the others.
            Err(BusError::Size { .. }) => {
                unsendable.push((leased, WorkFailure::TooLarge));
            }
            Err(error) => refused.push((leased, error)),
        }
    }
    for (leased, failure) in unsendable {
        let (tenant, session, item) = leased.name;
        settled(submit(shard, tenant, session, fail(item, leased.fence, failure)).await)?;
    }
    Ok(refused)
}

/// The result of a word about leased work. That the session does not take it, because the work is void or another's by now,
/// stops no other work: what is still leased lapses.
fn settled(taken: Result<Reply, Failure>) -> Result<(), Failure> {
    match taken {
        Ok(_) => Ok(()),
        Err(Failure::Rejected(no)) => {
            tracing::info!(reason = no.reason.code(), "leased work stays as it is until its lease lapses");
            Ok(())
        }
        Err(failure) => Err(failure),
    }
}

/// Puts leased work into envelopes. What has no readable input is unsendable, with the reason.
fn pack(
    view: &ShardView,
    leased: Vec<Leased>,
    unsendable: &mut Vec<(Leased, WorkFailure)>,
) -> Vec<(Leased, Envelope)> {
    let mut packed = Vec::new();
    for leased in leased {
        let (tenant, session, item) = leased.name;
        let Ok(Some(work)) = view.work(tenant, session, item) else { continue };
        let Ok(found) = stored_input(view, tenant, session, &work) else { continue };
        match input(&work, &found) {
            Ok(input) => {
                let envelope = job(&leased, &work, input).envelope();
                packed.push((leased, envelope));
            }
            Err(Failed { reason, detail, .. }) => {
                unsendable.push((leased, WorkFailure::Attempt { reason, detail }));
            }
        }
    }
    packed
}

/// Gives work back that is not on the bus: it is ready again.
async fn give_back(shard: &Shard, leased: &Leased) -> Result<(), Failure> {
    let ((tenant, session, item), fence) = (leased.name, leased.fence);
    let release = Body::Work(WorkCommand::Release(ReleaseWork { item, fence }));
    settled(submit(shard, tenant, session, release).await)
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
        | WorkKind::Intent
        | WorkKind::Tool
        | WorkKind::Interaction
        | WorkKind::Script => (Stream::Model, QUESTIONS_OUT_MAX),
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
    Body::Work(WorkCommand::Lease(LeaseWork { item, worker: SERVER_WORKER.into(), lease_ms: LEASE_MS }))
}

/// Ends work that cannot be sent. An earlier attempt at it may have been done.
fn fail(item: OpenId, fence: u64, failure: WorkFailure) -> Body {
    let (cost, tokens, unknown) = (Micros(0), 0, true);
    Body::Work(WorkCommand::Fail(FailWork { item, fence, failure, cost, tokens, unknown }))
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

/// The input of work as it is now: JSON, because the same stored input is handed to workers outside. [`input`] reads it for
/// this server's own jobs. Reply tokens are put into what is sent outside; a model, which could not return them, sees
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
        WorkKind::Agent | WorkKind::Delegate | WorkKind::Tool | WorkKind::Interaction | WorkKind::Script => {
            return Err(Failed::new(DeliveryReason::JobInvalid, JobProblem::WorkersOnly));
        }
    };
    let question = Question::read(kind, stored)?;
    Ok(JobInput::Model { question, result_schema: work.schema.0.clone() })
}

/// What a delivery is to do for leased work, in the time that its lease lasts but for a reserve.
fn job(leased: &Leased, work: &WorkView, input: JobInput) -> DeliveryJob {
    let (tenant, session, item) = leased.name;
    DeliveryJob {
        tenant,
        session,
        origin: Origin::Work { item, fence: leased.fence },
        input,
        ttl_ms: LEASE_MS - SPARE_MS,
        idempotency_key: work.name_outside(session),
        traceparent: work.head.trace.clone(),
    }
}
