//! ExportService: the records of a tenant as they were at one time, for auditors.
//!
//! Rows have no versions, so the export first waits until no record with its time or an earlier one can still appear: the
//! clocks of all servers that lead have passed that time, and every shard has answered a command since. A shard decides one
//! batch after the other and stamps each with its leader's clock, so everything it decides from then on is later. A record
//! belongs to the export if its own time does.

use switchward_state::delivery::DeliveryCommand;
mod history;
mod position;
mod records;
mod walk;

use futures::future::try_join_all;
use position::Position;
use std::time::Duration;
use switchward_api::v1::{self, export_service_server::ExportService};
use switchward_machine::Time;
use switchward_shard::{ClockAgreement, Failure};
use switchward_state::delivery::AckEffect;
use switchward_state::{Body, Command, Scope};
use tonic::{Request, Response, Status};
use walk::Walk;

use crate::api::{Api, Call};
use crate::auth::roles;
use crate::convert::timestamp;
use crate::error::Refusal;
use crate::limits::CLOCKS_APART_MS_MAX;
use crate::pages::Page;
use crate::refusals::refusal;
use crate::{convert, names};

/// How soon at the earliest the clock is checked again until it has passed the time of an export.
const CLOCK_LOOK: Duration = Duration::from_millis(1);
/// A number that no effect has.
const NO_EFFECT: u64 = 0;

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl ExportService for Api {
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
    // A tenant of the same name may be created after this one was deleted.
    let number = call.caller.tenant.0.to_string();
    let list = ["export", call.caller.tenant_name.as_str(), number.as_str()];
    let page = Page::read(message.page_size, &message.page_token, &list)?;
    let given = message.export_time.map(|time| convert::time("export_time", time)).transpose()?;
    let (at, position) = match &page.after {
        None => (begin(call, given).await?, Position::default()),
        Some(after) => {
            let bad = || Refusal::field("page_token", "is not a page token of this list");
            let (at, position) = Position::read(after).ok_or_else(bad)?;
            if given.is_some_and(|given| given != at) {
                return Err(Refusal::field("export_time", "must be the time of the page token"));
            }
            (at, position)
        }
    };
    let mut walk = Walk::new(call, at, page.size);
    let next = walk.from(position).await?;
    Ok(v1::ExportRecordsResponse {
        records: walk.into_records(),
        next_page_token: next.map(|position| page.token(&position.bytes(at))).unwrap_or_default(),
        export_time: Some(timestamp(at)),
    })
}

/// Returns the time of an export that begins now, once no further record can belong to it.
async fn begin(call: &Call<'_>, given: Option<Time>) -> Result<Time, Refusal> {
    let cluster = &call.api.cluster;
    let behind_ms = behind_ms(cluster.clock_agreement()).map_err(refusal)?;
    let now = cluster.now();
    let at = given.unwrap_or(now);
    if at > now {
        return Err(Refusal::field("export_time", "must not be in the future"));
    }
    let passed = at.after_ms(behind_ms);
    // A manual clock may stand still forever.
    while call.api.clock.is_none() && cluster.now() <= passed {
        let left = Duration::from_millis(passed.since_ms(cluster.now()));
        tokio::time::sleep(left.max(CLOCK_LOOK)).await;
    }
    let barrier = || {
        let body = Body::Delivery(DeliveryCommand::AckEffect(AckEffect { number: NO_EFFECT }));
        Command::of_server(call.caller.tenant, Scope::Catalogue, body)
    };
    // Sent to each shard directly: this changes nothing in any of them, and leaves no log entry.
    let answers = cluster.all().map(|shard| shard.submit(barrier()));
    try_join_all(answers).await.map_err(refusal)?;
    Ok(at)
}

/// How far the clock of a server that leads a shard may be behind this server's, milliseconds.
///
/// # Errors
/// This server's clock was not compared yet: it may be ahead of all others, and records of days to come would belong to the
/// export.
fn behind_ms(clock: ClockAgreement) -> Result<u64, Failure> {
    match clock {
        ClockAgreement::Alone => Ok(0),
        ClockAgreement::Unknown => Err(Failure::Electing),
        ClockAgreement::Agrees | ClockAgreement::Undecided { .. } | ClockAgreement::Differs { .. } => {
            Ok(CLOCKS_APART_MS_MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_waits_for_the_clocks_of_the_other_servers() {
        assert_eq!(behind_ms(ClockAgreement::Alone), Ok(0));
        assert_eq!(behind_ms(ClockAgreement::Agrees), Ok(CLOCKS_APART_MS_MAX));
        // By a clock that is ahead the server does not go, and by one that is behind the others have passed the time.
        assert_eq!(behind_ms(ClockAgreement::Differs { by_ms: 3_600_000 }), Ok(CLOCKS_APART_MS_MAX));
        assert_eq!(behind_ms(ClockAgreement::Unknown), Err(Failure::Electing));
    }
}
