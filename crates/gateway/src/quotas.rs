//! Quotas of tenants: which limits apply, and how many requests of each tenant come per second.

use governor::Quota as Allowed;
use governor::clock::Clock as _;
use parking_lot::Mutex;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use switchward_engine::quota_exceeded;
use switchward_machine::{TenantId, Time};
use switchward_state::catalogue::{Quota, Quotas, Role};

use crate::auth::roles;
use crate::error::Refusal;
use crate::known::Known;
use crate::limiter_clock::{Limiter, LimiterClock, jumped_back, whole_ms};
use crate::limits::{
    BYTES_DEFAULT, RATE_MAX, RATES_TENANTS_MAX, REQUESTS_BURST_SECONDS, REQUESTS_PER_SECOND_DEFAULT,
    SESSIONS_DEFAULT,
};

/// The limits of a tenant that sets none of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuotaDefaults {
    /// What the server's configuration says; 0 is no limit.
    pub configured: Quotas,
    /// The defaults of this build, used if the configuration sets nothing; `None` is no limit.
    pub shipped: Quotas,
}

/// The level at which a limit is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetIn {
    Tenant,
    Configuration,
    Default,
}

impl QuotaDefaults {
    /// What the configuration says, over the limits of this build.
    #[must_use]
    pub fn of_server(configured: Quotas) -> Self {
        let shipped = Quotas {
            requests_per_second: Some(REQUESTS_PER_SECOND_DEFAULT),
            sessions: Some(SESSIONS_DEFAULT),
            bytes: Some(BYTES_DEFAULT),
            weight: None,
        };
        Self { configured, shipped }
    }

    /// What applies to a tenant that sets these; `None` is no limit.
    pub(crate) fn under(self, own: Quotas) -> Quotas {
        let mut defaults = self.shipped;
        for quota in Quota::ALL {
            defaults.set(quota, self.configured.get(quota).or(self.shipped.get(quota)));
        }
        own.over(defaults)
    }

    /// Returns the level at which a limit of a tenant with these quotas is set.
    pub(crate) fn set_in(self, own: Quotas, quota: Quota) -> SetIn {
        match (own.get(quota), self.configured.get(quota)) {
            (Some(_), _) => SetIn::Tenant,
            (None, Some(_)) => SetIn::Configuration,
            (None, None) => SetIn::Default,
        }
    }
}

/// Which requests are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// All other requests.
    Begins,
    /// Reports of workers about work that they hold: a separate rate, so that they can finish while others start.
    Ends,
    /// Calls by which people decide or stop something: an agent with too many requests must not block them. Each such call
    /// has a separate rate, see [`Control`].
    Controls(Control),
    /// Calls with a reply token: its external holder must not use up the rate of the tenant's own calls.
    Tokens,
    /// What is not counted.
    Free,
}

/// One of the calls by which people decide or stop something. Calls of approvers count separately: an approver with too
/// many requests keeps no operator from deciding, pausing or cancelling, and no admin from revoking the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Control(usize);

/// Calls by which people decide or stop something, and who may make them. A path that ends with a slash stands for all
/// calls of its service that change something.
const CONTROLS: [(&str, &[Role]); 4] = [
    ("/switchward.v1.GateService/", roles::DECIDE),
    ("/switchward.v1.SessionService/PauseSession", roles::OPERATE),
    ("/switchward.v1.SessionService/CancelSession", roles::OPERATE),
    ("/switchward.v1.ApiKeyService/RevokeApiKey", roles::ADMIN),
];

/// Returns true if a call is one of those that an entry of [`CONTROLS`] stands for.
fn is_of(path: &str, control: &str) -> bool {
    match path.strip_prefix(control) {
        Some("") => true,
        Some(method) => control.ends_with('/') && !method.starts_with("Get") && !method.starts_with("List"),
        None => false,
    }
}

impl Class {
    /// Returns the class of a call with a key of this role, or with a reply token. Control calls of roles that may not make
    /// them count with the rest.
    pub(crate) fn of(path: &str, role: Option<Role>) -> Self {
        Self::with(path, role, false)
    }

    /// Returns the class of a call of a server whose clock otherwise stands still. Calls that move it are free: without
    /// them no time would pass and free the rate.
    pub(crate) fn of_manual_clock(path: &str, role: Option<Role>) -> Self {
        Self::with(path, role, true)
    }

