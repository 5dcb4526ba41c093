//! Permits for work that keeps a core busy for long, such as decoding a large request or looking through a list. There are
//! few of them, so that short calls find a free core. Tenants share the permits by time used, divided by weight: the tenant
//! that has used the least goes first, and a tenant that has been idle saves nothing up. While the server is late for several
//! tenants, the tenant that uses the permits most rests between its uses; see [`late`].

mod late;

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::{Duration, Instant};
use switchward_machine::TenantId;
use switchward_shard::Throttle;
use tokio::sync::oneshot;

use crate::error::{Reason, Refusal};
use crate::limits::{CPU_REST_PARTS_MAX, CPU_TENANTS_MAX, CPU_WAITING_MAX};

/// The permits, and the calls that wait for one. Cheap to clone.
#[derive(Clone)]
pub(crate) struct CpuShares(Arc<Shares>);

struct Shares {
    /// The tenant that called last, as its number and one; 0 if none has called. Most calls are of the same tenant as the one
    /// before, and need no lock to be noted.
    last: AtomicU64,
    state: Mutex<State>,
}

impl Default for CpuShares {
    /// Half of the cores, one at least.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self::of((cores / 2).max(1))
    }
}

struct State {
    all: usize,
    free: usize,
    tenants: HashMap<TenantId, Account>,
    waiting: usize,
    /// What the tenant that got the last permit had used by then. A tenant that has been idle begins with it.
    now: u64,
    throttle: Throttle,
    tasks: late::Tasks,
}

#[derive(Default)]
struct Account {
    /// Time that its permits were held, in microseconds divided by the tenant's weight.
    used: u64,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    weight: u32,
    given: oneshot::Sender<CpuPermit>,
}

/// A permit to keep a core busy. Dropping it returns it and charges the tenant for the time.
pub(crate) struct CpuPermit {
    shares: CpuShares,
    tenant: TenantId,
    weight: u32,
    since: Instant,
}

impl CpuShares {
    /// Creates this many permits.
    pub(crate) fn of(permits: usize) -> Self {
        let state = State {
            all: permits,
            free: permits,
            tenants: HashMap::new(),
            waiting: 0,
            now: 0,
            throttle: Throttle::new(CPU_REST_PARTS_MAX),
            tasks: late::Tasks::default(),
        };
        Self(Arc::new(Shares { last: AtomicU64::default(), state: Mutex::new(state) }))
    }

    /// Notes a call of a tenant, whether or not it needs a permit.
    pub(crate) fn called(&self, tenant: TenantId) {
        let number = u64::from(tenant.0) + 1;
        if self.0.last.load(Ordering::Relaxed) == number {
            return;
        }
        let mut state = self.0.state.lock();
        state.throttle.asked(tenant, Instant::now());
        // Under the lock, so that it names the same tenant as the throttle.
        self.0.last.store(number, Ordering::Relaxed);
    }

    /// Waits for a permit for a call. Cancel safe: a dropped wait gets none.
    ///
    /// # Errors
    /// QUOTA_EXCEEDED if [`CPU_WAITING_MAX`] calls of the tenant wait already.
    pub(crate) async fn enter(&self, tenant: TenantId, weight: u32) -> Result<CpuPermit, Refusal> {
        {
            let mut held = self.0.state.lock();
            let state = &mut *held;
            let account = state.tenants.entry(tenant).or_default();
            if account.waiting.len() >= CPU_WAITING_MAX {
                let before = account.waiting.len();
                account.waiting.retain(|waiting| !waiting.given.is_closed());
                state.waiting -= before - account.waiting.len();
            }
            if account.waiting.len() >= CPU_WAITING_MAX {
                let message = format!(
                    "{CPU_WAITING_MAX} calls of this tenant are waiting for a CPU core; send it again later"
                );
                return Err(Refusal::new(Reason::QuotaExceeded, message.clone()).quota("waiting", message));
            }
        }
        self.wait(tenant, weight).await
    }

