//! Values about policies, for stored forms.

use switchward_machine::{Limit, Micros, Period, RunId, Time};
use switchward_state::approval::{Call, Grant};
use switchward_state::catalogue::{DefaultSetIn, Definition};
use switchward_state::policy::{
    CallEffect, LayerDecision, LedgerRule, MatchedRule, PinnedPolicy, TenantPolicy,
};

use super::digest;

pub(super) fn rule() -> MatchedRule {
    let (layer, list, capability) = ("policy".into(), "ask".into(), "mcp:*".into());
    MatchedRule { layer, list, capability, default_set_in: None }
}

pub(super) fn layers() -> Vec<LayerDecision> {
    let (layer, list, set_in) = ("tenant:guard@2", "default", Some(DefaultSetIn::Document));
    let by_default = MatchedRule {
        layer: layer.into(),
        list: list.into(),
        capability: String::new(),
        default_set_in: set_in,
    };
    vec![
        LayerDecision { effect: CallEffect::Ask, rule: rule() },
        LayerDecision { effect: CallEffect::Deny, rule: by_default },
    ]
}

pub(super) fn pinned_policy() -> PinnedPolicy {
    PinnedPolicy { of: "deploy-gate".into(), name: "guard".into(), version: 2, machine: digest() }
}

pub(super) fn tenant_policy() -> TenantPolicy {
    TenantPolicy { name: "guard".into(), version: 2, machine: digest(), by: "kim".into(), at: Time(4) }
}

pub(super) fn rules() -> Vec<LedgerRule> {
    let limits = vec![
        Limit::Rate { max: 50, window_ms: 3_600_000 },
        Limit::Money { max: Micros(5_000_000), period: Period::Month },
    ];
    vec![LedgerRule {
        process: "deploy-gate".into(),
        role: "agent".into(),
        capability: "bash".into(),
        limits,
        layers: vec!["policy".into()],
    }]
}

pub(super) fn call() -> Call {
    Call {
        call_id: "c-1".into(),
        capability: "bash".into(),
        at: Time(3),
        reserved: Micros(5),
        reservation: Some(digest()),
        rules: rules(),
        run: None,
    }
}

pub(super) fn grant() -> Grant {
    Grant {
        gate: 6,
        capability: "bash".into(),
        digest: digest(),
        expires: Time(9),
        run: RunId(1),
        reserved: Micros(5),
        reservation: Some(digest()),
        rules: rules(),
        asked_by: vec!["policy".into()],
    }
}

pub(super) fn definition() -> Definition {
    let (created, updated) = (Time(1), Time(2));
    Definition {
        name: "deploy-gate".into(),
        format: "checkpoint".into(),
        active: Some(1),
        latest: 2,
        created,
        updated,
        policies: vec!["guard".into()],
        retired: Vec::new(),
        archived: None,
        deleted: None,
    }
}