    fn with(path: &str, role: Option<Role>, clock_stands: bool) -> Self {
        let (service, method) = path.rsplit_once('/').unwrap_or_default();
        let Some(role) = role else { return Self::Tokens };
        let control =
            CONTROLS.iter().position(|(control, roles)| is_of(path, control) && roles.contains(&role));
        if let Some(control) = control {
            let of_approvers = role == Role::Approver;
            return Self::Controls(Control(if of_approvers { CONTROLS.len() } else { control }));
        }
        match (service, method) {
            ("/switchward.v1.WorkerService", "CompleteWork" | "FailWork" | "ReleaseWork" | "ExtendLease") => {
                Self::Ends
            }
            ("/switchward.v1.ClockService", _) if clock_stands => Self::Free,
            _ => Self::Begins,
        }
    }
}

const SECOND_MS: u64 = 1_000;

/// What a rate per second allows: [`REQUESTS_BURST_SECONDS`] of it at once, and then evenly.
fn allowed(rate: u64) -> Allowed {
    let number =
        |number: u64| u32::try_from(number).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
    let rate = rate.clamp(1, RATE_MAX);
    Allowed::per_second(number(rate)).allow_burst(number(rate * REQUESTS_BURST_SECONDS))
}

/// Requests of the second of `at`, and of the second before it.
#[derive(Debug, Clone, Copy, Default)]
struct Seconds {
    at: Time,
    current: u64,
    before: u64,
}

impl Seconds {
    /// Goes on to this time. After a jump back it begins again.
    fn go_on(&mut self, now: Time) {
        if jumped_back(self.at, now) {
            *self = Self { at: now, ..Self::default() };
        }
        let now = now.max(self.at);
        (self.current, self.before) = match now.0 / SECOND_MS - self.at.0 / SECOND_MS {
            0 => (self.current, self.before),
            1 => (0, self.current),
            _ => (0, 0),
        };
        self.at = now;
    }

    /// Returns true if all rates are unused again: nothing was counted for the time of a burst, or since the time jumped back.
    fn at_rest(&self, now: Time) -> bool {
        now.since_ms(self.at) >= REQUESTS_BURST_SECONDS * SECOND_MS || jumped_back(self.at, now)
    }
}

/// The requests of one tenant.
struct Counted {
    rate: u64,
    limiter: Limiter<Class>,
    seconds: Seconds,
}

/// The requests of each tenant on this server, and how often each quota refused something.
#[derive(Default)]
pub(crate) struct Rates {
    clock: LimiterClock,
    tenants: Mutex<Known<TenantId, Counted>>,
    refused: [AtomicU64; Quota::ALL.len()],
}

impl Rates {
    /// Counts one request of a tenant whose limit is `rate` per second. A rate that was changed begins unused.
    ///
    /// # Errors
    /// QUOTA_EXCEEDED, with the time after which there is capacity.
    pub(crate) fn take(&self, tenant: TenantId, rate: u64, class: Class, now: Time) -> Result<(), Refusal> {
        self.clock.go_on(now);
        let taken = {
            let mut tenants = self.tenants.lock();
            if tenants.len() >= RATES_TENANTS_MAX && !tenants.contains_key(&tenant) {
                tenants.retain(|_, counted| !counted.seconds.at_rest(now));
                if tenants.len() >= RATES_TENANTS_MAX {
                    // All counters restart, so that no tenant stays uncounted.
                    tenants.clear();
                }
            }
            let fresh = || Counted {
                rate,
                limiter: self.clock.limiter(allowed(rate)),
                seconds: Seconds { at: now, ..Seconds::default() },
            };
            let counted = tenants.entry(tenant).or_insert_with(fresh);
            if counted.rate != rate {
                (counted.rate, counted.limiter) = (rate, self.clock.limiter(allowed(rate)));
            }
            counted.seconds.go_on(now);
            let taken = if class == Class::Free { Ok(()) } else { counted.limiter.check_key(&class) };
            if taken.is_ok() {
                counted.seconds.current += 1;
            }
            taken
        };
        taken.map_err(|until| {
            self.count_refusal(Quota::RequestsPerSecond);
            let refusal = Refusal::from(quota_exceeded(Quota::RequestsPerSecond));
            refusal.meta("limit", rate).retry_after(whole_ms(until.wait_time_from(self.clock.now())))
        })
    }

