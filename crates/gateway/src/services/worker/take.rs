//! Takes work that is ready, and waits for it.

use futures::{StreamExt as _, stream::FuturesUnordered};
use prost::Message as _;
use std::time::Duration;
use switchward_api::v1;
use switchward_engine::WorkView;
use switchward_machine::{OpenId, SessionId, Time, WorkKind};
use switchward_shard::{Cluster, Failure, Shard, Watched};
use switchward_state::work::{LeaseWork, WorkCommand};
use switchward_state::{Body, Reply, Scope};
use tokio::time::Instant;

use super::super::watch::begun;
use super::claims::Claim;
use crate::api::{Api, Call};
use crate::auth::{Caller, invalid, key_of};
use crate::convert::{json, timestamp};
use crate::error::{Reason, Refusal};
use crate::limits::POLL_BYTES_MAX;
use crate::names;
use crate::query::{GetWork, ListReady, Reader, Ready};
use crate::refusals::{refusal, unreadable};

/// Which work is wanted, and for which worker.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) kinds: Vec<WorkKind>,
    /// Empty: all.
    pub(super) queues: Vec<String>,
    pub(super) worker: String,
    pub(super) lease_ms: u64,
}

/// Work that was taken.
pub(super) struct Taken {
    pub(super) session: SessionId,
    pub(super) work: OpenId,
    pub(super) fence: u64,
    pub(super) item: v1::WorkItem,
}

/// Takes up to `max` items, and waits for some if none is ready. A key that becomes invalid meanwhile gets nothing: it is
/// checked before each try, and at once if it is revoked.
pub(super) async fn poll(
    call: &Call<'_>,
    wanted: &Wanted,
    max: usize,
    wait_ms: u64,
) -> Result<Vec<v1::WorkItem>, Refusal> {
    let until = Instant::now() + Duration::from_millis(wait_ms);
    // Waiting begins before looking, so that nothing that becomes ready falls between the two.
    let mut news = News::of(&call.api.cluster);
    let mut draining = call.api.draining.subscribe();
    let mut revoked = call.api.revocations.changed.subscribe();
    loop {
        check_key(call.api, &call.caller)?;
        let (taken, _) = take(call, wanted, max, Unreachable::Refused).await?;
        if !taken.is_empty() {
            return Ok(taken.into_iter().map(|taken| taken.item).collect());
        }
        tokio::select! {
            () = news.come() => {}
            changed = revoked.changed() => changed.map_err(|_| refusal(Failure::Draining))?,
            () = tokio::time::sleep_until(until) => return Ok(Vec::new()),
            () = begun(&mut draining) => return Ok(Vec::new()),
        }
    }
}

/// Refuses a caller whose key is no longer valid.
pub(super) fn check_key(api: &Api, caller: &Caller) -> Result<(), Refusal> {
    let key = key_of(&api.cluster, &caller.key_id);
    if key.is_some_and(|key| key.works(api.cluster.now())) { Ok(()) } else { Err(invalid()) }
}

/// Notifies when work of any shard is opened, released or finished.
pub(super) struct News(Vec<Watched>);

impl News {
    pub(super) fn of(cluster: &Cluster) -> Self {
        Self(cluster.shards().iter().map(Shard::watch_work).collect())
    }

    /// Waits for the next change.
    ///
    /// Cancel safe: a change is not lost.
    pub(super) async fn come(&mut self) {
        let mut any: FuturesUnordered<_> = self.0.iter_mut().map(Watched::changed).collect();
        while let Some(changed) = any.next().await {
            if changed {
                return;
            }
        }
        // Every shard is gone, and the server with them.
        std::future::pending().await
    }
}

/// What becomes of a call if a shard cannot answer now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreachable {
    /// The call is refused.
    Refused,
    /// The shard is left out, unless no shard answers.
    LeftOut,
}

/// Whether every shard was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looked {
    /// At all of them.
    Everywhere,
    /// Some were left out.
    AtSome,
}

/// Takes up to `max` items that are ready, oldest first.
pub(super) async fn take(
    call: &Call<'_>,
    wanted: &Wanted,
    max: usize,
    unreachable: Unreachable,
) -> Result<(Vec<Taken>, Looked), Refusal> {
    let (mut ready, mut looked) = ready(call, wanted, max, unreachable).await?;
    ready.sort_unstable();
    ready.dedup();
    let mut taken: Vec<Taken> = Vec::new();
    let mut bytes = 0;
    for Ready { session, work, .. } in ready {
        if taken.len() >= max || bytes >= POLL_BYTES_MAX {
            break;
        }
        let Some(_claim) = Claim::on(&call.api.claims, session, work) else { continue };
        match lease(call, wanted, session, work).await {
            Ok(found) => {
                bytes += found.as_ref().map_or(0, |found| found.item.encoded_len());
                taken.extend(found);
            }
            // Items that are already taken are handed out anyway.
            Err(_) if !taken.is_empty() => break,
            Err(refused) if unreachable == Unreachable::LeftOut && is_unreachable(&refused) => {
                looked = Looked::AtSome;
            }
            Err(refused) => return Err(refused),
        }
    }
    Ok((taken, looked))
}

