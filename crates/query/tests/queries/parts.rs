//! Random values of what queries hold of settings, policies and endpoints.

use serde_json::{Map, Value, json};
use switchward_machine::{DeliveryReason, Limit, Micros, OpenId, Period, RunId};
use switchward_state::catalogue::{DefaultEffect, DefaultSetIn, LinkAuth, Quotas, Settings};
use switchward_state::delivery::{
    DeliveryDetail, DeliveryFailure, DisabledReason, Endpoint, EndpointHealth, EventProblem, FailureCode,
    SourceSecret,
};
use switchward_state::policy::{Args, LedgerRule};
use switchward_state::run::RunAddress;
use switchward_state::seal::SecretOf;
use switchward_testkit::ring;

use crate::draw::Draw;

/// How deep arguments nest at most.
const DEPTH_MAX: usize = 4;

pub(crate) fn settings(draw: &mut Draw) -> Settings {
    Settings {
        default_effect: draw.pick(&[DefaultEffect::Allow, DefaultEffect::Ask, DefaultEffect::Deny]),
        allow_foreign_role: draw.coin(),
        default_set_in: draw.pick(&[
            DefaultSetIn::Source,
            DefaultSetIn::Configuration,
            DefaultSetIn::Tenant,
            DefaultSetIn::Document,
        ]),
        any_approver_address: draw.coin(),
        link_auth: draw.option(|draw| draw.pick(&[LinkAuth::Link, LinkAuth::Code, LinkAuth::Oidc])),
        browser_known_ms: draw.option(Draw::number),
        quotas: Quotas {
            requests_per_second: draw.option(Draw::number),
            sessions: draw.option(Draw::number),
            bytes: draw.option(Draw::number),
            weight: draw.option(Draw::small),
        },
    }
}

pub(crate) fn address(draw: &mut Draw) -> RunAddress {
    RunAddress {
        work: draw.option(|draw| OpenId(draw.number())),
        run: draw.option(|draw| RunId(draw.small())),
        node: draw.option(Draw::text),
    }
}

pub(crate) fn args(draw: &mut Draw) -> Args {
    let fields: Map<String, Value> =
        draw.list(|draw| (draw.text(), value(draw, DEPTH_MAX))).into_iter().collect();
    Args::parse(Value::Object(fields).to_string().as_bytes()).unwrap()
}

fn value(draw: &mut Draw, depth: usize) -> Value {
    let kinds = if depth == 0 { 4 } else { 6 };
    match draw.below(kinds) {
        0 => Value::Null,
        1 => json!(draw.coin()),
        2 => json!(draw.number()),
        3 => json!(draw.text()),
        4 => (0..draw.below(3)).map(|_| value(draw, depth - 1)).collect(),
        _ => {
            let count = draw.below(3);
            let fields = (0..count).map(|_| (draw.text(), value(draw, depth - 1)));
            Value::Object(fields.collect())
        }
    }
}

pub(crate) fn ledger_rule(draw: &mut Draw) -> LedgerRule {
    LedgerRule {
        process: draw.text(),
        role: draw.text(),
        capability: draw.text(),
        limits: draw.list(limit),
        layers: draw.texts(),
    }
}

fn limit(draw: &mut Draw) -> Limit {
    if draw.coin() {
        Limit::Rate { max: draw.number(), window_ms: draw.number() }
    } else {
        let period = draw.pick(&[Period::Hour, Period::Day, Period::Month]);
        Limit::Money { max: Micros(draw.number()), period }
    }
}

pub(crate) fn endpoint(draw: &mut Draw) -> Endpoint {
    let id = draw.text();
    let secrets = draw.list(|draw| {
        let (nonce, tenant, text) = (draw.bytes(), draw.tenant(), draw.text());
        let sealed = ring().seal(nonce, tenant, SecretOf::Endpoint(&id), text.as_bytes()).unwrap();
        SourceSecret { sealed, until: draw.option(Draw::time) }
    });
    Endpoint {
        url: draw.text(),
        secrets,
        filters: draw.texts(),
        disabled: draw.option(disabled_reason),
        created: draw.time(),
        health: draw.option(health),
        id,
    }
}

fn disabled_reason(draw: &mut Draw) -> DisabledReason {
    draw.pick(&[DisabledReason::Gone, DisabledReason::Failing])
}

fn failure_code(draw: &mut Draw) -> FailureCode {
    let reported = "carrier_pigeon_lost".parse().expect("a code");
    let reason = draw.pick(&DeliveryReason::ALL);
    let disabled = FailureCode::Unsendable(EventProblem::EndpointDisabled { reason: disabled_reason(draw) });
    draw.pick(&[FailureCode::Attempt(reason), FailureCode::WebhookFailed, disabled, reported])
}

fn health(draw: &mut Draw) -> EndpointHealth {
    EndpointHealth {
        failing_since: draw.option(Draw::time),
        succeeded: draw.option(Draw::time),
        failed: draw.option(|draw| DeliveryFailure {
            code: failure_code(draw),
            detail: draw.option(|draw| DeliveryDetail::Quoted { text: draw.text() }),
            at: draw.time(),
        }),
    }
}
