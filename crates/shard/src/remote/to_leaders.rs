//! The way from a server to the leaders on other servers, and what of it each tenant may take.

use std::sync::Arc;
use switchward_machine::TenantId;

use crate::limits::{FORWARD_PERMIT_BYTES, FORWARDS_MAX, FORWARDS_OF_TENANT_MAX};
use crate::peers::Transport;
use crate::tenant_permits::{TenantPermit, TenantPermits};

/// The way to the leaders on other servers. The groups of a server share it, so that its limits hold for all of them together;
/// cheap to clone.
#[derive(Clone)]
pub struct ToLeaders {
    transport: Arc<dyn Transport>,
    permits: TenantPermits,
}

impl ToLeaders {
    /// Over this transport, with no command under way.
    #[must_use]
    pub fn over(transport: Arc<dyn Transport>) -> Self {
        Self { transport, permits: TenantPermits::new(FORWARDS_MAX, FORWARDS_OF_TENANT_MAX) }
    }

    /// The connections to the other servers.
    pub(super) fn transport(&self) -> &dyn Transport {
        &*self.transport
    }

    /// A permit to send a command with this many bytes; `None` if too much of its tenant, or of all, is under way. A tenant
    /// that has nothing under way can send a command of any length, if the others leave enough.
    pub(super) fn permit(&self, tenant: TenantId, bytes: usize) -> Option<TenantPermit> {
        let permits = bytes.div_ceil(FORWARD_PERMIT_BYTES).clamp(1, FORWARDS_OF_TENANT_MAX);
        self.permits.take_several(tenant, permits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::RAFT_MESSAGE_BYTES_MAX;
    use crate::peers::{PeerConnection, PeerError, PeerRequest, PeerStream};
    use async_trait::async_trait;
    use bytes::Bytes;
    use std::time::Duration;

    /// Reaches no server.
    struct NoServers;

    #[async_trait]
    impl Transport for NoServers {
        async fn call(
            &self,
            _: u64,
            _: PeerConnection,
            _: PeerRequest,
            _: Duration,
        ) -> Result<Bytes, PeerError> {
            Err(PeerError::NotSent("there are no servers".into()))
        }

        async fn stream(&self, _: u64, _: PeerRequest) -> Result<Arc<dyn PeerStream>, PeerError> {
            Err(PeerError::NotSent("there are no servers".into()))
        }
    }

    #[test]
    fn long_commands_of_a_tenant_leave_bytes_to_others() {
        let leaders = ToLeaders::over(Arc::new(NoServers));
        let (of_group, of_other_group) = (leaders.clone(), leaders);
        let (one, other) = (TenantId(1), TenantId(2));
        let long = FORWARD_PERMIT_BYTES * FORWARDS_OF_TENANT_MAX / 4;
        let held: Vec<_> = (0..4).map(|_| of_group.permit(one, long).expect("permits are free")).collect();
        assert!(of_other_group.permit(one, 1).is_none(), "its commands in all groups count together");
        let of_other = of_other_group.permit(other, long).expect("the other tenant has its own");
        drop(held);
        let longest = of_group.permit(one, RAFT_MESSAGE_BYTES_MAX).expect("it has nothing under way");
        assert!(of_group.permit(one, 1).is_none(), "it counts as all that the tenant may have");
        drop((longest, of_other));
    }
}