    /// Waits for a permit for an open stream; the number of waiting streams is not limited here. Cancel safe, too.
    ///
    /// # Errors
    /// DRAINING if the server is stopping.
    pub(crate) async fn wait(&self, tenant: TenantId, weight: u32) -> Result<CpuPermit, Refusal> {
        let given = {
            let mut held = self.0.state.lock();
            let (state, now) = (&mut *held, Instant::now());
            state.begin(tenant);
            self.measure(state, now);
            if state.free > 0 && state.rests(tenant, now).is_none() {
                state.free -= 1;
                return Ok(self.permit(tenant, weight));
            }
            let (given, wait) = oneshot::channel();
            let account = state.tenants.entry(tenant).or_default();
            account.waiting.push_back(Waiting { weight, given });
            state.waiting += 1;
            self.wake_after_rest(state, now);
            wait
        };
        given.await.map_err(|_| Refusal::new(Reason::Draining, "the server is stopping"))
    }

    fn permit(&self, tenant: TenantId, weight: u32) -> CpuPermit {
        CpuPermit { shares: self.clone(), tenant, weight, since: Instant::now() }
    }

    /// Takes a permit back that was held for this time, and passes it on.
    fn leave(&self, tenant: TenantId, weight: u32, used: Duration) {
        {
            let mut state = self.0.state.lock();
            let used = used / weight.max(1);
            if let Some(account) = state.tenants.get_mut(&tenant) {
                let used = u64::try_from(used.as_micros()).unwrap_or(u64::MAX);
                account.used = account.used.saturating_add(used);
            }
            let now = Instant::now();
            state.throttle.used(tenant, used, now);
            state.throttle.begin_rest(now);
            state.free += 1;
        }
        self.give();
    }

    /// Gives the free permits to those who wait and do not rest.
    fn give(&self) {
        loop {
            let (tenant, Waiting { weight, given }) = {
                let mut held = self.0.state.lock();
                let (state, now) = (&mut *held, Instant::now());
                let Some(first) = state.first(now) else {
                    self.wake_after_rest(state, now);
                    return;
                };
                first
            };
            // If the wait was dropped meanwhile, the permit comes back at once and goes to the next.
            let _gone = given.send(self.permit(tenant, weight));
        }
    }
}

impl State {
    /// Opens the account of a tenant that asks. After an idle time it begins with as much as the others have used by now.
    fn begin(&mut self, tenant: TenantId) {
        if self.tenants.len() >= CPU_TENANTS_MAX && !self.tenants.contains_key(&tenant) {
            let now = self.now;
            self.tenants.retain(|_, account| !account.waiting.is_empty() || account.used > now);
        }
        let now = self.now;
        let account = self.tenants.entry(tenant).or_default();
        account.used = account.used.max(now);
    }

    /// Returns until when a tenant rests, `None` if it does not. Nobody rests while only one tenant calls.
    fn rests(&self, tenant: TenantId, now: Instant) -> Option<Instant> {
        self.throttle.rests(tenant, now).filter(|_| self.throttle.shared(now))
    }

    /// Takes the next wait that gets a free permit: the oldest one of the tenant that has used the least, of those that do not
    /// rest.
    fn first(&mut self, now: Instant) -> Option<(TenantId, Waiting)> {
        while self.free > 0 && self.waiting > 0 {
            let wait = |(tenant, account): &(&TenantId, &Account)| {
                !account.waiting.is_empty() && self.rests(**tenant, now).is_none()
            };
            let some = self.tenants.iter().filter(wait);
            let (tenant, _) = some.min_by_key(|(tenant, account)| (account.used, **tenant))?;
            let tenant = *tenant;
            let account = self.tenants.get_mut(&tenant)?;
            let next = account.waiting.pop_front()?;
            self.now = self.now.max(account.used);
            self.waiting -= 1;
            if !next.given.is_closed() {
                self.free -= 1;
                return Some((tenant, next));
            }
        }
        // Nobody works and nobody waits, so there is nothing to balance.
        if self.free == self.all && self.waiting == 0 {
            self.tenants.clear();
        }
        None
    }
}

impl CpuPermit {
    /// Returns how long it has been held.
    pub(crate) fn used(&self) -> Duration {
        self.since.elapsed()
    }
}

