//! Workers that come late, twice and in any order, with results of every kind.

use serde_json::{Value, json};
use switchward_engine::{Body, CompleteWork, ExtendLease, FailWork, LeaseWork, ReleaseWork};
use switchward_machine::{Micros, OpenId, WorkKind};

use crate::chance::Chance;
use crate::workflow::value;

/// Leases that are tried again, counted from the newest.
const REMEMBERED: usize = 6;

/// What a worker does next; nothing where there is nothing to do.
pub(crate) fn command(
    chance: &mut Chance,
    open: &[(OpenId, WorkKind)],
    leases: &[(OpenId, u64)],
) -> Option<Body> {
    let taken = leases.last().is_some_and(|(thing, _)| open.iter().any(|(known, _)| known == thing));
    if !open.is_empty() && (!taken || chance.once_in(6)) {
        let (thing, _) = *chance.pick(open);
        let lease_ms = u64::from(*chance.pick(&[1_000_u32, 60_000, 3_600_000]));
        return Some(Body::LeaseWork(LeaseWork { thing, worker: "w".into(), lease_ms }));
    }
    let newest = leases.len().saturating_sub(REMEMBERED);
    let old = leases.get(newest..).filter(|old| !old.is_empty())?;
    let (thing, fence) = if chance.below(5) > 0 { *old.last()? } else { *chance.pick(old) };
    let kind = open.iter().find(|(known, _)| *known == thing).map(|(_, kind)| *kind);
    let (cost, tokens) = (Micros(0), 1);
    Some(match chance.below(10) {
        0 => Body::ReleaseWork(ReleaseWork { thing, fence }),
        1 => Body::ExtendLease(ExtendLease { thing, fence, lease_ms: 60_000 }),
        2 | 3 => {
            let unknown = fence.is_multiple_of(2);
            Body::FailWork(FailWork { thing, fence, message: "no".into(), cost, tokens, unknown })
        }
        _ => {
            let result = result(chance, kind.unwrap_or(WorkKind::Agent));
            Body::CompleteWork(CompleteWork { thing, fence, result, cost, tokens })
        }
    })
}

fn result(chance: &mut Chance, kind: WorkKind) -> Value {
    if chance.once_in(8) {
        return value(chance);
    }
    match kind {
        WorkKind::Agent => json!({ "free": value(chance) }),
        WorkKind::Extract => match chance.below(7) {
            0 => json!({ "title": "T", "free": null }),
            1 => json!({ "free": 3, "tags": ["a"] }),
            _ => json!({ "free": 3, "title": "T", "tags": [1] }),
        },
        WorkKind::Judge => json!({ "verdict": chance.once_in(2) }),
        WorkKind::Classify => {
            json!({ "port": chance.pick(&["rejected", "discussion", "approved", "keen", "gone"]) })
        }
        WorkKind::Intent => match chance.below(4) {
            0 => json!({ "workflows": [] }),
            1 => json!({ "workflows": ["other", "nothing"] }),
            2 => json!({ "workflows": ["other", "random"] }),
            _ => json!({ "workflows": ["random"] }),
        },
        WorkKind::Delegate => match chance.below(4) {
            0 => Value::Null,
            1 => json!({ "count": "many" }),
            _ => json!({ "tags": ["done"], "count": 1 }),
        },
        WorkKind::Http => json!({ "status": chance.pick(&[200, 204, 399, 503]), "body": value(chance) }),
    }
}
