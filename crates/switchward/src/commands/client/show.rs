//! What a message of the API looks like to a person.

use jiff::Timestamp;
use std::time::Duration;
use switchward_api::v1;

use crate::output::{CARE, FAINT, GOOD, PROBLEM, STRONG, card, clean, count, period};

/// The last part of a resource name: the id alone is good enough for every command.
pub(super) fn id(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

/// The definition of a resource name, of a version's too.
pub(super) fn definition_of(name: &str) -> &str {
    let rest = name.split_once("definitions/").map_or(name, |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default()
}

/// How a person calls a session: by its own key, or else its id.
pub(super) fn handle(session: &v1::Session) -> &str {
    if session.session_id.is_empty() { id(&session.name) } else { &session.session_id }
}

/// The word of an enum's value: `GATE_STATUS_OPEN` without its prefix, small.
pub(super) fn word(name: &str, prefix: &str) -> String {
    let word = name.strip_prefix(prefix).unwrap_or(name).to_ascii_lowercase();
    if word == "unspecified" { String::new() } else { word }
}

/// A time to the second, in UTC.
pub(super) fn time(time: Option<&prost_types::Timestamp>) -> String {
    let Some(time) = time else { return String::new() };
    // What no calendar has is shown as it was sent.
    Timestamp::from_second(time.seconds).map_or_else(|_| time.seconds.to_string(), |time| time.to_string())
}

/// A duration; nothing of one that is negative.
pub(super) fn length(length: prost_types::Duration) -> Duration {
    Duration::try_from(length).unwrap_or_default()
}

/// A rule by its place: `allow bash (policy)`.
pub(super) fn rule(rule: &v1::MatchedRule) -> String {
    let list = word(rule.list().as_str_name(), "RULE_LIST_");
    let capability = if rule.capability.is_empty() { "no rule matches" } else { &rule.capability };
    clean(&format!("{list}: {capability} ({})", rule.layer))
}

/// What is left of limits: `49 calls, 3.50 USD`.
pub(super) fn remaining(left: &v1::Remaining) -> String {
    let calls = left.calls.map(|calls| format!("{calls} calls"));
    let money = left.usd.as_ref().map(|usd| format!("{} USD", clean(usd)));
    calls.into_iter().chain(money).collect::<Vec<_>>().join(", ")
}

/// Caps and use; nothing where there is neither.
pub(super) fn budget(budget: &v1::Budget) -> String {
    let is_zero = |text: &str| text.chars().all(|c| matches!(c, '0' | '.'));
    let mut parts = Vec::new();
    match &budget.cap_usd {
        Some(cap) => parts.push(format!("{} of {} USD used", budget.used_usd, cap)),
        None if !is_zero(&budget.used_usd) => parts.push(format!("{} USD used", budget.used_usd)),
        None => {}
    }
    if !is_zero(&budget.reserved_usd) {
        parts.push(format!("{} USD held", budget.reserved_usd));
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
        text.push_str(&format!(" {CARE}(without its policy: the role is another){CARE:#}"));
    }
    text
}

/// A session's status as a word.
pub(super) fn status_word(session: &v1::Session) -> String {
    word(session.status().as_str_name(), "SESSION_STATUS_")
}

/// A session, everything about it.
pub(super) fn session(session: &v1::Session) -> String {
    let none = v1::Checkpoint::default();
    let checkpoint = session.checkpoint.as_ref().unwrap_or(&none);
    let lives = session.end_time.is_none();
    let asks = checkpoint.question != session.instructions;
    let open: Vec<String> = session.open.iter().map(open_thing).collect();
    let answers: Vec<String> = checkpoint.answers.iter().filter(|_| lives).map(option).collect();
    let gates: Vec<String> = session.waiting_on.iter().map(open_gate).collect();
    let labels: Vec<String> = session.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    card(&[
        ("session", format!("{STRONG}{}{STRONG:#}", clean(id(&session.name)))),
        ("key", clean(&session.session_id)),
        ("assistant", clean(id(&session.assistant))),
        ("told", clean(&session.assistant_instructions)),
        ("process", process_of(session)),
        ("status", status(session)),
        ("at", clean(&session.at.join(", "))),
        ("prompt", clean(&checkpoint.prompt)),
        ("question", if asks { clean(&checkpoint.question) } else { String::new() }),
        ("answers", answers.join("\n")),
        ("instructions", clean(&session.instructions)),
        ("reply token", clean(&session.reply_token)),
        ("data", session.data.iter().map(data).collect()),
        ("open", open.join("\n")),
        ("runs", runs(session)),
        ("waits for", gates.join("\n")),
        ("incidents", incidents(session)),
        ("tells", clean(&session.audience.join(", "))),
        ("reminders", session.reminders.as_ref().map(reminders).unwrap_or_default()),
        ("approvals", session.quorum.as_ref().map(quorum).unwrap_or_default()),
        ("used", session.budget.as_ref().map(budget).unwrap_or_default()),
        ("labels", clean(&labels.join(", "))),
        ("changed", time(session.update_time.as_ref())),
    ])
}

/// What a session is about, and in which version.
pub(super) fn process_of(session: &v1::Session) -> String {
    match session.definition.as_str() {
        "" if session.assistant.is_empty() => String::new(),
        "" => "not known yet".to_owned(),
        name => format!("{}, version {}", clean(definition_of(name)), session.version),
    }
}

/// An assistant.
pub(super) fn assistant(assistant: &v1::Assistant) -> String {
    card(&[
        ("assistant", format!("{STRONG}{}{STRONG:#}", clean(id(&assistant.name)))),
        ("workflows", clean(&assistant.workflows.join(", "))),
        ("instructions", clean(&assistant.instructions)),
        ("created", time(assistant.create_time.as_ref())),
        ("changed", time(assistant.update_time.as_ref())),
    ])
}

/// Data, a key a line.
pub(super) fn data(data: &prost_types::Struct) -> String {
    let lines = data.fields.iter().map(|(key, value)| format!("{}: {}", clean(key), clean(&json(value))));
    lines.collect::<Vec<_>>().join("\n")
}

/// A value as JSON.
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

fn open_thing(open: &v1::OpenThing) -> String {
    let due = open.due_time.as_ref().map(|due| format!(" until {}", time(Some(due)))).unwrap_or_default();
    clean(&format!("{} ({}) at {}{due}", open.kind, open.r#type, open.state))
}

/// The runs of a session that has several.
fn runs(session: &v1::Session) -> String {
    let run = |run: &v1::SessionRun| {
        let status = word(run.status().as_str_name(), "SESSION_STATUS_");
        let by = if run.parent == 0 { String::new() } else { format!(" below run {}", run.parent) };
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
        v1::AnswerEffect::Complete => "completes the session",
        v1::AnswerEffect::Block => "ends it blocked",
        v1::AnswerEffect::Warn => "goes on with a warning",
        v1::AnswerEffect::NotifyHuman => "waits for a person",
    };
    let key = clean(&answer.key);
    if effect.is_empty() { key } else { format!("{key}  {FAINT}{effect}{FAINT:#}") }
}

/// What needs an operator, one a line.
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

/// How those who are asked are reminded.
fn reminders(reminders: &v1::Reminders) -> String {
    let every = period(reminders.every.map(length).unwrap_or_default());
    format!("{} at most, every {every}", count_of(reminders.max, "reminder"))
}

/// How many must approve.
fn quorum(quorum: &v1::Quorum) -> String {
    match quorum.rule {
        Some(v1::quorum::Rule::All(_)) => "all who are asked or told".to_owned(),
        Some(v1::quorum::Rule::AtLeast(least)) => format!("at least {least}"),
        Some(v1::quorum::Rule::Any(_)) | None => String::new(),
    }
}

fn count_of(number: u32, what: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), what)
}

fn open_gate(gate: &v1::OpenGate) -> String {
    let what = match gate.kind() {
        v1::GateKind::ToolAsk => format!("may the agent call {}?", gate.capability),
        v1::GateKind::Approval | v1::GateKind::Task => {
            format!("{} asks {}", gate.state, gate.approvers.join(", "))
        }
        v1::GateKind::Notify | v1::GateKind::Unspecified => format!("may it go on from {}?", gate.state),
    };
    let so_far = match gate.approvals_needed {
        0 => String::new(),
        needed => format!("  {} of {needed} approvals", gate.approvals),
    };
    let unheard = if gate.unheard {
        format!("  {PROBLEM}nobody knows of it by mail{PROBLEM:#}")
    } else {
        String::new()
    };
    format!("{CARE}{}{CARE:#}  {}{so_far}{unheard}", clean(id(&gate.name)), clean(&what))
}

/// How a gate stands: `open`, or what was decided.
fn gate_status(gate: &v1::Gate) -> String {
    let Some(resolution) = &gate.resolution else { return word(gate.status().as_str_name(), "GATE_STATUS_") };
    let decided = match resolution.decision() {
        v1::GateDecision::Approve => "approved",
        v1::GateDecision::Refuse => "refused",
        v1::GateDecision::Discuss => "discussed",
        v1::GateDecision::Answer => "answered",
        v1::GateDecision::Unspecified => "decided",
    };
    clean(&format!("{decided} by {}", resolution.by))
}

/// A gate, with the arguments as they must be seen by who decides.
pub(super) fn gate(gate: &v1::Gate) -> String {
    let comment = gate.resolution.as_ref().map(|resolution| clean(&resolution.comment)).unwrap_or_default();
    let answered = gate.resolution.as_ref().and_then(|resolution| resolution.answer.as_ref());
    let who = if gate.kind() == v1::GateKind::Task { "participant" } else { "approvers" };
    card(&[
        ("gate", format!("{STRONG}{}{STRONG:#}", clean(id(&gate.name)))),
        ("status", gate_status(gate)),
        ("answered", answered.map(|answer| clean(&json(answer))).unwrap_or_default()),
        ("comment", comment),
        ("asks", clean(&gate.message)),
        (who, clean(&gate.approvers.join(", "))),
        ("told", told(gate)),
        ("no mail to", clean(&gate.undeliverable.join(", "))),
        ("approvals", votes(gate)),
        ("reminded", reminded(gate)),
        ("text", clean(&gate.text)),
        ("call", clean(&gate.capability)),
        ("arguments", clean(&String::from_utf8_lossy(&gate.args))),
        ("digest", clean(&gate.args_digest)),
        ("answer", clean(&gate.answer)),
        ("session", clean(id(&gate.session))),
        ("process", format!("{}, version {}", clean(definition_of(&gate.definition)), gate.version)),
        ("at", clean(&gate.state)),
        ("asked by", clean(&gate.requested_by)),
        ("opened", time(gate.create_time.as_ref())),
        ("round ends", time(gate.round_end_time.as_ref())),
        ("closed", time(gate.end_time.as_ref())),
    ])
}

/// Who was written to about a gate that addresses nobody.
fn told(gate: &v1::Gate) -> String {
    let addressed = matches!(gate.kind(), v1::GateKind::Approval | v1::GateKind::Task);
    if gate.told.is_empty() && !addressed { "nobody".to_owned() } else { clean(&gate.told.join(", ")) }
}

/// Who knows of a gate by mail, in a column.
pub(super) fn reached(gate: &v1::Gate) -> String {
    let told = gate.approvers.len() + gate.told.len();
    match (gate.unheard, gate.undeliverable.len()) {
        (true, _) => "nobody".to_owned(),
        (false, 0) => told.to_string(),
        (false, lost) => format!("{} of {told}", told.saturating_sub(lost)),
    }
}

/// When those who are asked are reminded.
fn reminded(gate: &v1::Gate) -> String {
    match gate.reminders_left {
        0 => String::new(),
        1 => format!("at {}, once more", time(gate.remind_time.as_ref())),
        left => format!("at {}, {left} times more", time(gate.remind_time.as_ref())),
    }
}

/// How far an approval has come that several must give.
pub(super) fn approvals(gate: &v1::Gate) -> String {
    match gate.approvals_needed {
        0 => String::new(),
        needed => format!("{} of {needed}", gate.votes.len()),
    }
}

/// The same, with who has given one, when, which way and with which words.
fn votes(gate: &v1::Gate) -> String {
    let vote = |vote: &v1::GateVote| {
        let said =
            if vote.comment.is_empty() { String::new() } else { format!(": {}", first_line(&vote.comment)) };
        format!("\n{} at {} ({}){said}", vote.by, time(vote.time.as_ref()), vote.via)
    };
    clean(&format!("{}{}", approvals(gate), gate.votes.iter().map(vote).collect::<String>()))
}

/// What a session waits for of people, in a list of them.
pub(super) fn waited(gate: &v1::OpenGate) -> String {
    if gate.unheard { format!("{} (nobody knows)", asked(gate)) } else { asked(gate).to_owned() }
}

/// What a person is asked about, in a word.
fn asked(gate: &v1::OpenGate) -> &str {
    match gate.kind() {
        v1::GateKind::ToolAsk => &gate.capability,
        v1::GateKind::Approval => "approval",
        v1::GateKind::Task => "task",
        v1::GateKind::Notify | v1::GateKind::Unspecified => "review",
    }
}

/// What a gate is about, in a list of them.
pub(super) fn about(gate: &v1::Gate) -> String {
    let asks = || format!("{} asks {}", gate.state, gate.approvers.join(", "));
    match gate.kind() {
        v1::GateKind::ToolAsk => gate.capability.clone(),
        v1::GateKind::Task => format!("task: {}", asks()),
        v1::GateKind::Approval => format!("approval: {}", asks()),
        v1::GateKind::Notify | v1::GateKind::Unspecified => {
            format!("review of {:?} at {}", gate.answer, gate.state)
        }
    }
}

/// What decides a gate.
pub(super) fn to_decide(name: &str, kind: v1::GateKind) -> String {
    match kind {
        v1::GateKind::Task => format!("switchward decide {} answer --answer 'Five stars'", id(name)),
        v1::GateKind::Notify | v1::GateKind::ToolAsk | v1::GateKind::Approval | v1::GateKind::Unspecified => {
            format!("switchward decide {} approve   (or refuse)", id(name))
        }
    }
}

/// A number of a version, where 0 stands for none.
pub(super) fn number(number: u32) -> String {
    if number == 0 { "none".to_owned() } else { number.to_string() }
}

/// A definition.
pub(super) fn definition(definition: &v1::Definition) -> String {
    card(&[
        ("definition", format!("{STRONG}{}{STRONG:#}", clean(definition_of(&definition.name)))),
        ("format", word(definition.format().as_str_name(), "FORMAT_")),
        ("active", number(definition.active_version)),
        ("latest", number(definition.latest_version)),
        ("created", time(definition.create_time.as_ref())),
        ("changed", time(definition.update_time.as_ref())),
    ])
}

/// A version.
pub(super) fn version(version: &v1::Version) -> String {
    card(&[
        ("definition", format!("{STRONG}{}{STRONG:#}", clean(definition_of(&version.name)))),
        ("version", format!("{}{}", version.number, if version.active { ", active" } else { "" })),
        ("format", word(version.format().as_str_name(), "FORMAT_")),
        ("digest", clean(&version.digest)),
        ("machine", clean(&version.machine_digest)),
        ("by", clean(&version.created_by)),
        ("created", time(version.create_time.as_ref())),
    ])
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

/// A text on one line.
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
        assert_eq!(word("GATE_STATUS_OPEN", "GATE_STATUS_"), "open");
    }

    #[test]
    fn a_budget_tells_what_there_is() {
        let mut of =
            v1::Budget { used_usd: "0".into(), reserved_usd: "0.00".into(), ..v1::Budget::default() };
        assert_eq!(budget(&of), "");
        of.used_tokens = 7;
        of.cap_usd = Some("5".into());
        of.reserved_usd = "0.25".into();
        assert_eq!(budget(&of), "0 of 5 USD used, 0.25 USD held, 7 tokens used");
    }

    #[test]
    fn an_agent_cannot_dress_up_what_a_person_decides_on() {
        let args = "{\"path\":\"a\u{1b}[2K\u{202e}txt\"}".as_bytes().to_vec();
        let shown = gate(&v1::Gate { args: args.into(), ..v1::Gate::default() });
        assert!(shown.contains("{\"path\":\"a\u{fffd}[2K\u{fffd}txt\"}"), "{shown:?}");
    }
}