/// Returns true if another shard may answer although this one does not. A lease whose outcome is unknown lapses.
pub(super) fn is_unreachable(refused: &Refusal) -> bool {
    [Reason::ShardElecting, Reason::ShardStopped, Reason::OutcomeUnknown].contains(&refused.reason())
}

/// The first items of each shard that are ready.
async fn ready(
    call: &Call<'_>,
    wanted: &Wanted,
    max: usize,
    unreachable: Unreachable,
) -> Result<(Vec<Ready>, Looked), Refusal> {
    let query = ListReady {
        tenant: call.caller.tenant,
        kinds: wanted.kinds.clone(),
        queues: wanted.queues.clone(),
        max: u32::try_from(max).unwrap_or(u32::MAX),
    };
    let (mut ready, mut left_out) = (Vec::new(), 0);
    let shards = call.api.cluster.shards();
    for shard in shards {
        match Reader::linearizable(shard).await.map_err(refusal) {
            Ok(rows) => ready.extend(rows.answer(&query).map_err(unreadable)?),
            Err(refused) if unreachable == Unreachable::LeftOut && is_unreachable(&refused) => {
                left_out += 1;
                // A server that leads nothing has no work: another one has.
                if left_out == shards.len() {
                    return Err(refused);
                }
            }
            Err(refused) => return Err(refused),
        }
    }
    Ok((ready, if left_out == 0 { Looked::Everywhere } else { Looked::AtSome }))
}

/// Takes one item; `None` if another worker has it by now.
async fn lease(
    call: &Call<'_>,
    wanted: &Wanted,
    session: SessionId,
    work: OpenId,
) -> Result<Option<Taken>, Refusal> {
    let body = Body::Work(WorkCommand::Lease(LeaseWork {
        item: work,
        worker: wanted.worker.clone(),
        lease_ms: wanted.lease_ms,
    }));
    let (fence, until, loaded) = match call.execute(Scope::Session(session), None, None, body).await {
        Ok(Reply::Leased { fence, until, loaded, .. }) => (fence, until, loaded),
        Ok(other) => return Err(crate::refusals::odd(&other)),
        Err(refused) if [Reason::StateMismatch, Reason::LeaseLost].contains(&refused.reason()) => {
            return Ok(None);
        }
        Err(refused) => return Err(refused),
    };
    let found = match WorkView::at_hand(work, &loaded) {
        Some(found) => Some(found),
        // A taken item may be void a moment later; then there is nothing to hand out.
        None => call.ask(&GetWork { tenant: call.caller.tenant, session, work }).await?,
    };
    Ok(found.map(|found| Taken {
        session,
        work,
        fence,
        item: item(&call.caller, session, &found, fence, until),
    }))
}

fn item(caller: &Caller, session: SessionId, view: &WorkView, fence: u64, until: Time) -> v1::WorkItem {
    let kind = match view.kind {
        WorkKind::Agent => v1::WorkKind::Agent,
        WorkKind::Extract => v1::WorkKind::Extract,
        WorkKind::Judge => v1::WorkKind::Judge,
        WorkKind::Http => v1::WorkKind::Http,
        WorkKind::Classify => v1::WorkKind::Classify,
        WorkKind::Delegate => v1::WorkKind::Delegate,
        WorkKind::Intent => v1::WorkKind::Intent,
    };
    let object = |value: &serde_json::Value| value.as_object().map(json::to_struct);
    v1::WorkItem {
        name: names::of_work(caller, session, view.id),
        lease_token: super::token(session, view.id, fence),
        lease_expire_time: Some(timestamp(until)),
        kind: kind.into(),
        session: names::of_session(caller, session),
        version: match view.version {
            0 => String::new(),
            version => names::of_version(caller, &view.owed.queue, version),
        },
        state: view.node.clone(),
        attempt: view.attempt,
        input: object(&view.owed.input.0),
        result_schema: object(&view.schema.0),
        data: Some(json::to_struct(&view.data)),
        last_message: view.said.clone().unwrap_or_default(),
        create_time: Some(timestamp(view.head.at)),
        traceparent: view.head.trace.clone().unwrap_or_default(),
        idempotency_key: view.name_outside(session),
        assistant: view
            .assistant
            .as_ref()
            .map(|it| names::of_assistant(caller, &it.name))
            .unwrap_or_default(),
        assistant_instructions: view.assistant.as_ref().map(|it| it.instructions.clone()).unwrap_or_default(),
    }
}
