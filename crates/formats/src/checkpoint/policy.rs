//! The policy. See `docs/formats-checkpoint.md#the-policy` and `docs/policies.md#rate-limits`.

use switchward_machine::limits::{CALLS_MAX, NAME_BYTES_MAX, RULES_MAX, WINDOW_SECONDS_MAX};
use switchward_machine::{GateIx, Layer, Limit, Otherwise, Pattern, Period, Rule};

use super::idle::{self, Listed};
use super::process::TOOL_ASK;
use super::tools::{self, pattern};
use crate::codes::{PATTERN, POLICY_OPEN};
use crate::document::{Node, Span};
use crate::shape::{self, Fields, Shape};
use crate::{Finding, Report, quoted};

const POLICY: Shape =
    Shape { what: "`policy`", keys: &["role", "allow", "ask", "deny"], ignored: &[], hints: &[] };
const RULE: Shape =
    Shape { what: "a rule", keys: &["capability", "rate_limit", "budget_limit"], ignored: &[], hints: &[] };
const DENY_RULE: Shape = Shape {
    what: "a deny rule",
    keys: &["capability"],
    ignored: &[],
    hints: &[("rate_limit", NO_LIMITS), ("budget_limit", NO_LIMITS)],
};
const NO_LIMITS: &str = "a denied capability is never called; put the limit into a rule of `allow` or `ask`";
const RATE_LIMIT: Shape =
    Shape { what: "`rate_limit`", keys: &["max_calls", "window_seconds"], ignored: &[], hints: &[] };
const BUDGET_LIMIT: Shape =
    Shape { what: "`budget_limit`", keys: &["max_usd", "period"], ignored: &[], hints: &[] };

/// The result of compiling a policy.
pub(super) struct Parts {
    /// The role that a session must have.
    pub(super) role: Option<String>,
    /// The rules; present even without a policy, for the tenant's default.
    pub(super) layer: Layer,
}

/// Reads the policy, or returns an empty one.
pub(super) fn read(node: Option<&Node>, report: &mut Report) -> Parts {
    let fields = node.and_then(|node| Fields::open(node, &POLICY, report));
    let role = fields.and_then(|fields| fields.required("role", report));
    let role = role.and_then(|node| shape::name(node, "`role`", NAME_BYTES_MAX, report));
    let layer = Layer {
        except: vec![tools::process_step()],
        ..lists(fields.as_ref(), Some(TOOL_ASK), Otherwise::TenantDefault, report)
    };
    Parts { role: role.map(str::to_owned), layer }
}

/// Reports a policy that leaves something to the defaults.
pub(super) fn notice(node: Option<&Node>, layer: &Layer, report: &mut Report) {
    if let Some(node) = node {
        notice_open(layer, node.span, OPEN_HINT, report);
    }
}

const OPEN_HINT: &str =
    "end `allow`, `ask` or `deny` with the capability `*`, or set the tenant's default effect";

/// The layer of the three lists; its `ask` rules open `gate`.
pub(crate) fn lists(
    fields: Option<&Fields<'_>>,
    gate: Option<GateIx>,
    otherwise: Otherwise,
    report: &mut Report,
) -> Layer {
    let mut rules = |key| match fields.and_then(|fields| fields.optional(key)) {
        Some(node) => read_list(node, key, gate, report),
        None => Vec::new(),
    };
    let (deny, ask, allow) = (rules("deny"), rules("ask"), rules("allow"));
    idle::warn(&[("deny", &deny), ("ask", &ask), ("allow", &allow)], report);
    let plain = |listed: Vec<Listed>| listed.into_iter().map(|it| it.rule).collect();
    Layer {
        name: "policy".into(),
        covers: pattern("*"),
        except: Vec::new(),
        deny: plain(deny),
        ask: plain(ask),
        allow: plain(allow),
        otherwise,
        at: None,
    }
}

/// Reports once that a sound policy leaves something to the defaults. If no rule matches,
/// a call is allowed by default: `docs/policies.md#the-default`.
pub(crate) fn notice_open(layer: &Layer, span: Span, hint: &str, report: &mut Report) {
    let mut rules = layer.deny.iter().chain(&layer.ask).chain(&layer.allow);
    if report.errors() == 0
        && layer.otherwise == Otherwise::TenantDefault
        && !rules.any(|rule| rule.pattern.as_str() == "*")
    {
        let message = "a call that no rule of this policy names is allowed, unless the tenant or the server has \
                       another default";
        report.add(Finding::new(POLICY_OPEN, span, message).hint(hint));
    }
}

fn read_list(node: &Node, key: &'static str, ask_gate: Option<GateIx>, report: &mut Report) -> Vec<Listed> {
    let (shape, gate) = match key {
        "deny" => (&DENY_RULE, None),
        "ask" => (&RULE, ask_gate),
        _ => (&RULE, None),
    };
    let items = shape::list(node, &quoted(key), RULES_MAX, report).unwrap_or_default();
    items.iter().filter_map(|item| rule(item, shape, gate, report)).collect()
}

fn rule(item: &Node, shape: &'static Shape, gate: Option<GateIx>, report: &mut Report) -> Option<Listed> {
    let fields = Fields::open(item, shape, report)?;
    let capability = fields.required("capability", report);
    let limits = if shape.keys.contains(&"rate_limit") { limits(&fields, report) } else { Vec::new() };
    let capability = capability?;
    let pattern = capability_pattern(capability, report)?;
    Some(Listed { rule: Rule { pattern, limits, gate, args: None }, span: capability.span })
}

/// See `docs/policies.md#capabilities`.
fn capability_pattern(node: &Node, report: &mut Report) -> Option<Pattern> {
    let text = shape::text(node, "`capability`", usize::MAX, report)?;
    match Pattern::new(text) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let message = format!("the capability {} {error}", quoted(text));
            report.add(Finding::new(PATTERN, node.span, message));
            None
        }
    }
}

fn limits(fields: &Fields<'_>, report: &mut Report) -> Vec<Limit> {
    let rate = fields.optional("rate_limit").and_then(|node| rate_limit(node, report));
    let money = fields.optional("budget_limit").and_then(|node| budget_limit(node, report));
    rate.into_iter().chain(money).collect()
}

fn rate_limit(node: &Node, report: &mut Report) -> Option<Limit> {
    let fields = Fields::open(node, &RATE_LIMIT, report)?;
    let max = fields.required("max_calls", report);
    let max = max.and_then(|node| shape::integer(node, "`max_calls`", 1..=CALLS_MAX, report));
    let window = fields.required("window_seconds", report);
    let window =
        window.and_then(|node| shape::integer(node, "`window_seconds`", 1..=WINDOW_SECONDS_MAX, report));
    Some(Limit::Rate { max: max?, window_ms: window? * 1000 })
}

fn budget_limit(node: &Node, report: &mut Report) -> Option<Limit> {
    let fields = Fields::open(node, &BUDGET_LIMIT, report)?;
    let max = fields.required("max_usd", report);
    let max = max.and_then(|node| shape::money(node, "`max_usd`", report));
    let period = fields.required("period", report);
    let period =
        period.and_then(|node| shape::word(node, "`period`", &PERIODS.map(|(word, _)| word), report));
    let period = PERIODS.iter().find(|(word, _)| Some(*word) == period);
    Some(Limit::Money { max: max?, period: period?.1 })
}

const PERIODS: [(&str, Period); 3] =
    [("hourly", Period::Hour), ("daily", Period::Day), ("monthly", Period::Month)];
