//! Random conversation workflows, as their authors would write them.

use serde_json::{Map, Value, json};
use switchward_expr::{CmpOp, Transform};
use switchward_testkit::Rng;

/// Keys of the data, each with its reducer and type; the last two have none of their own.
const KEYS: [(&str, &str, &str); 9] = [
    ("title", "overwrite", "any"),
    ("notes", "append", "list"),
    ("tags", "unique_append", "list"),
    ("prefs", "merge_dict", "dict"),
    ("count", "increment", "number"),
    ("flag", "overwrite", "boolean"),
    ("list", "overwrite", "list"),
    ("free", "", ""),
    ("other", "", ""),
];
pub(crate) const TOOLS: [&str; 3] = ["lookup", "search", "send"];
pub(crate) const SAID: [&str; 6] = ["yes", "no thanks", "ok, do it", "not sure", "aye", "what?"];
/// Kinds of states, each with its weight.
const KINDS: [(&str, u32); 10] = [
    ("conversation", 3),
    ("action", 2),
    ("logic", 4),
    ("output", 2),
    ("wait", 3),
    ("deterministic", 4),
    ("parse", 5),
    ("approval", 3),
    ("task", 3),
    ("delegate", 2),
];
/// The same of the first state: mostly one that waits, as everything else is over before anybody has written.
const FIRST_KINDS: [(&str, u32); 6] =
    [("conversation", 5), ("approval", 3), ("logic", 1), ("deterministic", 1), ("wait", 1), ("parse", 1)];
/// Kinds of guards, each with its weight.
const GUARDS: [(&str, u32); 13] = [
    ("always", 1),
    ("all_required_answered", 2),
    ("tool_called", 3),
    ("data_contains", 4),
    ("data_equals", 4),
    ("data_greater_than", 6),
    ("data_less_than", 5),
    ("data_in_list", 3),
    ("user_confirmed", 5),
    ("external_event", 2),
    ("llm_judge", 4),
    ("all_tasks_complete", 1),
    ("composite", 3),
];
/// Kinds of operations, each with its weight.
const OPERATIONS: [(&str, u32); 7] = [
    ("set_data", 1),
    ("transform", 1),
    ("send_notification", 1),
    ("conditional_branch", 1),
    ("http_request", 2),
    ("wait", 1),
    ("loop", 1),
];
/// Keys of events.
pub(crate) const EVENTS: [&str; 1] = ["paid"];
/// People who may be recipients and may answer.
pub(crate) const PEOPLE: [&str; 4] =
    ["lead@example.com", "sam@example.com", "head@example.com", "b@example.com"];
/// The texts that they may write.
pub(crate) const REPLIES: [&str; 6] =
    ["Approve", "yes, thanks\nbut hurry", "no", "What is it for?", "not now\n> yes", "> yes"];
/// Keys that often hold numbers.
const NUMBERS: [&str; 3] = ["count", "free", "other"];
/// The workflows of a family: each may call those after it.
pub(crate) const FAMILY: [&str; 3] = ["random", "child", "grandchild"];
/// The maximum number of states of a workflow.
const STATES_MAX: usize = 7;

/// A value that may be recorded under any key.
pub(crate) fn value(rng: &mut Rng) -> Value {
    match rng.below(13) {
        0 | 9 => json!(rng.between(0, 20)),
        1 => json!("7.5"),
        2 => json!(["a", "b", rng.between(0, 3)]),
        3 => json!({ "k": rng.between(0, 3), "deep": { "x": [1, 2] } }),
        4 | 10 | 11 => json!(rng.once_in(2)),
        5 => json!("  Some text "),
        6 => json!(-3),
        7 => Value::Null,
        _ => json!("a,b,c"),
    }
}

pub(crate) fn key(rng: &mut Rng) -> &'static str {
    rng.pick(&KEYS).0
}

fn name(at: usize) -> String {
    format!("s{at}")
}

