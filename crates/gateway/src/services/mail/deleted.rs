//! Mails that were deleted from the quarantine a short time ago.

use parking_lot::Mutex;
use std::collections::VecDeque;
use switchward_machine::TenantId;

use crate::limits::MAIL_DELETED_MAX;

/// Recently deleted mails with their tenants, so that a repeated request without a received answer succeeds again.
#[derive(Default)]
pub(crate) struct Deleted(Mutex<VecDeque<(TenantId, String)>>);

impl Deleted {
    pub(super) fn has(&self, tenant: TenantId, id: &str) -> bool {
        self.0.lock().iter().any(|(known, one)| *known == tenant && one == id)
    }

    pub(crate) fn note(&self, tenant: TenantId, id: String) {
        let mut known = self.0.lock();
        known.push_front((tenant, id));
        known.truncate(MAIL_DELETED_MAX);
    }

    /// Forgets a mail that came once more and is stored again.
    pub(crate) fn forget(&self, id: &str) {
        self.0.lock().retain(|(_, one)| one != id);
    }
}
