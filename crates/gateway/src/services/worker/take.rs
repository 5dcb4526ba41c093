//! Takes work that is ready, and waits for it.

use futures::{StreamExt as _, stream::FuturesUnordered};
use prost::Message as _;
use std::time::Duration;
use switchward_api::v1;
use switchward_engine::{NamedExit, WorkView};
use switchward_machine::{OpenId, SessionId, Time, WorkKind};
use switchward_query::{ListReady, Ready};
use switchward_shard::{Cluster, Failure, MapChanges, Shard, Watched};
use switchward_state::work::{LeaseWork, WorkCommand};
use switchward_state::{Body, Reply, Scope};
use tokio::time::Instant;

use super::super::watch::begun;
use super::claims::Claim;
use crate::api::Call;
use crate::auth::{Caller, check_key};
use crate::convert::{json, timestamp};
use crate::error::{Reason, Refusal};
use crate::limits::POLL_BYTES_MAX;
use crate::names;
use crate::readable::{Readable, is_unreachable, readable};
use crate::refusals::{refusal, unreadable};

/// How soon a shard that could not answer is asked again.
pub(super) const AGAIN: Duration = Duration::from_secs(1);

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
pub(super) struct LeasedWork {
    pub(super) session: SessionId,
    pub(super) work: OpenId,
    pub(super) fence: u64,
    pub(super) item: v1::WorkItem,
}

/// What a look for ready work came to.
pub(super) struct Leases {
    pub(super) items: Vec<LeasedWork>,
    pub(super) looked: Looked,
    /// The number of leases of which it is unknown whether they were taken. They lapse.
    pub(super) unknown: usize,
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
    let mut credentials = call.api.cluster.catalogue().watch_credentials();
    let mut unknown = 0;
    loop {
        let found = async {
            check_key(&call.api.cluster, &call.caller)?;
            take(call, wanted, max).await
        };
        let found = found.await.map_err(|refusal| refusal.after_parts(unknown))?;
        if !found.items.is_empty() {
            return Ok(found.items.into_iter().map(|taken| taken.item).collect());
        }
        unknown += found.unknown;
        tokio::select! {
            () = news.come() => {}
            going_on = credentials.changed() => if !going_on {
                return Err(refusal(Failure::Draining).after_parts(unknown));
            },
            () = tokio::time::sleep_until(until) => return Ok(Vec::new()),
            () = tokio::time::sleep(AGAIN), if found.looked == Looked::AtSome => {}
            () = begun(&mut draining) => return Ok(Vec::new()),
        }
    }
}

/// Notifies when work of any shard is opened, released or finished, and when buckets may have moved: what is ready in one that
/// has moved was opened at its former owner.
pub(super) struct News {
    work: Vec<Watched>,
    maps: MapChanges,
}

impl News {
    pub(super) fn of(cluster: &Cluster) -> Self {
        Self { work: cluster.shards().iter().map(Shard::watch_work).collect(), maps: cluster.watch_map() }
    }

    /// Waits for the next change.
    ///
    /// Cancel safe: a change is not lost.
    pub(super) async fn come(&mut self) {
        let mut any: FuturesUnordered<_> = self.work.iter_mut().map(Watched::changed).collect();
        let come = async {
            while let Some(changed) = any.next().await {
                if changed {
                    return;
                }
            }
            // Every shard is gone, and the server with them.
            std::future::pending().await
        };
        tokio::select! {
            () = come => {}
            true = self.maps.changed() => {}
        }
    }
}

/// Whether every shard was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looked {
    /// At all of them.
    Everywhere,
    /// Some were left out.
    AtSome,
}

/// Takes up to `max` items that are ready, oldest first. A shard that cannot answer delays no other.
pub(super) async fn take(call: &Call<'_>, wanted: &Wanted, max: usize) -> Result<Leases, Refusal> {
    let (mut ready, mut looked) = ready(call, wanted, max).await?;
    ready.sort_unstable();
    ready.dedup();
    let mut taken: Vec<LeasedWork> = Vec::new();
    let (mut bytes, mut unknown) = (0, 0);
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
            Err(refused) if is_unreachable(&refused) => {
                looked = Looked::AtSome;
                unknown += usize::from(refused.reason() == Reason::OutcomeUnknown);
            }
            Err(refused) => return Err(refused.after_parts(unknown)),
        }
    }
    Ok(Leases { items: taken, looked, unknown })
}

/// The first items of each shard that are ready. A shard that cannot be read is left out, unless none can.
async fn ready(call: &Call<'_>, wanted: &Wanted, max: usize) -> Result<(Vec<Ready>, Looked), Refusal> {
    let query = ListReady {
        tenant: call.caller.tenant,
        kinds: wanted.kinds.clone(),
        queues: wanted.queues.clone(),
        max: u32::try_from(max).unwrap_or(u32::MAX),
    };
    let Readable { readers, unreachable } = readable(&call.api.cluster).await?;
    let mut ready = Vec::new();
    for rows in readers {
        ready.extend(rows.answer(&query).map_err(unreadable)?);
    }
    Ok((ready, if unreachable.is_empty() { Looked::Everywhere } else { Looked::AtSome }))
}

/// Takes one item; `None` if another worker has it by now.
async fn lease(
    call: &Call<'_>,
    wanted: &Wanted,
    session: SessionId,
    work: OpenId,
) -> Result<Option<LeasedWork>, Refusal> {
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
    Ok(WorkView::of(work, &loaded).map(|found| LeasedWork {
        session,
        work,
        fence,
        item: item(&call.caller, session, &found, fence, until),
    }))
}

fn exit(exit: &NamedExit) -> v1::WorkExit {
    v1::WorkExit { name: exit.name.clone(), label: exit.label.clone() }
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
        WorkKind::Tool => v1::WorkKind::Tool,
        WorkKind::Interaction => v1::WorkKind::Interaction,
        WorkKind::Script => v1::WorkKind::Script,
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
        exits: view.exits.iter().map(exit).collect(),
        model: view.model.clone().unwrap_or_default(),
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
        run: view.head.run.0,
    }
}
