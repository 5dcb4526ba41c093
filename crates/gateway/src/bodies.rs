//! Byte budgets of bodies that are being read or answered: of the server, of each tenant, of each connection, and of all
//! bodies whose senders are unknown until they are read.

use http::Extensions;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;
use switchward_machine::TenantId;

use crate::connections::{Connection, Open};
use crate::error::{Reason, Refusal};
use crate::limits::{BODIES_AGAIN_MS, BODIES_PART, BODY_FREE_BYTES, MEMORY_BYTES_DEFAULT};

/// The name of the quota that a budget is.
pub(crate) const BUDGET: &str = "bodies_in_flight";

/// The budgets. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Bodies {
    limits: BodyLimits,
    budgets: Arc<Budgets>,
}

impl Default for Bodies {
    fn default() -> Self {
        Self { limits: BodyLimits::within(MEMORY_BYTES_DEFAULT), budgets: Arc::default() }
    }
}

/// How many bytes there may be at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BodyLimits {
    server: usize,
    tenant: usize,
    connection: usize,
    unproven: usize,
}

impl BodyLimits {
    /// Derives the limits from the memory that the server may use, in bytes.
    pub(crate) fn within(memory: usize) -> Self {
        let server = memory / BODIES_PART;
        Self { server, tenant: server / 4, connection: server / 8, unproven: server / 4 }
    }
}

#[derive(Default)]
struct Budgets {
    server: AtomicUsize,
    /// Bodies whose sender is not known yet.
    unproven: AtomicUsize,
    /// What bodies take of their tenants' budgets. Small ones take nothing, and are not in it.
    tenants: Mutex<HashMap<TenantId, usize>>,
}

/// What one body takes of the budgets, as long as it is kept.
pub(crate) struct Held {
    bodies: Bodies,
    tenant: Option<TenantId>,
    connection: Option<Arc<Connection>>,
    bytes: usize,
}

impl Bodies {
    /// Derives the budgets from the memory that the server may use, in bytes.
    pub(crate) fn within(memory: usize) -> Self {
        Self { limits: BodyLimits::within(memory), ..Self::default() }
    }

    /// Begins a body of a request with these extensions. `tenant` is `None` if only the body itself shows whose it is.
    pub(crate) fn begin(&self, tenant: Option<TenantId>, extensions: &Extensions) -> Held {
        let connection = extensions.get::<Arc<Open>>().map(|open| Arc::clone(&open.connection));
        Held { bodies: self.clone(), tenant, connection, bytes: 0 }
    }
}

impl Held {
    /// What the body takes of its tenant's budget: all but its first [`BODY_FREE_BYTES`].
    fn of_tenant(&self) -> usize {
        self.bytes.saturating_sub(BODY_FREE_BYTES)
    }

