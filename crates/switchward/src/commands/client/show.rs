//! Messages of the API as text for people. Labels are the API's field names.

mod gates;
mod settled;

use jiff::Timestamp;
use std::time::Duration;
use switchward_api::v1;
use switchward_messages::cli;
use switchward_state::policy::CallEffect;

use gates::open_gate;
pub(super) use gates::{about, approvals, brief, gate, reached, to_decide_gate, to_decide_open, waited};
pub(super) use settled::{approving, often};

use super::conversation::ConversationMessage;
use crate::output::{CARE, FAINT, GOOD, PROBLEM, STRONG, card, clean, count, put};

/// The maximum length of a text in a list, characters.
const BRIEF_CHARS: usize = 80;

/// The last part of a resource name, the id, which every command accepts.
pub(super) fn id(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

/// The definition's id in the resource name of a definition or a version.
pub(super) fn definition_of(name: &str) -> &str {
    let rest = name.split_once("definitions/").map_or(name, |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default()
}

/// The session's key, or else its id.
pub(super) fn handle(session: &v1::Session) -> &str {
    if session.session_id.is_empty() { id(&session.name) } else { &session.session_id }
}

/// The word of an enum's value: `GATE_STATUS_OPEN` without its prefix, in lower case.
pub(super) fn word(name: &str, prefix: &str) -> String {
    let word = name.strip_prefix(prefix).unwrap_or(name).to_ascii_lowercase();
    if word == "unspecified" { String::new() } else { word }
}

/// A time to the second, in UTC.
pub(super) fn time(time: Option<&prost_types::Timestamp>) -> String {
    let Some(time) = time else { return String::new() };
    // A time outside the calendar is shown as it was sent.
    Timestamp::from_second(time.seconds).map_or_else(|_| time.seconds.to_string(), |time| time.to_string())
}

/// A duration; a negative one is zero.
pub(super) fn length(length: prost_types::Duration) -> Duration {
    Duration::try_from(length).unwrap_or_default()
}

/// A rule with its layer: `allow bash (policy)`.
pub(super) fn rule(rule: &v1::MatchedRule) -> String {
    let list = word(rule.list().as_str_name(), "RULE_LIST_");
    let capability = if rule.capability.is_empty() { cli::client::NO_RULE } else { &rule.capability };
    let set_in = match rule.default_set_in() {
        v1::DefaultSetIn::Unspecified => return clean(&format!("{list}: {capability} ({})", rule.layer)),
        v1::DefaultSetIn::Source => cli::client::SET_BY_FORMAT,
        v1::DefaultSetIn::Configuration => cli::client::SET_IN_CONFIGURATION,
        v1::DefaultSetIn::Tenant => cli::client::SET_IN_TENANT,
        v1::DefaultSetIn::Policy => cli::client::SET_IN_POLICY,
    };
    clean(&format!("{list}: {capability} ({}, {set_in})", rule.layer))
}

/// The decision of each layer: `allow: bash (policy); ask: bash (tenant:guard@1)`.
pub(super) fn layers(layers: &[v1::LayerDecision]) -> String {
    let one = |said: &v1::LayerDecision| {
        let verdict = word(said.decision().as_str_name(), "TOOL_DECISION_");
        let rule = said.rule.clone().unwrap_or_default();
        if rule.list() == v1::RuleList::Default {
            format!("{verdict} by {}", self::rule(&rule))
        } else {
            self::rule(&rule)
        }
    };
    layers.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// What was said of a call. A bypass permits it; a decision that this program does not know permits nothing.
pub(super) fn effect(decision: v1::ToolDecision) -> CallEffect {
    match decision {
        v1::ToolDecision::Allow | v1::ToolDecision::Bypass => CallEffect::Allow,
        v1::ToolDecision::Ask => CallEffect::Ask,
        v1::ToolDecision::Deny | v1::ToolDecision::Unspecified => CallEffect::Deny,
    }
}

/// What remains of the limits: `49 calls, 3.50 USD`.
pub(super) fn remaining(left: &v1::Remaining) -> String {
    let calls =
        left.calls.map(|calls| if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") });
    let money = left.usd.as_ref().map(|usd| format!("{} USD", clean(usd)));
    calls.into_iter().chain(money).collect::<Vec<_>>().join(", ")
}

/// Caps and usage; empty if there is neither.
pub(super) fn budget(budget: &v1::Budget) -> String {
    let is_zero = |text: &str| text.chars().all(|c| matches!(c, '0' | '.'));
    let mut parts = Vec::new();
    match &budget.cap_usd {
        Some(cap) => parts.push(format!("{} of {} USD used", budget.used_usd, cap)),
        None if !is_zero(&budget.used_usd) => parts.push(format!("{} USD used", budget.used_usd)),
        None => {}
    }
    if !is_zero(&budget.reserved_usd) {
        parts.push(format!("{} USD reserved", budget.reserved_usd));
    }
    match budget.cap_tokens {
        Some(cap) => parts.push(format!("{} of {cap} tokens used", budget.used_tokens)),
        None if budget.used_tokens > 0 => parts.push(format!("{} tokens used", budget.used_tokens)),
        None => {}
    }
    if let Some(cap) = budget.cap_mails {
        parts.push(format!("{} of {cap} mails sent", budget.used_mails));
    }
    clean(&parts.join(", "))
}

/// A session's status with its colour.
pub(super) fn status(session: &v1::Session) -> String {
    let style = match session.status() {
        v1::SessionStatus::Completed => GOOD,
        v1::SessionStatus::Blocked | v1::SessionStatus::Failed => PROBLEM,
        v1::SessionStatus::Suspended => CARE,
        v1::SessionStatus::Cancelled | v1::SessionStatus::Abandoned => FAINT,
        v1::SessionStatus::Unspecified
        | v1::SessionStatus::Queued
        | v1::SessionStatus::Running
        | v1::SessionStatus::Waiting => STRONG,
    };
    let mut text = format!("{style}{}{style:#}", status_word(session));
    if !session.reason.is_empty() {
        text.push_str(&format!(": {}", clean(&session.reason)));
    }
    if session.without_policy {
        text.push_str(&format!(" {CARE}({}){CARE:#}", cli::client::WITHOUT_POLICY));
    }
    text
}

/// A session's status as a word.
pub(super) fn status_word(session: &v1::Session) -> String {
    word(session.status().as_str_name(), "SESSION_STATUS_")
}

/// A session with all its fields.
pub(super) fn session(session: &v1::Session) -> String {
    session_with(session, &[])
}

/// The same with the last messages.
pub(super) fn session_with(session: &v1::Session, said: &[ConversationMessage]) -> String {
    let none = v1::Checkpoint::default();
    let checkpoint = session.checkpoint.as_ref().unwrap_or(&none);
    let lives = session.end_time.is_none();
    let asks = checkpoint.question != session.instructions;
    let open: Vec<String> = session.open.iter().map(open_item).collect();
    let answers: Vec<String> = checkpoint.answers.iter().filter(|_| lives).map(option).collect();
    let gates: Vec<String> = session.waiting_on.iter().map(open_gate).collect();
    let labels: Vec<String> = session.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    card(&[
        ("session", format!("{STRONG}{}{STRONG:#}", clean(id(&session.name)))),
        ("session_id", clean(&session.session_id)),
        ("assistant", clean(id(&session.assistant))),
        ("assistant_instructions", clean(&session.assistant_instructions)),
        ("definition", process_of(session)),
        ("status", status(session)),
        ("at", clean(&session.at.join(", "))),
        ("prompt", clean(&checkpoint.prompt)),
        ("question", if asks { clean(&checkpoint.question) } else { String::new() }),
        ("answers", answers.join("\n")),
        ("instructions", clean(&session.instructions)),
        ("reply_token", clean(&session.reply_token)),
        ("messages", conversation(said)),
        ("data", session.data.iter().map(data).collect()),
        ("open", open.join("\n")),
        ("active_runs", session.active_runs.iter().map(active_run).collect::<Vec<_>>().join("\n")),
        ("runs", runs(session)),
        ("waiting_on", gates.join("\n")),
        ("incidents", incidents(session)),
        ("audience", settled::audience(session)),
        ("reminders", settled::reminders(session)),
        ("quorum", settled::quorum(session)),
        ("escalation", settled::escalation(session)),
        ("budget", session.budget.as_ref().map(budget).unwrap_or_default()),
        ("labels", clean(&labels.join(", "))),
        ("update_time", time(session.update_time.as_ref())),
        ("erase_time", time(session.erase_time.as_ref())),
    ])
}

/// Messages, one per line.
fn conversation(said: &[ConversationMessage]) -> String {
    let line = |one: &ConversationMessage| format!("{}: {}", clean(&one.from), brief(&one_line(&one.text)));
    said.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The definition of a session and its version.
pub(super) fn process_of(session: &v1::Session) -> String {
    match session.definition.as_str() {
        "" if session.assistant.is_empty() => String::new(),
        "" => cli::client::NO_DEFINITION_YET.to_owned(),
        name => format!("{}, version {}", clean(definition_of(name)), session.version),
    }
}

/// Writes a card, one field per line.
pub(super) fn assistant(assistant: &v1::Assistant) -> String {
    card(&[
        ("assistant", format!("{STRONG}{}{STRONG:#}", clean(id(&assistant.name)))),
        ("workflows", clean(&assistant.workflows.join(", "))),
        ("instructions", clean(&assistant.instructions)),
        ("create_time", time(assistant.create_time.as_ref())),
        ("update_time", time(assistant.update_time.as_ref())),
    ])
}

/// Data, one key per line.
pub(super) fn data(data: &prost_types::Struct) -> String {
    let lines = data.fields.iter().map(|(key, value)| format!("{}: {}", clean(key), clean(&json(value))));
    lines.collect::<Vec<_>>().join("\n")
}

/// Writes a value as JSON on one line.
pub(super) fn json(value: &prost_types::Value) -> String {
    use prost_types::value::Kind;
    let list = |open: &str, parts: Vec<String>, close: &str| format!("{open}{}{close}", parts.join(", "));
    match &value.kind {
        None | Some(Kind::NullValue(_)) => "null".into(),
        Some(Kind::BoolValue(truth)) => truth.to_string(),
        Some(Kind::NumberValue(number)) => number.to_string(),
        Some(Kind::StringValue(text)) => serde_json::Value::from(text.as_str()).to_string(),
        Some(Kind::ListValue(items)) => list("[", items.values.iter().map(json).collect(), "]"),
        Some(Kind::StructValue(object)) => {
            let member = |(key, value): (&String, _)| {
                format!("{}: {}", serde_json::Value::from(key.as_str()), json(value))
            };
            list("{", object.fields.iter().map(member).collect(), "}")
        }
    }
}

fn open_item(open: &v1::OpenItem) -> String {
    let due = open.due_time.as_ref().map(|due| format!(" until {}", time(Some(due)))).unwrap_or_default();
    clean(&format!("{} ({}) at {}{due}", open.kind, open.r#type, open.state))
}

/// A run that is active beside others: its number, by which commands name it, its state and its definition.
fn active_run(run: &v1::SessionRun) -> String {
    clean(&format!("{} {}  {}", run.run, run.state, definition_of(&run.definition)))
}

/// The runs of a session that has several.
fn runs(session: &v1::Session) -> String {
    let run = |run: &v1::SessionRun| {
        let status = word(run.status().as_str_name(), "SESSION_STATUS_");
        let by = if run.parent == 0 { String::new() } else { format!(" (called by run {})", run.parent) };
        clean(&format!("{} {status}{by}", definition_of(&run.definition)))
    };
    if session.runs.len() < 2 {
        String::new()
    } else {
        session.runs.iter().map(run).collect::<Vec<_>>().join(", ")
    }
}

fn option(answer: &v1::AnswerOption) -> String {
    let effect = match answer.effect() {
        v1::AnswerEffect::Unspecified | v1::AnswerEffect::Continue => "",
        v1::AnswerEffect::Complete => cli::client::COMPLETES_SESSION,
        v1::AnswerEffect::Block => cli::client::BLOCKS_SESSION,
        v1::AnswerEffect::Warn => cli::client::CONTINUES_WITH_WARNING,
        v1::AnswerEffect::NotifyHuman => cli::client::WAITS_FOR_PERSON,
    };
    let key = clean(&answer.key);
    if effect.is_empty() { key } else { format!("{key}  {FAINT}{effect}{FAINT:#}") }
}

/// Incidents, which need an operator, one per line.
fn incidents(session: &v1::Session) -> String {
    let line = |one: &v1::Incident| {
        let what = format!("{} {}: {}", one.kind, one.code, first_line(&one.message));
        format!("{PROBLEM}{}{PROBLEM:#}  {}", clean(id(&one.effect)), clean(&what))
    };
    session.incidents.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn count_of(number: u32, what: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), what)
}

/// A version number; 0 is none.
pub(super) fn number(number: u32) -> String {
    if number == 0 { "none".to_owned() } else { number.to_string() }
}

/// Writes a card, one field per line.
pub(super) fn definition(definition: &v1::Definition) -> String {
    let policies: Vec<String> =
        definition.policies.iter().map(|policy| clean(definition_of(policy))).collect();
    card(&[
        ("definition", format!("{STRONG}{}{STRONG:#}", clean(definition_of(&definition.name)))),
        ("format", word(definition.format().as_str_name(), "FORMAT_")),
        ("active_version", number(definition.active_version)),
        ("latest_version", number(definition.latest_version)),
        ("policies", policies.join(", ")),
        ("retired_versions", numbers(&definition.retired_versions)),
        ("archive_time", time(definition.archive_time.as_ref())),
        ("archived_by", clean(&definition.archived_by)),
        ("create_time", time(definition.create_time.as_ref())),
        ("update_time", time(definition.update_time.as_ref())),
    ])
}

/// Writes findings, each with its position.
pub(super) fn findings(findings: &[v1::Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let position = format!("{}:{}:{}", clean(&finding.file), finding.line, finding.column);
        let (code, message) = (clean(&finding.code), clean(&finding.message));
        let severity = word(finding.severity().as_str_name(), "SEVERITY_");
        put(&mut text, format_args!("{CARE}{severity}[{code}]{CARE:#}: {message}\n --> {position}\n"));
    }
    text
}

/// Writes a card, one field per line.
pub(super) fn version(version: &v1::Version) -> String {
    card(&[
        ("definition", format!("{STRONG}{}{STRONG:#}", clean(definition_of(&version.name)))),
        (
            "version",
            [version.number.to_string(), status_of(version).into()].join(", ").trim_end_matches(", ").into(),
        ),
        ("format", word(version.format().as_str_name(), "FORMAT_")),
        ("digest", clean(&version.digest)),
        ("machine_digest", clean(&version.machine_digest)),
        ("created_by", clean(&version.created_by)),
        ("create_time", time(version.create_time.as_ref())),
        ("retire_time", retired(version)),
    ])
}

/// `active`, `retired`, or empty.
pub(super) fn status_of(version: &v1::Version) -> &'static str {
    match (version.active, version.retire_time.is_some()) {
        (true, _) => "active",
        (false, true) => "retired",
        (false, false) => "",
    }
}

/// Version numbers.
fn numbers(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// When a version was retired, and by whom.
fn retired(version: &v1::Version) -> String {
    let by = clean(&version.retired_by);
    version.retire_time.as_ref().map(|at| format!("{} by {by}", time(Some(at)))).unwrap_or_default()
}

/// An event of a session's history, on one line.
pub(super) fn event(event: &v1::SessionEvent) -> String {
    let (kind, by, message) = (clean(&event.r#type), clean(&event.by), one_line(&event.message));
    let style = match kind.as_str() {
        "session.completed" => GOOD,
        "session.blocked" | "session.failed" | "policy.denied" | "budget.exhausted" => PROBLEM,
        "policy.asked" | "approval.requested" | "task.created" | "session.warned" | "session.paused" => CARE,
        _ => anstyle::Style::new(),
    };
    let when = time(event.time.as_ref());
    format!("{:>5}  {FAINT}{when}{FAINT:#}  {style}{kind:<22}{style:#}  {by:<8}  {message}\n", event.sequence)
}

fn one_line(text: &str) -> String {
    clean(text).replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_those_that_commands_take() {
        assert_eq!(id("tenants/dev/sessions/ses_1"), "ses_1");
        assert_eq!(definition_of("tenants/dev/definitions/deploy-gate/versions/3"), "deploy-gate");
        assert_eq!(definition_of("deploy-gate"), "deploy-gate");
        for name in ["Contract Review", "50 % \"off\"", "v1.2", "\u{5408}\u{540c}", "my definitions"] {
            assert_eq!(definition_of(&format!("tenants/dev/definitions/{name}")), name);
            assert_eq!(definition_of(&format!("tenants/dev/definitions/{name}/versions/3")), name);
        }
        assert_eq!(word("GATE_STATUS_OPEN", "GATE_STATUS_"), "open");
    }

    #[test]
    fn a_budget_shows_what_is_set() {
        let mut of =
            v1::Budget { used_usd: "0".into(), reserved_usd: "0.00".into(), ..v1::Budget::default() };
        assert_eq!(budget(&of), "");
        of.used_tokens = 7;
        of.cap_usd = Some("5".into());
        of.reserved_usd = "0.25".into();
        assert_eq!(budget(&of), "0 of 5 USD used, 0.25 USD reserved, 7 tokens used");
    }

    #[test]
    fn an_agent_cannot_dress_up_what_a_person_decides_on() {
        let args = "{\"path\":\"a\u{1b}[2K\u{202e}txt\"}".as_bytes().to_vec();
        let shown = gate(&v1::Gate { args: args.into(), ..v1::Gate::default() });
        assert!(shown.contains("{\"path\":\"a\\u001b[2K\\u202etxt\"}"), "{shown:?}");
    }
}
