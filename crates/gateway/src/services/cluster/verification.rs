//! Comparisons of the replicas of a group.

use std::time::Duration;
use switchward_api::v1::{self, ClusterReplicaComparison as Comparison};
use switchward_shard::{GroupVerification, NotVerified, ReplicaVerification, VerifyOutcome};

use crate::api::Api;
use crate::error::{Reason, Refusal};

/// How soon it is worth trying again after a group was not verified.
const VERIFY_RETRY: Duration = Duration::from_secs(1);

/// Verifies a group.
pub(super) async fn run(api: &Api, group: u64) -> Result<v1::VerifyGroupResponse, Refusal> {
    let seen = api.cluster.verify(group).await.map_err(not_verified)?;
    let GroupVerification { group, index, digest, replicas } = seen;
    let digest = digest.map(hex).unwrap_or_default();
    let replicas = replicas.into_iter().map(replica).collect();
    Ok(v1::VerifyGroupResponse { group, index, digest, replicas })
}

fn not_verified(why: NotVerified) -> Refusal {
    let message = why.to_string();
    match why {
        NotVerified::NoGroup(group) => Refusal::not_found("group", group.to_string()),
        NotVerified::Busy => Refusal::new(Reason::RateLimited, message).retry_after(VERIFY_RETRY),
        NotVerified::NotMarked { group, .. } => {
            Refusal::new(Reason::ShardElecting, message).meta("group", group).retry_after(VERIFY_RETRY)
        }
    }
}

fn replica(of: ReplicaVerification) -> v1::ClusterReplicaDigest {
    let ReplicaVerification { server, votes: voter, outcome } = of;
    let (comparison, digest, detail) = match outcome {
        VerifyOutcome::Agrees => (Comparison::Agrees, String::new(), String::new()),
        VerifyOutcome::Differs { digest } => (Comparison::Differs, hex(digest), String::new()),
        VerifyOutcome::Unreachable { why } => (Comparison::Unreachable, String::new(), why),
    };
    v1::ClusterReplicaDigest { server, voter, comparison: comparison.into(), digest, detail }
}

fn hex(digest: [u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
