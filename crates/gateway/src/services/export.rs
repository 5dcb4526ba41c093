//! ExportService: the records of a tenant as they were at one time, for auditors.
//!
//! Rows are not kept in versions, so the time is made one after which nothing can come that belongs to it: the clock has
//! passed it, and every shard has answered a command since. A shard decides one batch after the other and stamps each with
//! the clock, so whatever it decides from then on is later. Then a record belongs to the export if its own time does.

mod history;
mod place;
mod records;
mod walk;

use futures::future::try_join_all;
use std::time::Duration;
use switchward_api::v1;
use switchward_api::v1::export_service_server::ExportService;
use switchward_engine::{AckEffect, Body, Command, Scope};
use switchward_machine::Time;
use tonic::{Request, Response, Status};

use crate::auth::roles;
use crate::convert::{self, timestamp};
use crate::door::{Call, Door, refusal};
use crate::error::Refusal;
use crate::names;
use crate::pages::Page;
use place::Place;
use walk::Walk;

/// How soon the clock is looked at again while it has not passed the time of an export.
const CLOCK_LOOK: Duration = Duration::from_millis(1);
/// No effect has this number.
const NO_EFFECT: u64 = 0;

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl ExportService for Door {
    async fn export_records(
        &self,
        request: Request<v1::ExportRecordsRequest>,
    ) -> Answered<v1::ExportRecordsResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        Ok(Response::new(export(&call, message).await?))
    }
}

async fn export(
    call: &Call<'_>,
    message: v1::ExportRecordsRequest,
) -> Result<v1::ExportRecordsResponse, Refusal> {
    names::parent(&call.caller, "parent", &message.parent)?;
    // One of the same name may be made after this tenant was deleted.
    let number = call.caller.tenant.0.to_string();
    let list = ["export", call.caller.tenant_name.as_str(), number.as_str()];
    let page = Page::read(message.page_size, &message.page_token, &list)?;
    let given = message.export_time.map(|time| convert::time("export_time", time)).transpose()?;
    let (at, place) = match &page.after {
        None => (begin(call, given).await?, Place::default()),
        Some(after) => {
            let bad = || Refusal::field("page_token", "is no token of this list");
            let (at, place) = Place::read(after).ok_or_else(bad)?;
            if given.is_some_and(|given| given != at) {
                return Err(Refusal::field("export_time", "is another time than that of the page token"));
            }
            (at, place)
        }
    };
    let mut walk = Walk::new(call, at, page.size);
    let next = walk.from(place).await?;
    Ok(v1::ExportRecordsResponse {
        records: walk.into_records(),
        next_page_token: next.map(|place| page.token(&place.bytes(at))).unwrap_or_default(),
        export_time: Some(timestamp(at)),
    })
}

/// The time of an export that begins now, once nothing more can come that belongs to it.
async fn begin(call: &Call<'_>, given: Option<Time>) -> Result<Time, Refusal> {
    let cluster = &call.door.cluster;
    let now = cluster.now();
    let at = given.unwrap_or(now);
    if at > now {
        return Err(Refusal::field("export_time", "must not lie in the future"));
    }
    // A clock that is moved by hand may stand still for good.
    while call.door.clock.is_none() && cluster.now() <= at {
        tokio::time::sleep(CLOCK_LOOK).await;
    }
    let barrier = || {
        let body = Body::AckEffect(AckEffect { number: NO_EFFECT });
        Command::of_server(call.caller.tenant, Scope::Catalogue, body)
    };
    // Each shard is asked itself: this changes nothing in any of them, and leaves no entry.
    let passed = cluster.all().map(|shard| shard.submit(barrier()));
    try_join_all(passed).await.map_err(refusal)?;
    Ok(at)
}
