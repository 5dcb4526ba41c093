//! WorkerService: hands out work under leases and takes its results.

use switchward_state::work::WorkCommand;
mod claims;
mod stream;
mod take;

use prost::Message;
use switchward_api::v1::{self, worker_service_server::WorkerService};
use switchward_machine::{Digest, Micros, OpenId, SessionId, WorkKind};
use switchward_state::limits::{LEASE_MS_MAX, LEASE_MS_MIN, WORKER_BYTES_MAX};
use switchward_state::run::ResultProblem;
use switchward_state::work::{CompleteWork, ExtendLease, FailWork, ReleaseWork, SERVER_WORKER, WorkFailure};
use switchward_state::{Body, Reply, RequestId, Scope};
use tonic::{Request, Response, Status};

pub(crate) use claims::Claims;
use take::Wanted;

use crate::api::{Api, Call, request_id};
use crate::auth::roles;
use crate::convert::{known, ms_of, timestamp};
use crate::error::{Reason, Refusal};
use crate::guard::deadline;
use crate::limits::{POLL_ITEMS_MAX, POLL_QUEUES_MAX, POLL_WAIT_MS_MAX, STREAM_LIFETIME_MS_MAX};
use crate::refusals::{named, odd};
use crate::{convert, names};

type Answered<T> = Result<Response<T>, Status>;

/// The lease of an item if the worker does not say, milliseconds.
const LEASE_MS: u64 = 60_000;
/// How long before its caller's deadline a poll ends, so that the answer arrives in time, milliseconds.
const SPARE_MS: u64 = 250;

#[tonic::async_trait]
impl WorkerService for Api {
    type StreamWorkStream = stream::Stream;

    async fn poll_work(&self, request: Request<v1::PollWorkRequest>) -> Answered<v1::PollWorkResponse> {
        let within = deadline(request.metadata().as_ref())?;
        let (call, message) = self.open(request, roles::WORK)?;
        let wanted = wanted(&call, &message.parent, message.wanted)?;
        let max = max_items(message.max_items)?;
        let wait = match message.wait {
            None => 0,
            Some(wait) => ms_of(wait).filter(|ms| *ms <= POLL_WAIT_MS_MAX).ok_or_else(|| {
                Refusal::field("wait", format!("must be at most {} seconds", POLL_WAIT_MS_MAX / 1000))
            })?,
        };
        let within = within.and_then(|within| u64::try_from(within.as_millis()).ok());
        let wait = within.map_or(wait, |within| wait.min(within.saturating_sub(SPARE_MS)));
        let items = take::poll(&call, &wanted, max, wait).await?;
        Ok(Response::new(v1::PollWorkResponse { items }))
    }

    async fn stream_work(&self, request: Request<v1::StreamWorkRequest>) -> Answered<Self::StreamWorkStream> {
        let (call, message) = self.open(request, roles::WORK)?;
        let wanted = wanted(&call, &message.parent, message.wanted)?;
        let max = max_items(message.max_items)?;
        let lifetime = match message.lifetime {
            None => None,
            Some(lifetime) => {
                let ms = ms_of(lifetime).filter(|ms| *ms <= STREAM_LIFETIME_MS_MAX);
                Some(ms.ok_or_else(|| Refusal::field("lifetime", "must be at most a day"))?)
            }
        };
        let caller = call.caller;
        Ok(Response::new(stream::start(self.clone(), caller, call.trace, wanted, max, lifetime)))
    }

    async fn extend_lease(
        &self,
        request: Request<v1::ExtendLeaseRequest>,
    ) -> Answered<v1::ExtendLeaseResponse> {
        let (call, message) = self.open(request, roles::WORK)?;
        let lease_ms = lease_ms("lease", message.lease)?;
        let held = held(&call, &message.name, &message.lease_token).await?;
        let body =
            Body::Work(WorkCommand::Extend(ExtendLease { item: held.work, fence: held.fence, lease_ms }));
        let reply = call.execute(Scope::Session(held.session), None, None, body).await;
        let reply = reply.map_err(|refusal| named(refusal, "work", &message.name))?;
        let Reply::Leased { until, .. } = reply else { return Err(odd(&reply).into()) };
        Ok(Response::new(v1::ExtendLeaseResponse { lease_expire_time: Some(timestamp(until)) }))
    }

