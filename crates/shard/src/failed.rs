//! Why a replica has failed. A replica that has failed answers and acknowledges nothing; the server's other shards go
//! on, and so do the other replicas of the shard.

use std::sync::{Arc, OnceLock};
use switchward_store::GroupId;

/// Set once; cheap to clone.
#[derive(Clone)]
pub(crate) struct Failed {
    group: GroupId,
    why: Arc<OnceLock<String>>,
}

impl Failed {
    pub(crate) fn of(group: GroupId) -> Self {
        Self { group, why: Arc::default() }
    }

    /// The first reason; `None` if the replica has not failed.
    pub(crate) fn why(&self) -> Option<&str> {
        self.why.get().map(String::as_str)
    }

    /// Records that the replica has failed, and logs it the first time.
    pub(crate) fn set(&self, why: impl Into<String>) {
        if self.why.set(why.into()).is_ok() {
            tracing::error!(
                shard = self.group.0,
                why = self.why(),
                "this server's replica of a shard has failed and does nothing more; the other shards continue"
            );
        }
    }
}