/// Workflows that compile, each of which may call those after it; mostly only one.
pub(crate) fn family(rng: &mut Rng) -> Vec<Value> {
    let count = if rng.once_in(4) { FAMILY.len() } else { 1 };
    let names = &FAMILY[..count];
    names.iter().enumerate().map(|(at, name)| workflow(rng, name, &names[at + 1..])).collect()
}

/// A workflow of this name that may call others.
fn workflow(rng: &mut Rng, called: &str, callees: &[&str]) -> Value {
    let child = called != FAMILY[0];
    let count = if child { 1 + rng.below(3) } else { 2 + rng.below(STATES_MAX - 1) };
    let mut states = Vec::new();
    let mut transitions = Vec::new();
    // A wait for a reply makes sense after a mail.
    let mut asked = false;
    for at in 0..count {
        // A state that continues by itself is over before anybody has written.
        let kind = match at {
            _ if asked => "reply",
            _ if !callees.is_empty() && rng.below(3) > 0 => "subworkflow",
            0 if rng.below(8) > 0 => *rng.weighted(&FIRST_KINDS),
            _ => *rng.weighted(&KINDS),
        };
        asked = ["output", "wait"].contains(&kind) && at + 1 < count && rng.below(4) > 0;
        let kind = if asked { "output" } else { kind };
        let mut state = match kind {
            _ if asked => mail(at),
            "subworkflow" => call(rng, at, callees),
            kind => state(rng, kind, at, count),
        };
        let error = boundary(rng, kind, &mut state);
        if asked {
            transitions.push(json!({ "from": name(at), "port": "done", "to": name(at + 1) }));
        } else if !child || at + 1 < count {
            edges(rng, &state, kind, at, count, &mut transitions);
        }
        if error && rng.below(4) > 0 {
            transitions.push(json!({ "from": name(at), "port": "error", "to": name(rng.below(count)) }));
        }
        states.push(state);
    }
    let schema = KEYS.iter().filter(|(_, reducer, _)| !reducer.is_empty());
    let schema: Map<String, Value> = schema
        .map(|(key, reducer, of)| ((*key).to_owned(), json!({ "type": of, "reducer": reducer })))
        .collect();
    let mut workflow = json!({
        "name": called, "state_schema": schema, "states": states, "transitions": transitions,
    });
    if rng.once_in(3) {
        workflow["global_tools"] = json!([TOOLS[0]]);
    }
    workflow
}

fn state(rng: &mut Rng, kind: &str, at: usize, count: usize) -> Value {
    let mut state = match kind {
        "conversation" | "action" => json!({
            "type": kind,
            "instructions": "Ask {gathered.title} about {gathered_data.prefs.deep.x}",
            "required_fields": [key(rng)],
        }),
        "logic" => json!({ "type": "logic", "operations": operations(rng, 3, count) }),
        "deterministic" => json!({
            "type": "action",
            "execution_mode": "deterministic",
            "operations": operations(rng, 2, count),
        }),
        "output" => output(rng),
        "parse" => json!({
            "type": "parse",
            "fields": [
                { "name": "free", "type": "number", "required": rng.once_in(3) },
                { "name": "title", "type": "string", "description": "A title", "required": rng.once_in(3) },
                { "name": "tags", "type": "list" },
            ],
            "source": rng.pick(&["last_user_message", "gathered_data.title", "gathered_data.title"]),
        }),
        "approval" => approval(rng),
        "task" => task(rng),
        "delegate" => json!({
            "type": "delegate", "assistant": "helper", "instructions": "See to {gathered.title}.",
        }),
        "reply" => reply(rng),
        _ => {
            let on = *rng.pick(&["timer", "webhook"]);
            json!({ "type": "wait", "wait_for": on, "timeout_hours": 0.01 * (1.0 + rng.below(200) as f64) })
        }
    };
    state["name"] = json!(name(at));
    if rng.once_in(3) {
        state["retry"] = json!({ "max_attempts": rng.between(1, 3), "backoff_seconds": 5 });
    }
    if rng.once_in(5) && kind == "conversation" {
        state["tools"] = json!([TOOLS[1]]);
    }
    if rng.once_in(6) {
        state["require_human_approval"] = json!(true);
        let other = if rng.once_in(8) { "{gathered_data.title}" } else { "conversation_contact" };
        state["approval_contacts"] = json!([PEOPLE[0], other]);
    }
    state
}