    async fn complete_work(
        &self,
        request: Request<v1::CompleteWorkRequest>,
    ) -> Answered<v1::CompleteWorkResponse> {
        let (call, message) = self.open(request, roles::WORK)?;
        let held = held(&call, &message.name, &message.lease_token).await?;
        let request = held.request(&message.request_id, "CompleteWork", &message)?;
        let cost = cost(message.cost_usd.as_deref())?;
        let result = result(&message)?;
        let next = Some(message.next).filter(|next| !next.is_empty());
        let (item, fence, tokens) = (held.work, held.fence, message.tokens);
        let body =
            Body::Work(WorkCommand::Complete(CompleteWork { item, fence, result, cost, tokens, next }));
        let (sequence, wrong) = finished(&call, &held, &message.name, request, body).await?;
        let reason = |wrong: &ResultProblem| Reason::from(wrong.reason()).word().to_owned();
        Ok(Response::new(v1::CompleteWorkResponse {
            accepted: wrong.is_none(),
            reason: wrong.as_ref().map(reason).unwrap_or_default(),
            message: wrong.as_ref().map(switchward_messages::result_problem).unwrap_or_default(),
            sequence,
        }))
    }

    async fn fail_work(&self, request: Request<v1::FailWorkRequest>) -> Answered<v1::FailWorkResponse> {
        let (call, message) = self.open(request, roles::WORK)?;
        let held = held(&call, &message.name, &message.lease_token).await?;
        let request = held.request(&message.request_id, "FailWork", &message)?;
        let (cost, tokens) = (cost(message.cost_usd.as_deref())?, message.tokens);
        let (item, fence) = (held.work, held.fence);
        let unknown = message.outcome_unknown;
        let body = Body::Work(WorkCommand::Fail(FailWork {
            item,
            fence,
            failure: WorkFailure::Reported { text: message.message },
            cost,
            tokens,
            unknown,
        }));
        let (sequence, _) = finished(&call, &held, &message.name, request, body).await?;
        Ok(Response::new(v1::FailWorkResponse { sequence }))
    }

    async fn release_work(
        &self,
        request: Request<v1::ReleaseWorkRequest>,
    ) -> Answered<v1::ReleaseWorkResponse> {
        let (call, message) = self.open(request, roles::WORK)?;
        let held = held(&call, &message.name, &message.lease_token).await?;
        let request = held.request(&message.request_id, "ReleaseWork", &message)?;
        let body = Body::Work(WorkCommand::Release(ReleaseWork { item: held.work, fence: held.fence }));
        let (sequence, _) = finished(&call, &held, &message.name, request, body).await?;
        Ok(Response::new(v1::ReleaseWorkResponse { sequence }))
    }
}

/// The result of work: an object, or any other JSON; null if there is none.
fn result(message: &v1::CompleteWorkRequest) -> Result<serde_json::Value, Refusal> {
    match (&message.result, &message.value) {
        (Some(_), Some(_)) => Err(Refusal::field("value", "must be absent if there is a `result`")),
        (Some(result), None) => {
            convert::json::of_struct(result).map_err(|problem| Refusal::field("result", problem))
        }
        (None, Some(value)) => {
            convert::json::of_value(value).map_err(|problem| Refusal::field("value", problem))
        }
        (None, None) => Ok(serde_json::Value::Null),
    }
}

/// Work that a caller claims to hold.
struct Held {
    session: SessionId,
    work: OpenId,
    fence: u64,
    token: String,
}

impl Held {
    /// The request id under which the work is finished: the caller's, else the lease's own, so that a repetition finds
    /// the first reply either way. Only the first result of a lease counts. No caller can give an id of the second kind:
    /// see [`request_id`].
    fn request(
        &self,
        given: &str,
        method: &str,
        message: &impl Message,
    ) -> Result<Option<RequestId>, Refusal> {
        if !given.is_empty() {
            return request_id(given, method, message);
        }
        let id = format!("lease:{method}:{}", self.token);
        Ok(Some(RequestId { body: Digest::of(id.as_bytes()), id }))
    }
}

/// The token of a lease: its fence, with a part of a digest of the work and the fence, so that a mixed-up number is no valid
/// token. It is no secret: a session ends or extends a lease only for the subject of the key that took it.
fn token(session: SessionId, work: OpenId, fence: u64) -> String {
    let mark = Digest::of_parts(&[b"lease", &session.0, &work.0.to_be_bytes(), &fence.to_be_bytes()]);
    let mark: String = mark.0.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{fence}.{mark}")
}

async fn held(call: &Call<'_>, name: &str, given: &str) -> Result<Held, Refusal> {
    let (session, work) = names::work(&call.caller, "name", name)?;
    let fence = given.split_once('.').and_then(|(fence, _)| fence.parse::<u64>().ok());
    match fence.filter(|fence| token(session, work, *fence) == given) {
        Some(fence) => Ok(Held { session, work, fence, token: given.to_owned() }),
        None => {
            // Work of another tenant is answered like work that never existed, whatever the token.
            call.session(session, name).await.map_err(|refusal| named(refusal, "work", name))?;
            Err(Refusal::field("lease_token", "is not a lease token of this work"))
        }
    }
}

