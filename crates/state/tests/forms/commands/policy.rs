//! Commands about calls and what limits them.

use switchward_machine::{Limit, Micros, Period, Time};
use switchward_state::Body;
use switchward_state::delivery::{Draft, Outgoing};
use switchward_state::policy::{
    Args, AttachPolicy, Authorize, Confirm, HeldSince, LedgerRule, LimitCheck, LimitOutcome, PolicyCommand,
    RaiseCap, Remaining, RemoveTenantPolicy, ReportCall, ReportUsage, Reserve, SetTenantPolicy, Settle,
};

use super::catalogue::sealed;
use super::digest;

fn rules() -> Vec<LedgerRule> {
    vec![LedgerRule {
        process: "order".into(),
        role: "agent".into(),
        capability: "mcp:bank:*".into(),
        limits: vec![Limit::Money { max: Micros(5_000_000), period: Period::Day }],
        layers: vec!["policy".into()],
    }]
}

pub(crate) fn limits() -> LimitCheck {
    let remaining = Remaining { calls: Some(3), usd: Some(Micros(10)) };
    let outcome = LimitOutcome::Available { remaining };
    let held = vec![HeldSince { process: "order".into(), at: Time(8) }];
    LimitCheck { rules: rules(), estimate: Micros(20), age_ms: 9, outcome, held }
}

fn authorize() -> Authorize {
    let to = vec!["sam@example.com".to_owned()];
    let bcc = vec!["lead@example.com".to_owned()];
    let draft = Draft { to, bcc, subject: "Hello".into(), text: "Text".into(), ..Draft::default() };
    Authorize {
        capability: "resend-email".into(),
        args: Args::parse(br#"{"b":1.50,"a":"x"}"#).unwrap(),
        estimate: Some(Micros(20)),
        call_id: "c-1".into(),
        limits: Some(limits()),
        mail: Some(Outgoing::new(draft).unwrap()),
    }
}

pub(crate) fn commands() -> Vec<Body> {
    let (call, rules, estimate, at) = (digest(5), rules(), Micros(20), Time(8));
    let (definition, policy, etag) = ("order".to_owned(), "spending".to_owned(), "e".to_owned());
    let name = policy.clone();
    let report = ReportCall {
        call_id: Some("c-1".into()),
        capability: Some("mcp:bank:pay".into()),
        success: true,
        cost: Micros(7),
        tokens: 9,
    };
    let settle = Settle { call: Some(call), rules: rules.clone(), cost: Micros(7), at, release: false };
    [
        PolicyCommand::Authorize(authorize()),
        PolicyCommand::ReportCall(report),
        PolicyCommand::ReportUsage(ReportUsage { cost: Micros(7), tokens: 9 }),
        PolicyCommand::RaiseCap(RaiseCap { param: "cost_usd".into(), value: 9 }),
        PolicyCommand::Reserve(Reserve { call, rules: rules.clone(), estimate }),
        PolicyCommand::Confirm(Confirm { call, rules, estimate, at }),
        PolicyCommand::Settle(settle),
        PolicyCommand::AttachPolicy(AttachPolicy { definition, policy, attached: true, etag }),
        PolicyCommand::SetTenantPolicy(SetTenantPolicy {
            name: name.clone(),
            version: Some(2),
            key: Some(sealed()),
        }),
        PolicyCommand::RemoveTenantPolicy(RemoveTenantPolicy { name }),
    ]
    .into_iter()
    .map(Body::Policy)
    .collect()
}
