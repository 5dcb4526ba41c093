//! Workers that come late, twice and in any order, with results of every kind.

use serde_json::{Value, json};
use switchward_machine::{Micros, OpenId, WorkKind};
use switchward_state::Body;
use switchward_state::work::{
    CompleteWork, ExtendLease, FailWork, LeaseWork, ReleaseWork, WorkCommand, WorkFailure,
};
use switchward_testkit::Rng;

use crate::workflow::value;

/// Leases that are tried again, counted from the newest.
const REMEMBERED: usize = 6;

/// A worker's next command; `None` if there is nothing to do.
pub(crate) fn command(rng: &mut Rng, open: &[(OpenId, WorkKind)], leases: &[(OpenId, u64)]) -> Option<Body> {
    let taken = leases.last().is_some_and(|(item, _)| open.iter().any(|(known, _)| known == item));
    if !open.is_empty() && (!taken || rng.once_in(6)) {
        let (item, _) = *rng.pick(open);
        let lease_ms = u64::from(*rng.pick(&[1_000_u32, 60_000, 3_600_000]));
        return Some(Body::Work(WorkCommand::Lease(LeaseWork { item, worker: "w".into(), lease_ms })));
    }
    let newest = leases.len().saturating_sub(REMEMBERED);
    let old = leases.get(newest..).filter(|old| !old.is_empty())?;
    let (item, fence) = if rng.below(5) > 0 { *old.last()? } else { *rng.pick(old) };
    let kind = open.iter().find(|(known, _)| *known == item).map(|(_, kind)| *kind);
    let (cost, tokens) = (Micros(0), 1);
    Some(match rng.below(10) {
        0 => Body::Work(WorkCommand::Release(ReleaseWork { item, fence })),
        1 => Body::Work(WorkCommand::Extend(ExtendLease { item, fence, lease_ms: 60_000 })),
        2 | 3 => {
            let unknown = fence.is_multiple_of(2);
            Body::Work(WorkCommand::Fail(FailWork {
                item,
                fence,
                failure: WorkFailure::Reported { text: "no".into() },
                cost,
                tokens,
                unknown,
            }))
        }
        _ => {
            let result = result(rng, kind.unwrap_or(WorkKind::Agent));
            Body::Work(WorkCommand::Complete(CompleteWork { item, fence, result, cost, tokens, next: None }))
        }
    })
}

fn result(rng: &mut Rng, kind: WorkKind) -> Value {
    if rng.once_in(8) {
        return value(rng);
    }
    match kind {
        WorkKind::Agent | WorkKind::Tool | WorkKind::Interaction | WorkKind::Script => {
            json!({ "free": value(rng) })
        }
        WorkKind::Extract => match rng.below(7) {
            0 => json!({ "title": "T", "free": null }),
            1 => json!({ "free": 3, "tags": ["a"] }),
            _ => json!({ "free": 3, "title": "T", "tags": [1] }),
        },
        WorkKind::Judge => json!({ "verdict": rng.once_in(2) }),
        WorkKind::Classify => {
            json!({ "port": rng.pick(&["rejected", "discussion", "approved", "keen", "gone"]) })
        }
        WorkKind::Intent => match rng.below(4) {
            0 => json!({ "workflows": [] }),
            1 => json!({ "workflows": ["other", "nothing"] }),
            2 => json!({ "workflows": ["other", "random"] }),
            _ => json!({ "workflows": ["random"] }),
        },
        WorkKind::Delegate => match rng.below(4) {
            0 => Value::Null,
            1 => json!({ "count": "many" }),
            _ => json!({ "tags": ["done"], "count": 1 }),
        },
        WorkKind::Http => json!({ "status": rng.pick(&[200, 204, 399, 503]), "body": value(rng) }),
    }
}
