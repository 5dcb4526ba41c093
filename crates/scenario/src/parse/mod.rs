//! Reading a scenario. See `docs/scenarios.md#the-file` and `docs/scenarios.md#verbs`.

mod event_types;
mod expect;
pub(crate) mod fields;
mod values;
mod verbs;

use switchward_formats::{
    Finding, Report,
    document::{Node, Span, Syntax, Value, read},
    has_errors,
    limits::SOURCE_BYTES_MAX,
    shape::{self, Fields, Shape},
};
use switchward_machine::Time;
use switchward_state::approval::{Quorum, Reminders};
use switchward_state::catalogue::{DefaultEffect, DefaultSetIn, Settings};

use crate::limits::{ALSO_MAX, STEPS_MAX};
use crate::script::{Assistant, Expected, Named, Scenario, Start, StartAgain, Until};

/// 2026-01-05T09:00:00Z, the default start time.
const CLOCK_STARTS: Time = Time(1_767_603_600_000);
const ROLE: &str = "agent";

const SCENARIO: Shape = Shape {
    what: "a scenario",
    keys: &["definition", "process", "also", "policies", "tenant", "start", "steps"],
    ignored: &[],
    hints: &[("expect", "put it into `start` or into one of `steps`")],
};
const TENANT: Shape = Shape {
    what: "`tenant`",
    keys: &["default_effect", "allow_foreign_role", "any_approver_address", "policies"],
    ignored: &[],
    hints: &[],
};
/// `run_type` is for the native format, `queue`, `contact`, `assistant` and `message` for conversations, `dry_run`
/// for PROCESS.md: they are checked and have no effect in the others.
const START: Shape = Shape {
    what: "`start`",
    keys: &[
        "at",
        "input",
        "role",
        "run_type",
        "dry_run",
        "queue",
        "contact",
        "assistant",
        "message",
        "audience",
        "reminders",
        "quorum",
        "escalation",
        "expect",
        "expect_error",
    ],
    ignored: &[],
    hints: &[],
};
const ASSISTANT: Shape =
    Shape { what: "`assistant`", keys: &["instructions", "workflows"], ignored: &[], hints: &[] };
const REMINDERS: Shape = Shape { what: "`reminders`", keys: &["every", "max"], ignored: &[], hints: &[] };
const RUN_TYPES: [&str; 2] = ["programmatic", "supervised"];
const EFFECTS: [&str; 3] = ["allow", "ask", "deny"];

/// Reads a scenario file.
///
/// # Errors
/// Every finding at once, with line and column; at least one of them is an error.
pub fn parse(file: &str, bytes: &[u8]) -> Result<Scenario, Vec<Finding>> {
    let mut report = Report::new(file);
    let syntax = Syntax::of(file, bytes);
    let scenario = read(bytes, syntax, &mut report).and_then(|root| scenario(file, &root, &mut report));
    let findings = report.finish();
    scenario.filter(|_| !has_errors(&findings)).ok_or(findings)
}

fn scenario(file: &str, root: &Node, report: &mut Report) -> Option<Scenario> {
    let fields = Fields::open(root, &SCENARIO, report)?;
    let definition = fields.required("definition", report).and_then(|node| named(node, report));
    // A workspace of several processes is no format of this build: there is nothing to choose from yet.
    fields.optional("process").and_then(|node| shape::name(node, "`process`", SOURCE_BYTES_MAX, report));
    let also = files(fields.optional("also"), "`also`", report);
    let policies = files(fields.optional("policies"), "`policies`", report);
    let of_tenant = fields.optional("tenant").and_then(|node| node.get("policies"));
    let tenant_policies = files(of_tenant, "`policies`", report);
    let settings = fields.optional("tenant").and_then(|node| tenant(node, report));
    // A scenario has no directory that could hold an approver.
    let any = Settings { any_approver_address: true, ..Settings::default() };
    let settings = settings.unwrap_or(any);
    let start = match fields.optional("start") {
        Some(node) => start(node, report),
        None => Some(Start {
            span: root.span,
            at: CLOCK_STARTS,
            session: begun(ROLE, Vec::new()),
            expected: Expected::default(),
        }),
    };
    let steps = fields.optional("steps").and_then(|node| shape::list(node, "`steps`", STEPS_MAX, report));
    let steps = steps.unwrap_or_default().iter().enumerate();
    let steps = steps.filter_map(|(at, node)| verbs::step(at + 1, node, report)).collect();
    Some(Scenario {
        file: file.to_owned(),
        definition: definition?,
        also,
        policies,
        tenant_policies,
        settings,
        start: start?,
        steps,
    })
}

/// The files of a list of the scenario.
fn files(node: Option<&Node>, what: &str, report: &mut Report) -> Vec<Named> {
    let listed = node.and_then(|node| shape::list(node, what, ALSO_MAX, report));
    listed.unwrap_or_default().iter().filter_map(|node| named(node, report)).collect()
}

/// A file that the scenario names.
fn named(node: &Node, report: &mut Report) -> Option<Named> {
    let path = shape::name(node, "the name of a file", SOURCE_BYTES_MAX, report)?;
    Some(Named { path: path.to_owned(), span: node.span })
}

