//! Work that takes a core for long, such as decoding a large request or looking through a list, has few places, so that the
//! calls that take little find a core free. Tenants share these places by the time that they have used them, by weight: who has
//! used less goes first, and who has not asked for a while saves nothing up. While the server is late for several tenants, the
//! one that uses the places most rests between its uses; see [`late`].

mod late;

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use switchward_machine::TenantId;
use switchward_shard::Throttle;
use tokio::sync::oneshot;

use crate::error::{Reason, Refusal};
use crate::limits::{CPU_REST_PARTS_MAX, SHARES_TENANTS_MAX, SHARES_WAITING_MAX};

/// The places, and who waits for one. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Shares(Arc<Mutex<Places>>);

impl Default for Shares {
    /// Half of the cores, one at least.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self::of((cores / 2).max(1))
    }
}

struct Places {
    all: usize,
    free: usize,
    tenants: HashMap<TenantId, Account>,
    waiting: usize,
    /// What the tenant that got a place last had used then: a tenant that asks again begins there.
    now: u64,
    throttle: Throttle,
    late: late::Looks,
}

#[derive(Default)]
struct Account {
    /// Microseconds of a place, divided by the tenant's weight.
    used: u64,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    weight: u32,
    given: oneshot::Sender<Place>,
}

/// A place; it is given back, and its time is charged, when it is dropped.
pub(crate) struct Place {
    shares: Shares,
    tenant: TenantId,
    weight: u32,
    since: Instant,
}

impl Shares {
    /// This many places.
    pub(crate) fn of(places: usize) -> Self {
        Self(Arc::new(Mutex::new(Places {
            all: places,
            free: places,
            tenants: HashMap::new(),
            waiting: 0,
            now: 0,
            throttle: Throttle::new(CPU_REST_PARTS_MAX),
            late: late::Looks::default(),
        })))
    }

    /// A call of a tenant has come, whether or not it needs a place.
    pub(crate) fn called(&self, tenant: TenantId) {
        self.0.lock().throttle.asked(tenant, Instant::now());
    }

    /// Waits for a place for a call. Cancel safe: who does not wait any more gets none.
    ///
    /// # Errors
    /// QUOTA_EXCEEDED if [`SHARES_WAITING_MAX`] calls of the tenant wait already.
    pub(crate) async fn enter(&self, tenant: TenantId, weight: u32) -> Result<Place, Refusal> {
        {
            let mut held = self.0.lock();
            let places = &mut *held;
            let account = places.tenants.entry(tenant).or_default();
            if account.waiting.len() >= SHARES_WAITING_MAX {
                let before = account.waiting.len();
                account.waiting.retain(|waiting| !waiting.given.is_closed());
                places.waiting -= before - account.waiting.len();
            }
            if account.waiting.len() >= SHARES_WAITING_MAX {
                let message =
                    format!("{SHARES_WAITING_MAX} calls of this tenant wait for a core; ask again later");
                return Err(Refusal::new(Reason::QuotaExceeded, message.clone()).quota("waiting", message));
            }
        }
        self.wait(tenant, weight).await
    }

    /// Waits for a place for an open stream, of which there may wait as many as there are. Cancel safe, too.
    ///
    /// # Errors
    /// DRAINING if the server is stopping.
    pub(crate) async fn wait(&self, tenant: TenantId, weight: u32) -> Result<Place, Refusal> {
        let given = {
            let mut held = self.0.lock();
            let (places, now) = (&mut *held, Instant::now());
            places.begin(tenant);
            self.look(places, now);
            if places.free > 0 && places.rests(tenant, now).is_none() {
                places.free -= 1;
                return Ok(self.place(tenant, weight));
            }
            let (given, wait) = oneshot::channel();
            let account = places.tenants.entry(tenant).or_default();
            account.waiting.push_back(Waiting { weight, given });
            places.waiting += 1;
            self.wake_after_rest(places, now);
            wait
        };
        given.await.map_err(|_| Refusal::new(Reason::Draining, "the server is stopping"))
    }

    fn place(&self, tenant: TenantId, weight: u32) -> Place {
        Place { shares: self.clone(), tenant, weight, since: Instant::now() }
    }

    /// Takes a place back that was used for this time, and gives it to who has used the least.
    fn leave(&self, tenant: TenantId, weight: u32, used: Duration) {
        {
            let mut places = self.0.lock();
            let used = used / weight.max(1);
            if let Some(account) = places.tenants.get_mut(&tenant) {
                let used = u64::try_from(used.as_micros()).unwrap_or(u64::MAX);
                account.used = account.used.saturating_add(used);
            }
            let now = Instant::now();
            places.throttle.used(tenant, used, now);
            places.throttle.begin_rest(now);
            places.free += 1;
        }
        self.give();
    }

