//! Measures how late the server is: how long after its time a sleeping task runs. Every step of every call waits as long for
//! a core. While several tenants call, the one that uses the permits most rests; its rests grow with each late measurement.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

use super::{CpuShares, State};
use crate::limits::{LATE_LOOK_MS, LATE_MS};

/// Which background tasks are running.
#[derive(Default)]
pub(super) struct Tasks {
    /// One measures how late the server is.
    measuring: bool,
    /// One waits for the end of a rest.
    waking: bool,
    /// A permit was asked for since the last measurement.
    asked: bool,
}

impl CpuShares {
    /// Notes that a permit is asked for. Starts to measure the delay, if several tenants call, for as long as permits are
    /// asked for and they go on calling.
    pub(super) fn measure(&self, state: &mut State, now: Instant) {
        state.tasks.asked = true;
        if state.tasks.measuring || !state.throttle.shared(now) {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        state.tasks.measuring = true;
        let shares = self.clone();
        runtime.spawn(async move {
            loop {
                let due = tokio::time::Instant::now() + Duration::from_millis(LATE_LOOK_MS);
                tokio::time::sleep_until(due).await;
                if shares.measured(due.elapsed(), Instant::now()).is_break() {
                    return;
                }
            }
        });
    }

    /// Records that the server was this late. Breaks when measuring can stop.
    pub(super) fn measured(&self, late: Duration, now: Instant) -> ControlFlow<()> {
        let mut state = self.0.state.lock();
        if late > Duration::from_millis(LATE_MS) {
            state.throttle.others_waited_too_long();
        } else {
            state.throttle.others_did_not_wait();
        }
        let busy = state.waiting > 0 || state.free < state.all || state.tasks.asked;
        state.tasks.asked = false;
        if busy && state.throttle.shared(now) {
            return ControlFlow::Continue(());
        }
        state.tasks.measuring = false;
        ControlFlow::Break(())
    }

    /// Gives the free permits away once the tenant that waits for them has rested.
    pub(super) fn wake_after_rest(&self, state: &mut State, now: Instant) {
        if state.free == 0 || state.tasks.waking {
            return;
        }
        let waiting = state.tenants.iter().filter(|(_, account)| !account.waiting.is_empty());
        let Some(until) = waiting.filter_map(|(tenant, _)| state.rests(*tenant, now)).min() else { return };
        let Ok(runtime) = Handle::try_current() else { return };
        state.tasks.waking = true;
        let shares = self.clone();
        runtime.spawn(async move {
            tokio::time::sleep_until(until.into()).await;
            shares.0.state.lock().tasks.waking = false;
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
    async fn the_delay_is_measured_while_permits_are_asked_for_and_several_tenants_call() {
        let shares = CpuShares::of(1);
        let measures = || shares.0.state.lock().tasks.measuring;
        shares.called(ONE);
        drop(shares.enter(ONE, 1).await);
        assert!(!measures(), "one tenant alone calls");
        shares.called(OTHER);
        let permit = shares.enter(ONE, 1).await;
        assert!(measures());
        drop(permit);
        let stopped = async {
            while measures() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), stopped)
            .await
            .expect("nothing asks for a permit any more");
    }
}