/// A state that calls another workflow. Its result does not always fit.
fn call(rng: &mut Rng, at: usize, callees: &[&str]) -> Value {
    let mut state = json!({ "name": name(at), "type": "subworkflow", "workflow": rng.pick(callees) });
    if rng.below(4) > 0 {
        state["input_mapping"] = json!({ "title": "title", "list": "list", "count": "prefs.k" });
        state["output_mapping"] = json!({ "notes": "title", "free": "free", "other": "flag" });
    }
    if rng.once_in(4) {
        state["output_mapping"] = json!({ "count": "free", "tags": "list" });
    }
    if rng.once_in(6) {
        state["require_human_approval"] = json!(true);
        state["approval_contacts"] = json!([PEOPLE[0]]);
    }
    state
}

fn output(rng: &mut Rng) -> Value {
    let template =
        "Hello {{ gathered_data.title }}{% for note in gathered_data.notes %} {{ note }}{% endfor %}";
    match rng.below(3) {
        0 => json!({ "type": "output", "template": template, "target": "conversation" }),
        1 => json!({
            "type": "output", "template": template, "target": "email", "subject_template": "On {{ gathered_data.title }}",
            "recipients": ["a@example.com", "{gathered_data.tags}", "conversation_contact"],
            "content_type": rng.pick(&["text", "html", "markdown"]),
        }),
        _ => json!({
            "type": "output", "template": template, "target": "webhook",
            "recipients": [rng.pick(&["https://example.com/hook", "{gathered_data.title}"])],
        }),
    }
}

fn approval(rng: &mut Rng) -> Value {
    let nobody = rng.once_in(40);
    let approvers =
        if nobody { json!(["{gathered_data.gone}"]) } else { json!([PEOPLE[0], "conversation_contact"]) };
    let mut state = json!({ "type": "approval", "approvers": approvers });
    if rng.once_in(2) {
        let (subject, body) = ("On {{ gathered_data.title }}", "{{ gathered_data.count }}?");
        state["request_template"] = json!({ "subject_template": subject, "body_template": body });
    }
    if rng.once_in(2) {
        state["classification_hints"] = json!({ "approved": "aye, fine", "discussion": "fine" });
    }
    if rng.below(3) > 0 {
        let contacts = json!([PEOPLE[2], "conversation_contact"]);
        state["escalation"] = json!({
            "timeout_hours": 0.5, "escalation_contacts": contacts, "max_escalations": rng.below(3),
        });
    }
    state
}

/// A task; rarely without participants, or with a value that is no list of people.
fn task(rng: &mut Rng) -> Value {
    let people = match rng.below(4) {
        0 => json!([PEOPLE[0], PEOPLE[3], PEOPLE[0].to_uppercase()]),
        1 => json!([PEOPLE[0], PEOPLE[1], "conversation_contact", "{gathered_data.gone}"]),
        _ => json!([PEOPLE[0]]),
    };
    let mut template = json!({ "participants": people, "instructions": "Rate {gathered_data.title}." });
    if rng.once_in(6) {
        let from = *rng.pick(&["gathered.gone", "gathered_data.tags", "gathered.title", "gathered.list"]);
        template = json!({ "participants_from": from, "instructions": "Rate us." });
    }
    json!({ "type": "task", "task_template": template })
}

/// An output state that writes to an address that may answer.
fn mail(at: usize) -> Value {
    json!({
        "name": name(at), "type": "output", "template": "Do you want it?", "target": "email",
        "recipients": [PEOPLE[0], PEOPLE[3], "conversation_contact"],
    })
}

