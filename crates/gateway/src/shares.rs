//! Work that takes a core for long, such as decoding a large request or looking through a list, has few places, so that the
//! calls that take little find a core free. Tenants share these places by the time that they have used them, by weight: who has
//! used less goes first, and who has not asked for a while saves nothing up.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use switchward_machine::TenantId;
use tokio::sync::oneshot;

use crate::error::{Reason, Refusal};
use crate::limits::{SHARES_TENANTS_MAX, SHARES_WAITING_MAX};

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
    /// What the tenant that got a place last had used then: who asks anew begins there.
    now: u64,
}

#[derive(Default)]
struct Account {
    /// Microseconds of a place, divided by the tenant's weight.
    used: u64,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    weight: u32,
    told: oneshot::Sender<Place>,
}

/// A place; it is given back, and its time is charged, when it is dropped.
pub(crate) struct Place {
    shares: Shares,
    tenant: TenantId,
    weight: u32,
    since: Instant,
}

impl Shares {
    /// So many places.
    pub(crate) fn of(places: usize) -> Self {
        let places = Places { all: places, free: places, tenants: HashMap::new(), waiting: 0, now: 0 };
        Self(Arc::new(Mutex::new(places)))
    }

    /// Waits for a place for a call. Cancel safe: who does not wait any more gets none.
    ///
    /// # Errors
    /// QUOTA_EXCEEDED where [`SHARES_WAITING_MAX`] calls of the tenant wait already.
    pub(crate) async fn enter(&self, tenant: TenantId, weight: u32) -> Result<Place, Refusal> {
        {
            let mut held = self.0.lock();
            let places = &mut *held;
            let account = places.tenants.entry(tenant).or_default();
            if account.waiting.len() >= SHARES_WAITING_MAX {
                let before = account.waiting.len();
                account.waiting.retain(|waiting| !waiting.told.is_closed());
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
    /// DRAINING where the server is stopping.
    pub(crate) async fn wait(&self, tenant: TenantId, weight: u32) -> Result<Place, Refusal> {
        let told = {
            let mut held = self.0.lock();
            let places = &mut *held;
            places.begin(tenant);
            if places.free > 0 {
                places.free -= 1;
                return Ok(self.place(tenant, weight));
            }
            let (told, wait) = oneshot::channel();
            let account = places.tenants.entry(tenant).or_default();
            account.waiting.push_back(Waiting { weight, told });
            places.waiting += 1;
            wait
        };
        told.await.map_err(|_| Refusal::new(Reason::Draining, "the server is stopping"))
    }

    fn place(&self, tenant: TenantId, weight: u32) -> Place {
        Place { shares: self.clone(), tenant, weight, since: Instant::now() }
    }

    /// Takes a place back that was used for so long, and gives it to who has used the least.
    fn leave(&self, tenant: TenantId, weight: u32, used: Duration) {
        let mut next = None;
        {
            let mut places = self.0.lock();
            let used = u64::try_from(used.as_micros()).unwrap_or(u64::MAX) / u64::from(weight.max(1));
            if let Some(account) = places.tenants.get_mut(&tenant) {
                account.used = account.used.saturating_add(used);
            }
            match places.first() {
                Some(waiting) => next = Some(waiting),
                None => {
                    places.free += 1;
                    // Nobody works and nobody waits: nobody owes anything to anybody.
                    if places.free == places.all {
                        places.tenants.clear();
                    }
                }
            }
        }
        if let Some((tenant, Waiting { weight, told })) = next {
            // Where nobody waits any more, the place comes back at once and goes on to the next one.
            let _gone = told.send(self.place(tenant, weight));
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

    /// The next one to get a place: the first of the tenant that has used the least.
    fn first(&mut self) -> Option<(TenantId, Waiting)> {
        while self.waiting > 0 {
            let some = self.tenants.iter_mut().filter(|(_, account)| !account.waiting.is_empty());
            let (tenant, account) = some.min_by_key(|(tenant, account)| (account.used, **tenant))?;
            let next = account.waiting.pop_front()?;
            self.now = self.now.max(account.used);
            self.waiting -= 1;
            if !next.told.is_closed() {
                return Some((*tenant, next));
            }
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