    /// Adds this many bytes of the body to the budgets.
    ///
    /// # Errors
    /// QUOTA_EXCEEDED if they exceed a budget; it names the budget.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Refusal> {
        let limits = self.bodies.limits;
        let before = self.of_tenant();
        self.bytes += bytes;
        let more = self.of_tenant() - before;
        let server = self.bodies.budgets.server.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let of_connection = self.connection.as_ref().map_or(0, |connection| connection.add_bytes(bytes));
        let (whose, of_sender, most) = match self.tenant {
            // A small body is accepted even if the tenant's budget is used up: it may be the decision that frees it.
            Some(_) if self.of_tenant() == 0 => ("this tenant", 0, limits.tenant),
            Some(tenant) => {
                let mut tenants = self.bodies.budgets.tenants.lock();
                let held = tenants.entry(tenant).or_default();
                *held += more;
                ("this tenant", *held, limits.tenant)
            }
            None => {
                let unproven = self.bodies.budgets.unproven.fetch_add(bytes, Ordering::Relaxed) + bytes;
                ("senders without a credential", unproven, limits.unproven)
            }
        };
        let budgets = [
            ("this connection", of_connection, limits.connection),
            (whose, of_sender, most),
            ("this server", server, limits.server),
        ];
        match budgets.into_iter().find(|(_, held, most)| held > most) {
            None => Ok(()),
            Some((whose, _, most)) => {
                let message = format!(
                    "the open requests of {whose} take more than {most} bytes; send the request again later"
                );
                let again = Duration::from_millis(BODIES_AGAIN_MS);
                Err(Refusal::new(Reason::QuotaExceeded, message.clone())
                    .quota(BUDGET, message)
                    .retry_after(again))
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.bodies.budgets.server.fetch_sub(self.bytes, Ordering::Relaxed);
        if let Some(connection) = &self.connection {
            connection.take_bytes(self.bytes);
        }
        let Some(tenant) = self.tenant else {
            self.bodies.budgets.unproven.fetch_sub(self.bytes, Ordering::Relaxed);
            return;
        };
        let of_tenant = self.of_tenant();
        if of_tenant == 0 {
            return;
        }
        let mut tenants = self.bodies.budgets.tenants.lock();
        if let Some(held) = tenants.get_mut(&tenant) {
            *held -= of_tenant;
            if *held == 0 {
                tenants.remove(&tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_budget_refuses_what_exceeds_it_and_gets_it_back() {
        let (bodies, one, other) = (Bodies::within(8 << 20), TenantId(1), TenantId(2));
        let limits = bodies.limits;
        let held = |tenant: Option<TenantId>, connection: Option<&Arc<Connection>>| {
            let mut extensions = Extensions::new();
            if let Some(connection) = connection {
                extensions.insert(Arc::new(connection.begin()));
            }
            bodies.begin(tenant, &extensions)
        };
        let refused = |mut held: Held, whose: &str| {
            let refusal = held.grow(1).expect_err("the budget is used up");
            assert_eq!(refusal.reason(), Reason::QuotaExceeded);
            assert!(refusal.message().contains(whose), "{refusal:?}");
        };
        let connection = Arc::<Connection>::default();
        let mut on_it = held(Some(one), Some(&connection));
        on_it.grow(limits.connection).expect("the budget is free");
        let small = || held(Some(one), None).grow(BODY_FREE_BYTES);
        refused(held(Some(one), Some(&connection)), "this connection");
        let mut rest = held(Some(one), None);
        rest.grow(limits.tenant - limits.connection + 2 * BODY_FREE_BYTES).expect("the budget is free");
        let mut large = held(Some(one), None);
        assert!(large.grow(BODY_FREE_BYTES + 1).is_err_and(|no| no.message().contains("this tenant")));
        drop(large);
        small().expect("small requests, such as decisions, are accepted");
        held(Some(other), None).grow(BODY_FREE_BYTES).expect("the budget is free");
        let counted: Vec<TenantId> = bodies.budgets.tenants.lock().keys().copied().collect();
        assert_eq!(counted, [one], "small bodies are not counted");
        // Unknown senders have a separate budget.
        let mut unknown = held(None, None);
        unknown.grow(limits.unproven).expect("the budget is free");
        refused(held(None, None), "without a credential");
        // Another tenant has its own, until the server's is used up.
        let mut others: Vec<Held> = Vec::new();
        for number in 2.. {
            let mut next = held(Some(TenantId(number)), None);
            let went = next.grow(limits.tenant);
            others.push(next);
            if went.is_err() {
                break;
            }
        }
        refused(held(Some(other), None), "this");
        drop((on_it, rest, unknown, others));
        held(Some(one), Some(&connection)).grow(limits.connection).expect("the whole budget is free again");
        let left =
            (bodies.budgets.server.load(Ordering::Relaxed), bodies.budgets.unproven.load(Ordering::Relaxed));
        assert_eq!((left, bodies.budgets.tenants.lock().len()), ((0, 0), 0));
    }
}