fn reply(rng: &mut Rng) -> Value {
    let mut state = json!({ "type": "wait", "wait_for": "email_reply", "timeout_hours": 30 });
    if rng.below(6) > 0 {
        let (ports, hints) = (["keen", "gone"], json!({ "keen": "yes, approve", "gone": "no, what" }));
        state["classify"] =
            json!({ "enabled": true, "classification_ports": ports, "classification_hints": hints });
    }
    state
}

/// Adds error handling; returns true if the state has an error port.
fn boundary(rng: &mut Rng, kind: &str, state: &mut Value) -> bool {
    match rng.below(5) {
        0 => {
            state["on_error"] = json!("port");
            true
        }
        1 => {
            state["on_error"] = json!("retry_then_port");
            let backoff = *rng.pick(&[0, 30, 30, 30, 30]);
            state["retry_policy"] = json!({ "max_attempts": rng.between(2, 3), "backoff_seconds": backoff });
            true
        }
        // An approval has no success that an error could be mistaken for.
        2 if kind != "approval" => {
            state["on_error"] = json!("ignore");
            false
        }
        _ => false,
    }
}

fn edges(rng: &mut Rng, state: &Value, kind: &str, at: usize, count: usize, transitions: &mut Vec<Value>) {
    let operates = ["logic", "deterministic"].contains(&kind);
    let forward = operates || ["output", "parse", "subworkflow"].contains(&kind);
    if forward && at + 1 == count && rng.below(12) > 0 {
        // It could only lead back.
        return;
    }
    let mut edge = |rng: &mut Rng, port: Option<&str>, guards: Vec<Value>| {
        // States that run through rarely lead back, or most of them would run in cycles.
        let from = if forward && rng.below(12) > 0 { (at + 1).min(count - 1) } else { 0 };
        let mut edge = json!({ "from": name(at), "to": name(from + rng.below(count - from)) });
        match port {
            Some(port) => edge["port"] = json!(port),
            None => edge["guards"] = json!(guards),
        }
        transitions.push(edge);
    };
    match kind {
        "output" if rng.below(4) > 0 => edge(rng, Some("done"), Vec::new()),
        "wait" | "approval" | "reply" | "parse" => {
            for port in ports(state, kind) {
                if rng.below(4) > 0 {
                    edge(rng, Some(port), Vec::new());
                }
            }
        }
        "output" => {}
        _ => {
            // Rarely there is no exit: such a state ends the run.
            let ways = if rng.once_in(6) { 0 } else { 1 + rng.below(3) };
            for _ in 0..ways {
                let guards = (0..1 + usize::from(rng.once_in(4))).map(|_| guard(rng, 2)).collect();
                edge(rng, None, guards);
            }
            if operates && ways > 0 && rng.below(4) > 0 {
                edge(rng, None, vec![json!({ "type": "always" })]);
            }
        }
    }
}

/// The ports of a state that waits for people.
fn ports(state: &Value, kind: &str) -> &'static [&'static str] {
    match kind {
        "approval" => &["approved", "rejected", "discussion", "timeout"],
        "parse" => &["complete", "incomplete"],
        "reply" if state["classify"].is_object() => &["keen", "gone", "timeout"],
        _ => &["received", "timeout"],
    }
}