impl Drop for CpuPermit {
    fn drop(&mut self) {
        self.shares.leave(self.tenant, self.weight, self.used());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::LATE_MS;
    use futures::FutureExt as _;

    const ONE: TenantId = TenantId(1);
    const OTHER: TenantId = TenantId(2);

    /// Returns a permit that has been held for this time.
    fn ended(mut permit: CpuPermit, used: Duration) {
        permit.since -= used;
        drop(permit);
    }

    fn now(wait: impl Future<Output = Result<CpuPermit, Refusal>>) -> CpuPermit {
        wait.now_or_never().expect("a permit is free").unwrap_or_else(|_| panic!("the queue is not full"))
    }

    #[tokio::test]
    async fn who_has_used_less_goes_first() {
        let shares = CpuShares::of(1);
        let wait = |tenant| {
            let mut wait = Box::pin(shares.enter(tenant, 1));
            assert!((&mut wait).now_or_never().is_none(), "no permit is free");
            wait
        };
        let held = now(shares.enter(OTHER, 1));
        let (one, other) = (wait(ONE), wait(OTHER));
        ended(held, Duration::from_millis(10));
        let held = now(one);
        let one = wait(ONE);
        ended(held, Duration::from_secs(1));
        let held = now(other);
        let other = wait(OTHER);
        ended(held, Duration::from_millis(10));
        // The other one came later, and has used less.
        drop(now(other));
        drop(now(one));
    }

    #[tokio::test]
    async fn time_is_shared_by_weight() {
        let shares = CpuShares::of(1);
        let mut held = now(shares.enter(OTHER, 1));
        let mut served = [0; 2];
        let mut waiting = Vec::new();
        for _ in 0..40 {
            for (tenant, weight) in [(ONE, 3), (OTHER, 1)] {
                let mut wait = Box::pin(shares.enter(tenant, weight));
                assert!((&mut wait).now_or_never().is_none());
                waiting.push((tenant, wait));
            }
        }
        for _ in 0..40 {
            ended(held, Duration::from_millis(5));
            let found = waiting.iter_mut().enumerate().find_map(|(at, (tenant, wait))| {
                let permit = wait.now_or_never()?.unwrap_or_else(|_| panic!("the queue is not full"));
                Some((at, *tenant, permit))
            });
            let (at, tenant, permit) = found.expect("a waiting call gets the permit");
            drop(waiting.swap_remove(at));
            served[usize::from(tenant == OTHER)] += 1;
            held = permit;
        }
        assert!((28..=32).contains(&served[0]), "{served:?}");
    }

    /// The tenant holds the only permit for a second, and the server is late.
    fn uses_most(shares: &CpuShares, tenant: TenantId) {
        ended(now(shares.enter(tenant, 1)), Duration::from_secs(1));
        let _measuring = shares.measured(Duration::from_millis(2 * LATE_MS), Instant::now());
        ended(now(shares.enter(tenant, 1)), Duration::from_secs(1));
    }

    #[tokio::test]
    async fn who_uses_most_rests_while_the_server_is_late() {
        let shares = CpuShares::of(1);
        shares.called(OTHER);
        shares.called(ONE);
        uses_most(&shares, ONE);
        let mut rests = Box::pin(shares.wait(ONE, 1));
        assert!((&mut rests).now_or_never().is_none(), "a permit is free, but the tenant rests");
        drop(now(shares.enter(OTHER, 1)));
        let rested = tokio::time::timeout(10 * switchward_shard::limits::REST_MAX, rests).await;
        drop(rested.expect("the call runs after the rest"));
    }

    #[tokio::test]
    async fn who_calls_alone_does_not_rest() {
        let shares = CpuShares::of(1);
        shares.called(ONE);
        uses_most(&shares, ONE);
        drop(now(shares.enter(ONE, 1)));
    }

    #[tokio::test]
    async fn a_dropped_wait_gets_no_permit_and_the_number_of_waits_is_bounded() {
        let shares = CpuShares::of(1);
        let held = now(shares.enter(ONE, 1));
        let mut gone = Box::pin(shares.enter(ONE, 1));
        assert!((&mut gone).now_or_never().is_none());
        drop(gone);
        let mut waits = Vec::new();
        for _ in 0..CPU_WAITING_MAX {
            let mut wait = Box::pin(shares.enter(ONE, 1));
            assert!((&mut wait).now_or_never().is_none());
            waits.push(wait);
        }
        let refused = shares.enter(ONE, 1).now_or_never().expect("the call is refused").err();
        assert_eq!(refused.map(|refusal| refusal.reason()), Some(Reason::QuotaExceeded));
        drop(held);
        drop(now(waits.remove(0)));
        drop(waits);
        drop(now(shares.enter(OTHER, 1)));
    }
}
