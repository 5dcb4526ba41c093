//! Claims on work: of the calls of this server, one at a time tries an item.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use switchward_machine::{OpenId, SessionId};

/// Work that a call of this server is taking right now, so that others do not try it at the same time.
#[derive(Default)]
pub(crate) struct Claims(Mutex<BTreeSet<(SessionId, OpenId)>>);

/// One claim, released on drop.
pub(super) struct Claim {
    claims: Arc<Claims>,
    work: (SessionId, OpenId),
}

impl Claim {
    /// Returns the claim; `None` if another call has it.
    pub(super) fn on(claims: &Arc<Claims>, session: SessionId, work: OpenId) -> Option<Self> {
        let work = (session, work);
        claims.0.lock().insert(work).then(|| Self { claims: Arc::clone(claims), work })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claims.0.lock().remove(&self.work);
    }
}