    /// Requests of the last full second, or of this one if it has more already.
    pub(crate) fn used(&self, tenant: TenantId, now: Time) -> u64 {
        let mut seconds = self.tenants.lock().get(&tenant).map_or_else(Seconds::default, |it| it.seconds);
        seconds.go_on(now);
        seconds.current.max(seconds.before)
    }

    /// A quota has refused something.
    pub(crate) fn count_refusal(&self, quota: Quota) {
        self.refused[quota as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How often each quota has refused something.
    pub(crate) fn refusals(&self) -> [(Quota, u64); Quota::ALL.len()] {
        Quota::ALL.map(|quota| (quota, self.refused[quota as usize].load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENANT: TenantId = TenantId(1);

    fn wait(refused: Result<(), Refusal>) -> u64 {
        let delay = refused.expect_err("the quota is used up").retry_delay().expect("a retry delay");
        u64::try_from(delay.as_millis()).expect("a short time")
    }

    #[test]
    fn a_tenant_has_its_burst_and_then_its_rate() {
        let (rates, class) = (Rates::default(), Class::Begins);
        let take = |now| rates.take(TENANT, 10, class, Time(now));
        for _ in 0..10 * REQUESTS_BURST_SECONDS {
            assert!(take(5_000).is_ok());
        }
        assert_eq!(wait(take(5_000)), 100);
        assert_eq!(wait(take(5_060)), 40);
        assert!(take(5_100).is_ok() && take(5_100).is_err());
        // A clock that goes back neither frees nor uses capacity.
        assert!(take(4_000).is_err() && take(5_200).is_ok());
        assert!(rates.take(TenantId(2), 10, class, Time(5_200)).is_ok());
        assert!(rates.take(TENANT, 11, class, Time(5_200)).is_ok(), "another rate begins unused");
        assert_eq!(rates.refusals().map(|(_, count)| count), [4, 0, 0]);
    }

    #[test]
    fn a_clock_that_was_years_ahead_refuses_nothing_once_it_is_set_right() {
        let rates = Rates::default();
        let take = |now| rates.take(TENANT, 10, Class::Begins, Time(now));
        let (right, years) = (5_000_000, 315_360_000_000);
        while take(right + years).is_ok() {}
        assert!(take(right).is_err(), "the jump frees nothing");
        for second in 1..=60 {
            for call in 0..10 {
                assert!(take(right + 1_000 * second + 100 * call).is_ok(), "call {call} of second {second}");
            }
        }
        assert_eq!(rates.used(TENANT, Time(right + 60_900)), 10);
    }

    /// A call of an entry.
    fn of_call(path: &str) -> String {
        let method = if path.ends_with('/') { "DecideGate" } else { "" };
        format!("{path}{method}")
    }

    #[test]
    fn what_ends_work_decides_or_comes_from_outside_has_a_rate_of_its_own_and_the_clock_is_free() {
        let rates = Rates::default();
        while rates.take(TENANT, 3, Class::Begins, Time(0)).is_ok() {}
        // One for each of them, and one for calls of approvers.
        let controls = (0..=CONTROLS.len()).map(|which| Class::Controls(Control(which)));
        for class in [Class::Ends, Class::Tokens].into_iter().chain(controls) {
            for _ in 0..3 * REQUESTS_BURST_SECONDS {
                assert!(rates.take(TENANT, 3, class, Time(0)).is_ok(), "{class:?}");
            }
            assert!(rates.take(TENANT, 3, class, Time(0)).is_err(), "{class:?}");
        }
        assert!(rates.take(TENANT, 3, Class::Free, Time(0)).is_ok());
        let class = |path: &str| Class::of_manual_clock(path, Some(Role::Agent));
        assert_eq!(class("/switchward.v1.WorkerService/CompleteWork"), Class::Ends);
        assert_eq!(class("/switchward.v1.WorkerService/PollWork"), Class::Begins);
        assert_eq!(class("/switchward.v1.SessionService/StartSession"), Class::Begins);
        let advance = "/switchward.v1.ClockService/AdvanceClock";
        let of_admin = |stands| Class::with(advance, Some(Role::Admin), stands);
        assert_eq!((of_admin(true), of_admin(false)), (Class::Free, Class::Begins));
        assert_eq!(Class::of_manual_clock("/switchward.v1.SessionService/RecordEvent", None), Class::Tokens);
        let lists = Class::of("/switchward.v1.GateService/ListGates", Some(Role::Admin));
        assert_eq!(lists, Class::Begins);
        for (entry, roles) in CONTROLS {
            let path = &of_call(entry);
            assert!(crate::calls::method_at(path).is_some(), "{path} is no call");
            assert!(roles.contains(&Role::Admin) && !roles.contains(&Role::Agent), "{path}");
            for role in
                [Role::Agent, Role::Worker, Role::Author, Role::Integration, Role::Approver, Role::Admin]
            {
                let own = matches!(Class::of_manual_clock(path, Some(role)), Class::Controls(_));
                assert_eq!(own, roles.contains(&role), "{path} by {role:?}");
            }
        }
    }

    #[test]
    fn an_approver_who_asks_too_much_keeps_nobody_else_from_a_control() {
        let rates = Rates::default();
        let take = |path: &str, role| rates.take(TENANT, 3, Class::of(path, Some(role)), Time(0));
        let decide = of_call(CONTROLS[0].0);
        while take(&decide, Role::Approver).is_ok() {}
        for path in CONTROLS.map(|(entry, _)| of_call(entry)) {
            for _ in 0..3 * REQUESTS_BURST_SECONDS {
                take(&path, Role::Admin).expect("each call has its own quota");
            }
            assert!(take(&path, Role::Admin).is_err(), "the quota is used up");
        }
    }

    #[test]
    fn the_last_full_second_is_what_is_used() {
        let rates = Rates::default();
        for now in [1_000, 1_400, 1_999, 2_000] {
            assert!(rates.take(TENANT, 50, Class::Begins, Time(now)).is_ok());
        }
        let used = |now| rates.used(TENANT, Time(now));
        assert_eq!((used(2_000), used(3_000), used(4_000)), (3, 1, 0));
        assert_eq!(rates.used(TenantId(2), Time(2_000)), 0);
    }

    #[test]
    fn a_rate_may_be_as_small_or_as_large_as_a_number() {
        let rates = Rates::default();
        let take = |rate| rates.take(TENANT, rate, Class::Begins, Time(0));
        for rate in [RATE_MAX, u64::MAX] {
            assert!((0..1_000).all(|_| take(rate).is_ok()), "{rate}");
        }
        assert!((0..REQUESTS_BURST_SECONDS).all(|_| take(1).is_ok()));
        assert_eq!(wait(take(1)), 1_000);
    }

    #[test]
    fn tenants_at_rest_are_forgotten() {
        let rates = Rates::default();
        let most = u32::try_from(RATES_TENANTS_MAX).expect("it fits");
        for tenant in 0..most {
            let now = if tenant == 7 { 2_500 } else { 1_000 };
            assert!(rates.take(TenantId(tenant), 1, Class::Begins, Time(now)).is_ok());
        }
        assert!(rates.take(TenantId(most), 1, Class::Begins, Time(3_000)).is_ok());
        assert_eq!(rates.tenants.lock().len(), 2);
        for tenant in 0..=most {
            assert!(rates.take(TenantId(tenant), 1, Class::Begins, Time(3_000)).is_ok());
        }
        assert!(rates.tenants.lock().len() <= RATES_TENANTS_MAX);
    }

    #[test]
    fn a_limit_says_where_it_is_set() {
        let configured = Quotas { sessions: Some(5), bytes: Some(0), ..Quotas::default() };
        let (defaults, own) = (QuotaDefaults::of_server(configured), Quotas::default());
        let all = defaults.under(own);
        assert_eq!((all.sessions, all.bytes), (Some(5), None));
        assert_eq!(all.requests_per_second, Some(REQUESTS_PER_SECOND_DEFAULT));
        assert_eq!(defaults.set_in(own, Quota::Sessions), SetIn::Configuration);
        assert_eq!(defaults.set_in(own, Quota::RequestsPerSecond), SetIn::Default);
        let own = Quotas { sessions: Some(7), ..own };
        assert_eq!(defaults.under(own).sessions, Some(7));
        assert_eq!(defaults.set_in(own, Quota::Sessions), SetIn::Tenant);
        assert_eq!(QuotaDefaults::default().under(Quotas::default()), Quotas::default());
    }
}
