//! Values of what is stored about data that is removed; they stand in row.v1.txt and decision.v1.txt.

use minicbor::bytes::ByteVec;
use switchward_machine::{Digest, OpenId, SessionId, Status, TenantId, Time};
use switchward_state::catalogue::{
    CatalogueEvent, ChangedPart, Deletion, Quotas, Settings, Tenancy, TenantChange, TenantFact, Usage,
};
use switchward_state::run::Json;
use switchward_state::seal::SecretOf;
use switchward_state::session::{
    Removal, RemovalFact, Removed, Removing, RetainedDecision, Retention, RetentionRule, Session,
    SessionEvent,
};
use switchward_state::{Event, Row};

use crate::stored::session;

pub(super) fn rows() -> Vec<(&'static str, Row)> {
    let removal = Removal {
        how: Removing::Erased,
        by: "kim".into(),
        at: Time(5),
        done: Some(Time(6)),
        upto: 4,
        head: Digest([3; 32]),
    };
    let removed = Removed {
        how: Removing::Expired,
        by: "server".into(),
        at: Time(5),
        definition: "deploy-gate".into(),
        version: 3,
        created: Time(1),
        ended: Time(3),
        status: Status::Completed,
        decisions: vec![RetainedDecision {
            gate: OpenId(6),
            what: "approve".into(),
            by: "kim".into(),
            at: Time(2),
        }],
        request: Some(("r-1".into(), Digest([4; 32]))),
        expired: true,
    };
    let erased = Removed { how: Removing::Erased, by: "kim".into(), ..removed.clone() };
    let day = 86_400_000;
    let rule = RetentionRule {
        definition: "deploy-gate".into(),
        sessions_ms: Some(90 * day),
        history_ms: Some(30 * day),
        decisions_ms: Some(900 * day),
        quarantine_ms: None,
    };
    let all = RetentionRule { quarantine_ms: Some(7 * day), ..RetentionRule::default() };
    let retention = Retention { rules: vec![all, rule] };
    let held = Tenancy {
        held: Some(Time(4)),
        changes: 2,
        ..Tenancy::first(Some(crate::stored::sealed(SecretOf::Mail, &[5; 32])))
    };
    let deleted = crate::stored::Tenant { deleted: Some(Time(5)), ..crate::stored::tenant() };
    let quotas = Quotas { requests_per_second: Some(50), sessions: Some(0), bytes: None, weight: Some(3) };
    let quotas = crate::stored::Tenant {
        settings: Settings { quotas, ..crate::stored::tenant().settings },
        ..crate::stored::tenant()
    };
    vec![
        ("session-removal", Row::Session(Session { removal: Some(Box::new(removal)), ..session() })),
        ("session-bytes", Row::Session(Session { bytes: 900, ..session() })),
        ("usage", Row::Usage(Usage { sessions: 3, bytes: 2_700 })),
        ("tenant-quotas", Row::Tenant(quotas)),
        ("removed", Row::Removed(removed)),
        ("removed-erased", Row::Removed(erased)),
        ("tenancy-held", Row::Tenancy(held)),
        ("tenancy-deleted", Row::Tenancy(Tenancy::tombstone(4, deletion()))),
        ("tenant-deleted", Row::Tenant(deleted)),
        ("tenant-change", Row::TenantChange(change())),
        (
            "tenancy-retention",
            Row::Tenancy(Tenancy {
                retention,
                ..Tenancy::first(Some(crate::stored::sealed(SecretOf::Mail, &[5; 32])))
            }),
        ),
    ]
}

fn deletion() -> Deletion {
    Deletion { by: "kim".into(), at: Time(5), done: Some(Time(6)) }
}

fn change() -> TenantChange {
    let (before, after) =
        (Json(serde_json::Value::Null), Json(serde_json::json!({"members": ["kim@a.example"]})));
    let part = ChangedPart { name: "directory.entries.kim".into(), before, after };
    TenantChange { at: Time(5), by: crate::stored::actor(), parts: vec![part] }
}

pub(super) fn events() -> Vec<Event> {
    let (session, keys) = (SessionId([1; 16]), vec![ByteVec::from(vec![1, 2, 3])]);
    let request = Some(("r-1".to_owned(), Digest([4; 32])));
    [
        RemovalFact::Begun { how: Removing::Deleted, by: "kim".into(), request },
        RemovalFact::Rows { session, keys: keys.clone() },
        RemovalFact::Done { session },
        RemovalFact::Forgotten { keys: keys.clone() },
        RemovalFact::Redacted,
        RemovalFact::Expired { session, by: "server".into(), keys: keys.clone() },
        RemovalFact::OfTenant { keys },
    ]
    .map(|fact| Event::Session(SessionEvent::Removals(fact)))
    .into_iter()
    .chain([
        Event::Catalogue(CatalogueEvent::Tenants(TenantFact::Changed { number: 2, change: change() })),
        Event::Catalogue(CatalogueEvent::Tenants(TenantFact::Deleted {
            tenant: TenantId(2),
            name: "acme".into(),
            tombstone: Box::new(Tenancy::tombstone(4, deletion())),
        })),
    ])
    .collect()
}