    /// Gives the places that are free to those who wait and do not rest.
    fn give(&self) {
        loop {
            let (tenant, Waiting { weight, given }) = {
                let mut held = self.0.lock();
                let (places, now) = (&mut *held, Instant::now());
                let Some(first) = places.first(now) else {
                    self.wake_after_rest(places, now);
                    return;
                };
                first
            };
            // If nobody waits any more, the place comes back at once and goes on to the next one.
            let _gone = given.send(self.place(tenant, weight));
        }
    }
}

impl Places {
    /// A tenant asks. Who has not asked for a while begins with as much as the others have used by now.
    fn begin(&mut self, tenant: TenantId) {
        if self.tenants.len() >= SHARES_TENANTS_MAX && !self.tenants.contains_key(&tenant) {
            let now = self.now;
            self.tenants.retain(|_, account| !account.waiting.is_empty() || account.used > now);
        }
        let now = self.now;
        let account = self.tenants.entry(tenant).or_default();
        account.used = account.used.max(now);
    }

    /// Until when a tenant rests; `None` if it does not. Nobody rests while one tenant alone calls.
    fn rests(&self, tenant: TenantId, now: Instant) -> Option<Instant> {
        self.throttle.rests(tenant, now).filter(|_| self.throttle.shared(now))
    }

    /// The next one to get a free place: the first of the tenant that has used the least, of those that do not rest.
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
        // Nobody works and nobody waits: nobody owes anything to anybody.
        if self.free == self.all && self.waiting == 0 {
            self.tenants.clear();
        }
        None
    }
}

impl Place {
    /// How long it has been used.
    pub(crate) fn used(&self) -> Duration {
        self.since.elapsed()
    }
}

impl Drop for Place {
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

    /// A place that has been used for so long.
    fn ended(mut place: Place, used: Duration) {
        place.since -= used;
        drop(place);
    }

    fn now(wait: impl Future<Output = Result<Place, Refusal>>) -> Place {
        wait.now_or_never().expect("there is a place").unwrap_or_else(|_| panic!("not too many wait"))
    }

    #[tokio::test]
    async fn who_has_used_less_goes_first() {
        let shares = Shares::of(1);
        let wait = |tenant| {
            let mut wait = Box::pin(shares.enter(tenant, 1));
            assert!((&mut wait).now_or_never().is_none(), "there is no place");
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
        let shares = Shares::of(1);
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
                let place = wait.now_or_never()?.unwrap_or_else(|_| panic!("not too many wait"));
                Some((at, *tenant, place))
            });
            let (at, tenant, place) = found.expect("somebody gets it");
            drop(waiting.swap_remove(at));
            served[usize::from(tenant == OTHER)] += 1;
            held = place;
        }
        assert!((28..=32).contains(&served[0]), "{served:?}");
    }

    /// The tenant uses the only place for a second, and the server is late.
    fn uses_most(shares: &Shares, tenant: TenantId) {
        ended(now(shares.enter(tenant, 1)), Duration::from_secs(1));
        shares.looked(Duration::from_millis(2 * LATE_MS), Instant::now());
        ended(now(shares.enter(tenant, 1)), Duration::from_secs(1));
    }

    #[tokio::test]
    async fn who_uses_most_rests_while_the_server_is_late() {
        let shares = Shares::of(1);
        shares.called(OTHER);
        shares.called(ONE);
        uses_most(&shares, ONE);
        let mut rests = Box::pin(shares.wait(ONE, 1));
        assert!((&mut rests).now_or_never().is_none(), "the place is free, and it rests");
        drop(now(shares.enter(OTHER, 1)));
        let rested = tokio::time::timeout(10 * switchward_shard::limits::REST_MAX, rests).await;
        drop(rested.expect("it wakes after its rest"));
    }

    #[tokio::test]
    async fn who_calls_alone_does_not_rest() {
        let shares = Shares::of(1);
        shares.called(ONE);
        uses_most(&shares, ONE);
        drop(now(shares.enter(ONE, 1)));
    }

    #[tokio::test]
    async fn who_has_gone_gets_no_place_and_too_many_do_not_wait() {
        let shares = Shares::of(1);
        let held = now(shares.enter(ONE, 1));
        let mut gone = Box::pin(shares.enter(ONE, 1));
        assert!((&mut gone).now_or_never().is_none());
        drop(gone);
        let mut waits = Vec::new();
        for _ in 0..SHARES_WAITING_MAX {
            let mut wait = Box::pin(shares.enter(ONE, 1));
            assert!((&mut wait).now_or_never().is_none());
            waits.push(wait);
        }
        let refused = shares.enter(ONE, 1).now_or_never().expect("it is refused").err();
        assert_eq!(refused.map(|refusal| refusal.reason()), Some(Reason::QuotaExceeded));
        drop(held);
        drop(now(waits.remove(0)));
        drop(waits);
        drop(now(shares.enter(OTHER, 1)));
    }
}