fn tenant(node: &Node, report: &mut Report) -> Option<Settings> {
    let fields = Fields::open(node, &TENANT, report)?;
    let word = fields.optional("default_effect");
    let word = word.and_then(|node| shape::word(node, "`default_effect`", &EFFECTS, report));
    let default_set_in = if word.is_some() { DefaultSetIn::Tenant } else { DefaultSetIn::Source };
    let default_effect = match word {
        Some("ask") => DefaultEffect::Ask,
        Some("deny") => DefaultEffect::Deny,
        Some(_) | None => DefaultEffect::Allow,
    };
    let foreign = fields.optional("allow_foreign_role");
    let foreign = foreign.and_then(|node| values::truth(node, "`allow_foreign_role`", report));
    let any = fields.optional("any_approver_address");
    let any = any.and_then(|node| values::truth(node, "`any_approver_address`", report));
    let (allow_foreign_role, any_approver_address) = (foreign.unwrap_or_default(), any.unwrap_or(true));
    Some(Settings {
        default_effect,
        allow_foreign_role,
        any_approver_address,
        default_set_in,
        ..Settings::default()
    })
}

fn start(node: &Node, report: &mut Report) -> Option<Start> {
    let fields = Fields::open(node, &START, report)?;
    let at = match fields.optional("at") {
        Some(node) => values::time(node, report),
        None => Some(CLOCK_STARTS),
    };
    let mut session = session(&fields, report);
    let queue = fields.optional("queue").and_then(|node| values::texts(node, "`queue`", report));
    session.queue = queue.unwrap_or_default();
    let contact = fields.optional("contact");
    let contact = contact.and_then(|node| shape::name(node, "`contact`", SOURCE_BYTES_MAX, report));
    session.contact = contact.map(str::to_owned);
    session.assistant = fields.optional("assistant").and_then(|node| assistant(node, report));
    let message = fields.optional("message");
    let message = message.and_then(|node| shape::text(node, "`message`", SOURCE_BYTES_MAX, report));
    session.message = message.map(str::to_owned);
    let audience = fields.optional("audience").and_then(|node| values::texts(node, "`audience`", report));
    session.audience = audience.unwrap_or_default();
    let escalation = fields.optional("escalation");
    let escalation = escalation.and_then(|node| values::texts(node, "`escalation`", report));
    session.escalation = escalation.unwrap_or_default();
    session.quorum = fields.optional("quorum").and_then(|node| quorum(node, report));
    session.reminders = fields.optional("reminders").and_then(|node| reminders(node, report));
    fields.optional("run_type").and_then(|node| shape::word(node, "`run_type`", &RUN_TYPES, report));
    fields.optional("dry_run").and_then(|node| values::truth(node, "`dry_run`", report));
    let expected = expect::read(node, report);
    Some(Start { span: node.span, at: at?, session, expected })
}

/// `role` and `input`, which every start has.
fn session(fields: &Fields<'_>, report: &mut Report) -> StartAgain {
    let role = fields.optional("role");
    let role = role.and_then(|node| shape::text(node, "`role`", SOURCE_BYTES_MAX, report));
    let input = fields.optional("input").filter(|node| values::is_map(node, "`input`", report));
    let input = input.map(values::json_bytes).unwrap_or_default();
    begun(role.unwrap_or(ROLE), input)
}

/// A session without a contact.
fn begun(role: &str, input: Vec<u8>) -> StartAgain {
    let (queue, contact, assistant, message) = (Vec::new(), None, None, None);
    let (audience, reminders, quorum) = (Vec::new(), None, None);
    StartAgain {
        role: role.to_owned(),
        input,
        queue,
        contact,
        assistant,
        message,
        audience,
        reminders,
        quorum,
        escalation: Vec::new(),
    }
}

/// `any`, `all` or a number.
fn quorum(node: &Node, report: &mut Report) -> Option<Quorum> {
    if matches!(node.value, Value::String(_)) {
        let word = shape::word(node, "`quorum`", &["any", "all"], report)?;
        return (word == "all").then_some(Quorum::All);
    }
    let least = shape::integer(node, "`quorum`", 0..=u64::from(u32::MAX), report)?;
    Some(Quorum::AtLeast(u32::try_from(least).ok()?))
}

fn reminders(node: &Node, report: &mut Report) -> Option<Reminders> {
    let fields = Fields::open(node, &REMINDERS, report)?;
    let every = fields.required("every", report).and_then(|node| every(node, report));
    let max = fields.required("max", report);
    let max = max.and_then(|node| shape::integer(node, "`max`", 0..=u64::from(u32::MAX), report));
    Some(Reminders { every_ms: every?, max: u32::try_from(max?).ok()? })
}

/// A length of time, milliseconds.
fn every(node: &Node, report: &mut Report) -> Option<u64> {
    match values::duration(node, "`every`", report)? {
        Until::Later(ms) => Some(ms),
        Until::At(_) => None,
    }
}

fn assistant(node: &Node, report: &mut Report) -> Option<Assistant> {
    let fields = Fields::open(node, &ASSISTANT, report)?;
    let text = fields.optional("instructions");
    let text = text.and_then(|node| shape::text(node, "`instructions`", SOURCE_BYTES_MAX, report));
    let workflows = fields.optional("workflows");
    let workflows = workflows.and_then(|node| values::texts(node, "`workflows`", report));
    Some(Assistant {
        instructions: text.unwrap_or_default().to_owned(),
        workflows: workflows.unwrap_or_default(),
    })
}

/// `{}` for a verb that needs no fields.
static NOTHING: Node = Node { value: Value::Map(Vec::new()), span: Span::START };

#[cfg(test)]
mod tests;
