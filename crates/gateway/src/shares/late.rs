//! How late the server is: how long after it was due a task runs that waits for a time. What every call waits for at each step
//! of its way shows there, whichever tenant it belongs to. While several tenants call and one of them uses most of the
//! places, that one rests the longer, the more often the server is late.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::{Places, Shares};
use crate::limits::{LATE_LOOK_MS, LATE_MS};

/// Which tasks look after the places.
#[derive(Default)]
pub(super) struct Looks {
    /// Whether one looks how late the server is.
    at_delay: bool,
    /// Whether one waits for the end of a rest.
    at_rest: bool,
    /// Whether a place was asked for since the last look.
    asked: bool,
}

impl Shares {
    /// A place is asked for: from now on the server's delay is looked at, as long as places are asked for and several tenants
    /// call.
    pub(super) fn look(&self, places: &mut Places, now: Instant) {
        places.late.asked = true;
        if places.late.at_delay || !places.throttle.shared(now) {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        places.late.at_delay = true;
        let shares = self.clone();
        runtime.spawn(async move {
            loop {
                let due = tokio::time::Instant::now() + Duration::from_millis(LATE_LOOK_MS);
                tokio::time::sleep_until(due).await;
                if shares.looked(due.elapsed(), Instant::now()).is_break() {
                    return;
                }
            }
        });
    }

    /// The server was this late. Breaks if that need not be looked at any more.
    fn looked(&self, late: Duration, now: Instant) -> ControlFlow<()> {
        let mut places = self.0.lock();
        places.throttle.others_waited(late > Duration::from_millis(LATE_MS));
        let busy = places.waiting > 0 || places.free < places.all || places.late.asked;
        places.late.asked = false;
        if busy && places.throttle.shared(now) {
            return ControlFlow::Continue(());
        }
        places.late.at_delay = false;
        ControlFlow::Break(())
    }

    /// Gives the free places away once the tenant that waits for them has rested.
    pub(super) fn wake_after_rest(&self, places: &mut Places, now: Instant) {
        if places.free == 0 || places.late.at_rest {
            return;
        }
        let waiting = places.tenants.iter().filter(|(_, account)| !account.waiting.is_empty());
        let Some(until) = waiting.filter_map(|(tenant, _)| places.rests(*tenant, now)).min() else { return };
        let Ok(runtime) = Handle::try_current() else { return };
        places.late.at_rest = true;
        let shares = self.clone();
        runtime.spawn(async move {
            tokio::time::sleep_until(until.into()).await;
            shares.0.lock().late.at_rest = false;
            shares.give();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_machine::TenantId;

    const ONE: TenantId = TenantId(1);
    const OTHER: TenantId = TenantId(2);

    #[tokio::test]
    async fn the_delay_is_looked_at_while_places_are_asked_for_and_several_tenants_call() {
        let shares = Shares::of(1);
        let looks = || shares.0.lock().late.at_delay;
        shares.called(ONE);
        drop(shares.enter(ONE, 1).await);
        assert!(!looks(), "one tenant alone calls");
        shares.called(OTHER);
        let place = shares.enter(ONE, 1).await;
        assert!(looks());
        drop(place);
        let stopped = async {
            while looks() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), stopped)
            .await
            .expect("nothing asks for a place any more");
    }
}