/// Executes a command that ends a lease. Returns the session's sequence afterwards, and what was wrong with a result.
async fn finished(
    call: &Call<'_>,
    held: &Held,
    name: &str,
    request: Option<RequestId>,
    body: Body,
) -> Result<(u64, Option<ResultProblem>), Refusal> {
    let reply = call.execute(Scope::Session(held.session), request, None, body).await;
    let reply = reply.map_err(|refusal| named(refusal, "work", name))?;
    if let Reply::Worked { sequence, wrong, .. } = reply {
        return Ok((sequence, wrong));
    }
    let Reply::Session { sequence, .. } = reply else { return Err(odd(&reply)) };
    Ok((sequence, None))
}

fn cost(text: Option<&str>) -> Result<Micros, Refusal> {
    Ok(convert::reported("cost_usd", text)?.unwrap_or_default())
}

fn max_items(count: u32) -> Result<usize, Refusal> {
    match usize::try_from(count) {
        Ok(count) if count <= POLL_ITEMS_MAX => Ok(count.max(1)),
        Ok(_) | Err(_) => Err(Refusal::field("max_items", format!("must be at most {POLL_ITEMS_MAX}"))),
    }
}

fn lease_ms(field: &str, lease: Option<prost_types::Duration>) -> Result<u64, Refusal> {
    let Some(lease) = lease else { return Ok(LEASE_MS) };
    ms_of(lease).filter(|ms| (LEASE_MS_MIN..=LEASE_MS_MAX).contains(ms)).ok_or_else(|| {
        let (least, most) = (LEASE_MS_MIN / 1000, LEASE_MS_MAX / 1000);
        Refusal::field(field, format!("must be {least} to {most} seconds"))
    })
}

/// The worker's name: the one that it gives, else the subject of its key.
fn worker_name(call: &Call<'_>, given: String) -> Result<String, Refusal> {
    let field = "wanted.worker_id";
    if given.len() > WORKER_BYTES_MAX || given.chars().any(char::is_control) {
        let message = format!("must be at most {WORKER_BYTES_MAX} bytes without control characters");
        return Err(Refusal::field(field, message));
    }
    let name = if given.is_empty() { call.caller.actor.subject.clone() } else { given };
    if name == SERVER_WORKER {
        return Err(Refusal::field(field, format!("must not be `{SERVER_WORKER}`, the name of the servers")));
    }
    Ok(name)
}

fn wanted(call: &Call<'_>, parent: &str, wanted: Option<v1::WorkWanted>) -> Result<Wanted, Refusal> {
    names::parent(&call.caller, "parent", parent)?;
    let wanted = wanted.unwrap_or_default();
    let mut kinds = Vec::new();
    for kind in &wanted.kinds {
        kinds.push(match known("wanted.kinds", *kind)? {
            v1::WorkKind::Agent => WorkKind::Agent,
            v1::WorkKind::Extract => WorkKind::Extract,
            v1::WorkKind::Judge => WorkKind::Judge,
            v1::WorkKind::Http => WorkKind::Http,
            v1::WorkKind::Classify => WorkKind::Classify,
            v1::WorkKind::Delegate => WorkKind::Delegate,
            v1::WorkKind::Intent => WorkKind::Intent,
            v1::WorkKind::Tool => WorkKind::Tool,
            v1::WorkKind::Interaction => WorkKind::Interaction,
            v1::WorkKind::Script => WorkKind::Script,
            v1::WorkKind::Unspecified => {
                return Err(Refusal::field("wanted.kinds", "must be kinds such as WORK_KIND_EXTRACT"));
            }
        });
    }
    if kinds.is_empty() {
        kinds.extend(WorkKind::ALL.into_iter().filter(|kind| !call.api.own.contains(kind)));
    }
    kinds.sort();
    kinds.dedup();
    if wanted.queues.len() > POLL_QUEUES_MAX {
        return Err(Refusal::field("wanted.queues", format!("must be at most {POLL_QUEUES_MAX} names")));
    }
    let queue = |name: &String| names::definition(&call.caller, "wanted.queues", name).map(str::to_owned);
    let queues = wanted.queues.iter().map(queue).collect::<Result<Vec<_>, _>>()?;
    let worker = worker_name(call, wanted.worker_id)?;
    Ok(Wanted { kinds, queues, worker, lease_ms: lease_ms("wanted.lease", wanted.lease)? })
}
