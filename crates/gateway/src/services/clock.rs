//! ClockService: the clock of a development server.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use switchward_api::v1;
use switchward_api::v1::clock_service_server::ClockService;
use switchward_engine::RequestId;
use switchward_machine::{Digest, TenantId, Time};
use switchward_shard::{Clock, ManualClock};
use tonic::{Request, Response, Status};

use crate::auth::roles;
use crate::convert::{TIME_MAX, ms_of, timestamp};
use crate::door::{Door, request_id};
use crate::error::{Reason, Refusal};

type Answered<T> = Result<Response<T>, Status>;

/// The longest step of the clock: 3,660 days, milliseconds.
const STEP_MS_MAX: u64 = 3_660 * 24 * 3_600_000;
/// Request ids that are remembered; then all are forgotten. It is a development server's convenience.
const REQUESTS_MAX: usize = 10_000;

/// What an advance answered, by tenant and request id.
#[derive(Debug, Default)]
pub(crate) struct Advances(Mutex<BTreeMap<(TenantId, String), (Digest, Time)>>);

#[tonic::async_trait]
impl ClockService for Door {
    async fn advance_clock(
        &self,
        request: Request<v1::AdvanceClockRequest>,
    ) -> Answered<v1::AdvanceClockResponse> {
        let (call, message) = self.open(request, roles::OPERATE)?;
        let Some(clock) = &self.clock else { return Err(unmoved().into()) };
        let request = request_id(&message.request_id, "AdvanceClock", &message)?;
        let step = message.duration.and_then(ms_of).filter(|step| (1..=STEP_MS_MAX).contains(step));
        let step =
            step.ok_or_else(|| Refusal::field("duration", "must be from a millisecond to 3,660 days"))?;
        let known = &mut *self.advances.0.lock();
        let Some(RequestId { id, body }) = request else {
            return Ok(advanced(forward(clock, step)?));
        };
        let key = (call.caller.tenant, id);
        match known.get(&key) {
            Some((before, time)) if *before == body => Ok(advanced(*time)),
            Some(_) => {
                let message = format!("request id {:?} came before with another body; use a new one", key.1);
                Err(Refusal::new(Reason::RequestIdReused, message).meta("request_id", key.1).into())
            }
            None => {
                let time = forward(clock, step)?;
                if known.len() >= REQUESTS_MAX {
                    known.clear();
                }
                known.insert(key, (body, time));
                Ok(advanced(time))
            }
        }
    }

    async fn get_clock(&self, request: Request<v1::GetClockRequest>) -> Answered<v1::GetClockResponse> {
        self.open(request, roles::ANY)?;
        if self.clock.is_none() {
            return Err(unmoved().into());
        }
        Ok(Response::new(v1::GetClockResponse { time: Some(timestamp(self.cluster.now())) }))
    }
}

fn advanced(time: Time) -> Response<v1::AdvanceClockResponse> {
    Response::new(v1::AdvanceClockResponse { time: Some(timestamp(time)) })
}

/// Moves the clock, but not beyond what a time in an answer can say.
fn forward(clock: &ManualClock, step: u64) -> Result<Time, Refusal> {
    if clock.now().after_ms(step) > TIME_MAX {
        return Err(Refusal::field("duration", "would take the clock beyond the year 9999"));
    }
    Ok(clock.advance(step))
}

fn unmoved() -> Refusal {
    Refusal::new(
        Reason::Unimplemented,
        "this server's clock is the system's; only `dev --clock manual` has one to move",
    )
}
