//! ClockService: the clock of a development server.

use switchward_query::{FiredTimers, GetFirstTimer, Reader};
use switchward_state::session::SessionCommand;
mod advances;

use switchward_api::v1::{self, clock_service_server::ClockService};
use switchward_machine::Time;
use switchward_shard::{Clock, Failure, ManualClock};
use switchward_state::session::Sweep;
use switchward_state::{Body, Command, Due, RequestId};
use tonic::{Request, Response, Status};

use advances::Advance;
pub(crate) use advances::Advances;

use crate::api::{Api, request_id};
use crate::auth::roles;
use crate::convert::{TIME_MAX, ms_of, timestamp};
use crate::error::{Reason, Refusal};
use crate::refusals::{refusal, unreadable};

type Answered<T> = Result<Response<T>, Status>;

/// The longest step of the clock: 3,660 days, milliseconds.
const STEP_MS_MAX: u64 = 3_660 * 24 * 3_600_000;
/// Request ids that are remembered; then all are forgotten. It is a development server's convenience.
const REQUESTS_MAX: usize = 10_000;
/// Timers of one step that fire at their own time; what is left of them then fires at its end.
const TIMERS_MAX: usize = 10_000;

/// The clock of a development server, which calls move: the clock of all servers of its cluster.
#[tonic::async_trait]
pub trait MovableClock: Send + Sync + 'static {
    /// The time of this server's clock.
    fn now(&self) -> Time;

    /// Moves the clocks of all servers on to this time; a clock that is later stays. Returns when none is earlier any more,
    /// so that no leader decides what follows with an earlier time.
    ///
    /// # Errors
    /// A server cannot be reached, so that its clock may be earlier; repeating the call moves those that are left.
    async fn advance_to(&self, time: Time) -> Result<(), Failure>;
}

#[tonic::async_trait]
impl MovableClock for ManualClock {
    fn now(&self) -> Time {
        Clock::now(self)
    }

    async fn advance_to(&self, time: Time) -> Result<(), Failure> {
        Self::advance_to(self, time);
        Ok(())
    }
}

#[tonic::async_trait]
impl ClockService for Api {
    async fn advance_clock(
        &self,
        request: Request<v1::AdvanceClockRequest>,
    ) -> Answered<v1::AdvanceClockResponse> {
        let (call, message) = self.open(request, roles::OPERATE)?;
        let Some(clock) = self.clock.as_deref() else { return Err(unmoved().into()) };
        let request = request_id(&message.request_id, "AdvanceClock", &message)?;
        let step = message.duration.and_then(ms_of).filter(|step| (1..=STEP_MS_MAX).contains(step));
        let step =
            step.ok_or_else(|| Refusal::field("duration", "must be from a millisecond to 3,660 days"))?;
        let known = &mut *self.advances.0.lock().await;
        let begun = clock.now();
        let Some(RequestId { id, body }) = request else {
            return Ok(advanced(forward(self, clock, begun, target(begun, step)?).await?));
        };
        let key = (call.caller.tenant, id);
        let advance = match known.get(&key) {
            Some(before) if before.body != body => {
                let message =
                    format!("request id {:?} was used before with another body; use a new one", key.1);
                return Err(Refusal::new(Reason::RequestIdReused, message).meta("request_id", key.1).into());
            }
            Some(Advance { answer: Some(time), .. }) => return Ok(advanced(*time)),
            Some(before) => *before,
            None => Advance { body, begun, target: target(begun, step)?, answer: None },
        };
        if known.len() >= REQUESTS_MAX {
            known.clear();
        }
        // Before the clock moves: a call that is cut off has perhaps moved it, too.
        known.insert(key.clone(), advance);
        match forward(self, clock, advance.begun, advance.target).await {
            Ok(time) => {
                known.insert(key, Advance { answer: Some(time), ..advance });
                Ok(advanced(time))
            }
            Err(refusal) => {
                if clock.now() == advance.begun {
                    known.remove(&key);
                }
                Err(refusal.into())
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

/// The time that is one step later.
///
/// # Errors
/// FIELD_INVALID if it is beyond the last time that an answer can hold.
fn target(begun: Time, step: u64) -> Result<Time, Refusal> {
    let target = begun.after_ms(step);
    if target > TIME_MAX {
        return Err(Refusal::field("duration", "would move the clock beyond the year 9999"));
    }
    Ok(target)
}

/// Moves the clock to `target`. Each timer of a session in between fires at its own time, as in a scenario.
///
/// # Errors
/// OUTCOME_UNKNOWN, not UNAVAILABLE, if the clock is later than `begun`: timers may have fired.
async fn forward(api: &Api, clock: &dyn MovableClock, begun: Time, target: Time) -> Result<Time, Refusal> {
    let moved = fire_until(api, clock, target).await;
    moved.map_err(|refusal| refusal.after_parts(usize::from(clock.now() > begun)))?;
    Ok(clock.now())
}

async fn fire_until(api: &Api, clock: &dyn MovableClock, target: Time) -> Result<(), Refusal> {
    let mut query = GetFirstTimer { by: target, fired: FiredTimers::default() };
    while query.fired.len() < TIMERS_MAX {
        let Some(due) = first(api, &query).await? else { break };
        clock.advance_to(due.at).await.map_err(refusal)?;
        query.fired.insert(&due);
        let sweep = Body::Session(SessionCommand::Sweep(Sweep { key: due.key.clone() }));
        let sweep = Command::of_server(due.key.tenant_of(), due.scope(), sweep);
        match api.cluster.execute(sweep).await {
            // The shard itself retries what is refused.
            Ok(_) | Err(Failure::Rejected(_)) => {}
            Err(failure) => return Err(refusal(failure)),
        }
    }
    clock.advance_to(target).await.map_err(refusal)
}

/// Returns the first timer of all shards, with what was fired before; `None` if there is none. Of several at the same time it is
/// that of the first shard.
async fn first(api: &Api, query: &GetFirstTimer) -> Result<Option<Due>, Refusal> {
    let mut first: Option<Due> = None;
    for shard in api.cluster.all() {
        let rows = Reader::linearizable(shard).await.map_err(refusal)?;
        let due = rows.answer(query).map_err(unreadable)?;
        let earlier = |due: &Due| first.as_ref().is_none_or(|known| due.at < known.at);
        if due.as_ref().is_some_and(earlier) {
            first = due;
        }
    }
    Ok(first)
}

fn unmoved() -> Refusal {
    Refusal::new(
        Reason::Unimplemented,
        "this server uses the system's clock; only `dev --clock manual` has a clock that can be moved",
    )
}
