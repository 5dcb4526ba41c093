//! How many calls of each tenant are open at one time, streams among them, on however many connections.

use parking_lot::Mutex;
use std::sync::Arc;
use switchward_machine::TenantId;

use crate::error::{Reason, Refusal};
use crate::known::Known;
use crate::limits::CALLS_OF_TENANT_MAX;
use crate::quotas::Class;

/// The tenants that have calls open. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenCalls(Arc<Mutex<Known<TenantId, usize>>>);

/// A call that is open until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenCall {
    calls: OpenCalls,
    tenant: TenantId,
}

impl OpenCalls {
    /// Counts a call. Calls that end work and control calls of people are always admitted, because they are short.
    ///
    /// # Errors
    /// QUOTA_EXCEEDED if the tenant's maximum of calls is open.
    pub(crate) fn begin(&self, tenant: TenantId, class: Class) -> Result<OpenCall, Refusal> {
        let mut calls = self.0.lock();
        let open = calls.entry(tenant).or_default();
        if *open >= CALLS_OF_TENANT_MAX && !matches!(class, Class::Ends | Class::Controls(_)) {
            let message = format!(
                "the tenant has {CALLS_OF_TENANT_MAX} open calls, including streams; end some, or send it again later"
            );
            return Err(Refusal::new(Reason::QuotaExceeded, message.clone()).quota("open_calls", message));
        }
        *open += 1;
        drop(calls);
        Ok(OpenCall { calls: self.clone(), tenant })
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let mut calls = self.calls.0.lock();
        if let Some(open) = calls.get_mut(&self.tenant) {
            *open -= 1;
            if *open == 0 {
                calls.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_state::catalogue::Role;

    #[test]
    fn a_tenant_has_a_limit_and_people_still_stop_sessions() {
        let (calls, one, other) = (OpenCalls::default(), TenantId(1), TenantId(2));
        let mut open: Vec<OpenCall> = (0..CALLS_OF_TENANT_MAX)
            .map(|_| calls.begin(one, Class::Begins).expect("the tenant is below its limit"))
            .collect();
        for class in [Class::Begins, Class::Tokens, Class::Free] {
            let refusal = calls.begin(one, class).expect_err("the limit is reached");
            assert_eq!(refusal.reason(), Reason::QuotaExceeded);
        }
        let control = Class::of("/switchward.v1.GateService/DecideGate", Some(Role::Approver));
        for class in [Class::Ends, control] {
            open.push(calls.begin(one, class).expect("this class has no limit"));
        }
        open.push(calls.begin(other, Class::Begins).expect("another tenant has its own limit"));
        drop(open);
        assert!(calls.0.lock().is_empty());
        calls.begin(one, Class::Begins).expect("all calls have ended");
    }
}