fn guard(rng: &mut Rng, depth: usize) -> Value {
    // The last kind holds others.
    let kinds = if depth == 0 { &GUARDS[..GUARDS.len() - 1] } else { &GUARDS };
    let of = *rng.weighted(kinds);
    let config = match of {
        "always" | "all_tasks_complete" => json!({}),
        "all_required_answered" => json!({ "keys": [key(rng)] }),
        "tool_called" => json!({ "tool_name": rng.pick(&TOOLS), "require_success": rng.once_in(2) }),
        "data_contains" => json!({ "key": key(rng), "pattern": "[a-c7]" }),
        "data_equals" => json!({ "key": rng.pick(&["flag", "free"]), "value": rng.once_in(2) }),
        "data_greater_than" => json!({ "key": rng.pick(&NUMBERS), "value": rng.between(0, 3) }),
        "data_less_than" => json!({ "key": rng.pick(&NUMBERS), "value": rng.between(0, 6) }),
        "data_in_list" => {
            json!({ "key": rng.pick(&["flag", "free", "other"]), "values": ["7.5", 3, true, false, 7] })
        }
        "external_event" => json!({ "event_key": rng.pick(&EVENTS) }),
        "llm_judge" => json!({ "rubric": rng.pick(&["It is polite.", "It is short."]) }),
        "user_confirmed" => {
            if rng.once_in(2) {
                json!({})
            } else {
                json!({ "patterns": ["aye"] })
            }
        }
        _ => {
            let guards: Vec<Value> = (0..2).map(|_| guard(rng, depth - 1)).collect();
            json!({ "operator": rng.pick(&["and", "or"]), "guards": guards })
        }
    };
    json!({ "type": of, "config": config })
}

fn operations(rng: &mut Rng, depth: usize, count: usize) -> Vec<Value> {
    (0..1 + rng.below(3)).map(|_| operation(rng, depth, count)).collect()
}

fn operation(rng: &mut Rng, depth: usize, count: usize) -> Value {
    // The last two kinds are not for the innermost list.
    let kinds = if depth == 0 { &OPERATIONS[..OPERATIONS.len() - 2] } else { &OPERATIONS };
    let of = *rng.weighted(kinds);
    let config = match of {
        "set_data" => set_data(rng),
        "transform" => transform(rng),
        "send_notification" => {
            let channel = *rng.pick(&["chat", "email"]);
            let mut config = json!({ "channel": channel, "body": "On {gathered_data.title}" });
            if channel == "email" {
                config["recipients"] = json!(["conversation_contact", "b@example.com"]);
                config["subject"] = json!("News");
            }
            config
        }
        "conditional_branch" => {
            let operator = rng.pick(&CmpOp::ALL).word();
            let case = json!({
                "key": key(rng), "operator": operator, "value": operand(rng, operator),
                "target_state": name(rng.below(count)),
            });
            json!({ "conditions": [case] })
        }
        "http_request" => {
            let mut config = json!({ "method": "POST", "url": "https://example.com/{gathered_data.title}" });
            config["body"] = json!({ "count": "{gathered_data.count}" });
            if rng.once_in(2) {
                config["into"] = json!(rng.pick(&["other", "count"]));
            }
            config
        }
        "wait" => json!({ "hours": 0.25 }),
        _ => {
            let operations = operations(rng, depth - 1, count);
            json!({ "over": "list", "as": format!("item{depth}"), "operations": operations })
        }
    };
    json!({ "type": of, "config": config })
}

/// Mostly a value that fits its key.
fn set_data(rng: &mut Rng) -> Value {
    let key = if rng.once_in(3) { key(rng) } else { *rng.pick(&["title", "free", "other"]) };
    let value =
        if rng.once_in(2) { value(rng) } else { json!("{gathered_data.count} of {gathered_data.item2}") };
    json!({ "key": key, "value": value })
}

/// Mostly of a value that can be transformed so, if the session was started with one.
fn transform(rng: &mut Rng) -> Value {
    let transform = *rng.pick(&Transform::WORDS);
    let fits = match transform {
        "join" => "list",
        "round" | "to_number" => "count",
        _ => "title",
    };
    let key = if rng.once_in(3) { key(rng) } else { fits };
    let mut config = json!({ "key": key, "transform": transform });
    if rng.below(3) > 0 {
        config["into"] = json!("other");
    }
    config
}

/// A right operand that an operator accepts.
fn operand(rng: &mut Rng, operator: &str) -> Value {
    match operator {
        "matches" => json!("[a-c]"),
        "in" | "not_in" => json!(["a", 7, "7.5"]),
        "eq" | "neq" | "contains" => value(rng),
        _ => json!(rng.between(0, 9)),
    }
}
