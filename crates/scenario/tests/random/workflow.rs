//! Random conversation workflows, as their authors would write them.

use serde_json::{Map, Value, json};

use crate::chance::Chance;

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
const TRANSFORMS: [&str; 8] =
    ["uppercase", "lowercase", "trim", "split", "join", "round", "to_number", "to_string"];
const OPERATORS: [&str; 10] = ["eq", "neq", "gt", "gte", "lt", "lte", "in", "not_in", "contains", "matches"];
const KINDS: [&str; 22] = [
    "conversation",
    "conversation",
    "conversation",
    "action",
    "action",
    "logic",
    "output",
    "wait",
    "wait",
    "deterministic",
    "parse",
    "parse",
    "parse",
    "parse",
    "approval",
    "approval",
    "approval",
    "task",
    "task",
    "task",
    "delegate",
    "delegate",
];
/// Keys of events.
pub(crate) const EVENTS: [&str; 1] = ["paid"];
/// Who may be asked, and may answer.
pub(crate) const PEOPLE: [&str; 4] =
    ["lead@example.com", "sam@example.com", "head@example.com", "b@example.com"];
/// What they may write.
pub(crate) const REPLIES: [&str; 6] =
    ["Approve", "yes, thanks\nbut hurry", "no", "What is it for?", "not now\n> yes", "> yes"];
/// Keys that often hold numbers.
const NUMBERS: [&str; 3] = ["count", "free", "other"];
/// The workflows of a family: each may call those after it.
pub(crate) const FAMILY: [&str; 3] = ["random", "child", "grandchild"];
/// States of a workflow at most.
const STATES_MAX: usize = 7;

/// A value that may be recorded under any key.
pub(crate) fn value(chance: &mut Chance) -> Value {
    match chance.below(13) {
        0 | 9 => json!(chance.from(0, 20)),
        1 => json!("7.5"),
        2 => json!(["a", "b", chance.from(0, 3)]),
        3 => json!({ "k": chance.from(0, 3), "deep": { "x": [1, 2] } }),
        4 | 10 | 11 => json!(chance.once_in(2)),
        5 => json!("  Some text "),
        6 => json!(-3),
        7 => Value::Null,
        _ => json!("a,b,c"),
    }
}

pub(crate) fn key(chance: &mut Chance) -> &'static str {
    chance.pick(&KEYS).0
}

fn name(at: usize) -> String {
    format!("s{at}")
}

/// Workflows that compile, each of which may call those after it; mostly one alone.
pub(crate) fn family(chance: &mut Chance) -> Vec<Value> {
    let count = if chance.once_in(4) { FAMILY.len() } else { 1 };
    let names = &FAMILY[..count];
    names.iter().enumerate().map(|(at, name)| workflow(chance, name, &names[at + 1..])).collect()
}

/// A workflow of this name that may call others.
fn workflow(chance: &mut Chance, called: &str, callees: &[&str]) -> Value {
    let child = called != FAMILY[0];
    let count = if child { 1 + chance.below(3) } else { 2 + chance.below(STATES_MAX - 1) };
    let mut states = Vec::new();
    let mut transitions = Vec::new();
    // A wait for a reply makes sense behind a mail.
    let mut asked = false;
    for at in 0..count {
        // What begins by itself is over before anybody has said a word.
        let kind = match at {
            _ if asked => "reply",
            _ if !callees.is_empty() && chance.below(3) > 0 => "subworkflow",
            0 if chance.below(8) > 0 => *chance.pick(&["conversation", "conversation", "approval"]),
            _ => *chance.pick(&KINDS),
        };
        asked = ["output", "wait"].contains(&kind) && at + 1 < count && chance.below(4) > 1;
        let kind = if asked { "output" } else { kind };
        let mut state = match kind {
            _ if asked => mail(at),
            "subworkflow" => call(chance, at, callees),
            kind => state(chance, kind, at, count),
        };
        let error = boundary(chance, kind, &mut state);
        if asked {
            transitions.push(json!({ "from": name(at), "port": "done", "to": name(at + 1) }));
        } else if !child || at + 1 < count {
            edges(chance, &state, kind, at, count, &mut transitions);
        }
        if error && chance.below(4) > 0 {
            transitions.push(json!({ "from": name(at), "port": "error", "to": name(chance.below(count)) }));
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
    if chance.once_in(3) {
        workflow["global_tools"] = json!([TOOLS[0]]);
    }
    workflow
}

fn state(chance: &mut Chance, kind: &str, at: usize, count: usize) -> Value {
    let mut state = match kind {
        "conversation" | "action" => json!({
            "type": kind,
            "instructions": "Ask {gathered.title} about {gathered_data.prefs.deep.x}",
            "required_fields": [key(chance)],
        }),
        "logic" => json!({ "type": "logic", "operations": operations(chance, 3, count) }),
        "deterministic" => json!({
            "type": "action",
            "execution_mode": "deterministic",
            "operations": operations(chance, 2, count),
        }),
        "output" => output(chance),
        "parse" => json!({
            "type": "parse",
            "fields": [
                { "name": "free", "type": "number", "required": chance.once_in(3) },
                { "name": "title", "type": "string", "description": "A title", "required": chance.once_in(3) },
                { "name": "tags", "type": "list" },
            ],
            "source": chance.pick(&["last_user_message", "gathered_data.title", "gathered_data.title"]),
        }),
        "approval" => approval(chance),
        "task" => task(chance),
        "delegate" => json!({
            "type": "delegate", "assistant": "helper", "instructions": "See to {gathered.title}.",
        }),
        "reply" => reply(chance),
        _ => {
            let on = *chance.pick(&["timer", "webhook"]);
            json!({ "type": "wait", "wait_for": on, "timeout_hours": 0.01 * (1.0 + chance.below(200) as f64) })
        }
    };
    state["name"] = json!(name(at));
    if chance.once_in(3) {
        state["retry"] = json!({ "max_attempts": chance.from(1, 3), "backoff_seconds": 5 });
    }
    if chance.once_in(5) && kind == "conversation" {
        state["tools"] = json!([TOOLS[1]]);
    }
    if chance.once_in(6) {
        state["require_human_approval"] = json!(true);
        let other = if chance.once_in(8) { "{gathered_data.title}" } else { "conversation_contact" };
        state["approval_contacts"] = json!([PEOPLE[0], other]);
    }
    state
}

/// A state that calls another workflow. What comes back does not always fit.
fn call(chance: &mut Chance, at: usize, callees: &[&str]) -> Value {
    let mut state = json!({ "name": name(at), "type": "subworkflow", "workflow": chance.pick(callees) });
    if chance.below(4) > 0 {
        state["input_mapping"] = json!({ "title": "title", "list": "list", "count": "prefs.k" });
        state["output_mapping"] = json!({ "notes": "title", "free": "free", "other": "flag" });
    }
    if chance.once_in(4) {
        state["output_mapping"] = json!({ "count": "free", "tags": "list" });
    }
    if chance.once_in(6) {
        state["require_human_approval"] = json!(true);
        state["approval_contacts"] = json!([PEOPLE[0]]);
    }
    state
}

fn output(chance: &mut Chance) -> Value {
    let template =
        "Hello {{ gathered_data.title }}{% for note in gathered_data.notes %} {{ note }}{% endfor %}";
    match chance.below(3) {
        0 => json!({ "type": "output", "template": template, "target": "conversation" }),
        1 => json!({
            "type": "output", "template": template, "target": "email", "subject_template": "On {{ gathered_data.title }}",
            "recipients": ["a@example.com", "{gathered_data.tags}", "conversation_contact"],
            "content_type": chance.pick(&["text", "html", "markdown"]),
        }),
        _ => json!({
            "type": "output", "template": template, "target": "webhook",
            "recipients": [chance.pick(&["https://example.com/hook", "{gathered_data.title}"])],
        }),
    }
}

fn approval(chance: &mut Chance) -> Value {
    let nobody = chance.once_in(40);
    let approvers =
        if nobody { json!(["{gathered_data.gone}"]) } else { json!([PEOPLE[0], "conversation_contact"]) };
    let mut state = json!({ "type": "approval", "approvers": approvers });
    if chance.once_in(2) {
        let (subject, body) = ("On {{ gathered_data.title }}", "{{ gathered_data.count }}?");
        state["request_template"] = json!({ "subject_template": subject, "body_template": body });
    }
    if chance.once_in(2) {
        state["classification_hints"] = json!({ "approved": "aye, fine", "discussion": "fine" });
    }
    if chance.below(3) > 0 {
        let contacts = json!([PEOPLE[2], "conversation_contact"]);
        state["escalation"] = json!({
            "timeout_hours": 0.5, "escalation_contacts": contacts, "max_escalations": chance.below(3),
        });
    }
    state
}

/// A task; seldom one of nobody, or of what is no list of people.
fn task(chance: &mut Chance) -> Value {
    let people = match chance.below(4) {
        0 => json!([PEOPLE[0], PEOPLE[3], PEOPLE[0].to_uppercase()]),
        1 => json!([PEOPLE[0], PEOPLE[1], "conversation_contact", "{gathered_data.gone}"]),
        _ => json!([PEOPLE[0]]),
    };
    let mut template = json!({ "participants": people, "instructions": "Rate {gathered_data.title}." });
    if chance.once_in(6) {
        let from = *chance.pick(&["gathered.gone", "gathered_data.tags", "gathered.title", "gathered.list"]);
        template = json!({ "participants_from": from, "instructions": "Rate us." });
    }
    json!({ "type": "task", "task_template": template })
}

/// An output state that writes to somebody who may answer.
fn mail(at: usize) -> Value {
    json!({
        "name": name(at), "type": "output", "template": "Do you want it?", "target": "email",
        "recipients": [PEOPLE[0], PEOPLE[3], "conversation_contact"],
    })
}

fn reply(chance: &mut Chance) -> Value {
    let mut state = json!({ "type": "wait", "wait_for": "email_reply", "timeout_hours": 30 });
    if chance.below(6) > 0 {
        let (ports, hints) = (["keen", "gone"], json!({ "keen": "yes, approve", "gone": "no, what" }));
        state["classify"] =
            json!({ "enabled": true, "classification_ports": ports, "classification_hints": hints });
    }
    state
}

/// What happens to errors; whether the state has the port for them.
fn boundary(chance: &mut Chance, kind: &str, state: &mut Value) -> bool {
    match chance.below(5) {
        0 => {
            state["on_error"] = json!("port");
            true
        }
        1 => {
            state["on_error"] = json!("retry_then_port");
            let backoff = *chance.pick(&[0, 30, 30, 30, 30]);
            state["retry_policy"] = json!({ "max_attempts": chance.from(2, 3), "backoff_seconds": backoff });
            true
        }
        // An approval has no success that an error could be taken for.
        2 if kind != "approval" => {
            state["on_error"] = json!("ignore");
            false
        }
        _ => false,
    }
}

fn edges(
    chance: &mut Chance,
    state: &Value,
    kind: &str,
    at: usize,
    count: usize,
    transitions: &mut Vec<Value>,
) {
    let forward = ["logic", "output", "deterministic", "parse", "subworkflow"].contains(&kind);
    let mut edge = |chance: &mut Chance, port: Option<&str>, guards: Vec<Value>| {
        // States that run through seldom lead back, or most of them would go round in circles.
        let from = if forward && chance.below(12) > 0 { (at + 1).min(count - 1) } else { 0 };
        let mut edge = json!({ "from": name(at), "to": name(from + chance.below(count - from)) });
        match port {
            Some(port) => edge["port"] = json!(port),
            None => edge["guards"] = json!(guards),
        }
        transitions.push(edge);
    };
    match kind {
        "output" if chance.below(4) > 0 => edge(chance, Some("done"), Vec::new()),
        "wait" | "approval" | "reply" | "parse" => {
            for port in ports(state, kind) {
                if chance.below(4) > 0 {
                    edge(chance, Some(port), Vec::new());
                }
            }
        }
        "output" => {}
        _ => {
            // Seldom is there no way on: such a state ends the run.
            let ways = if chance.once_in(6) { 0 } else { 1 + chance.below(3) };
            for _ in 0..ways {
                let guards = (0..1 + chance.below(2)).map(|_| guard(chance, 2)).collect();
                edge(chance, None, guards);
            }
        }
    }
}

/// The ports of a state that waits for somebody.
fn ports(state: &Value, kind: &str) -> &'static [&'static str] {
    match kind {
        "approval" => &["approved", "rejected", "discussion", "timeout"],
        "parse" => &["complete", "incomplete"],
        "reply" if state["classify"].is_object() => &["keen", "gone", "timeout"],
        _ => &["received", "timeout"],
    }
}

fn guard(chance: &mut Chance, depth: usize) -> Value {
    let kinds = if depth == 0 { 17 } else { 18 };
    let (of, config) = match chance.below(kinds) {
        16 => ("all_tasks_complete", json!({})),
        0 => ("always", json!({})),
        1 => ("all_required_answered", json!({ "keys": [key(chance)] })),
        2 | 12 => {
            ("tool_called", json!({ "tool_name": chance.pick(&TOOLS), "require_success": chance.once_in(2) }))
        }
        3 | 15 => ("data_contains", json!({ "key": key(chance), "pattern": "[a-c7]" })),
        4 => ("data_equals", json!({ "key": chance.pick(&["flag", "free"]), "value": chance.once_in(2) })),
        5 | 9 => ("data_greater_than", json!({ "key": chance.pick(&NUMBERS), "value": chance.from(0, 6) })),
        6 | 14 => ("data_less_than", json!({ "key": chance.pick(&NUMBERS), "value": chance.from(0, 6) })),
        7 => (
            "data_in_list",
            json!({ "key": chance.pick(&["flag", "free", "other"]), "values": ["7.5", 3, true, false, 7] }),
        ),
        10 => ("external_event", json!({ "event_key": chance.pick(&EVENTS) })),
        11 | 13 => ("llm_judge", json!({ "rubric": chance.pick(&["It is polite.", "It is short."]) })),
        8 => ("user_confirmed", if chance.once_in(2) { json!({}) } else { json!({ "patterns": ["aye"] }) }),
        _ => {
            let guards: Vec<Value> = (0..2).map(|_| guard(chance, depth - 1)).collect();
            ("composite", json!({ "operator": chance.pick(&["and", "or"]), "guards": guards }))
        }
    };
    json!({ "type": of, "config": config })
}

fn operations(chance: &mut Chance, depth: usize, count: usize) -> Vec<Value> {
    (0..1 + chance.below(3)).map(|_| operation(chance, depth, count)).collect()
}

fn operation(chance: &mut Chance, depth: usize, count: usize) -> Value {
    let kinds = if depth == 0 { 5 } else { 8 };
    let (of, config) = match chance.below(kinds) {
        0 => {
            let written = if chance.once_in(2) {
                value(chance)
            } else {
                json!("{gathered_data.count} of {gathered_data.item2}")
            };
            ("set_data", json!({ "key": key(chance), "value": written }))
        }
        1 => {
            let mut config = json!({ "key": key(chance), "transform": chance.pick(&TRANSFORMS) });
            if chance.once_in(2) {
                config["into"] = json!("other");
            }
            ("transform", config)
        }
        2 => {
            let channel = *chance.pick(&["chat", "email"]);
            let mut config = json!({ "channel": channel, "body": "On {gathered_data.title}" });
            if channel == "email" {
                config["recipients"] = json!(["conversation_contact", "b@example.com"]);
                config["subject"] = json!("News");
            }
            ("send_notification", config)
        }
        3 => {
            let operator = *chance.pick(&OPERATORS);
            let case = json!({
                "key": key(chance), "operator": operator, "value": operand(chance, operator),
                "target_state": name(chance.below(count)),
            });
            ("conditional_branch", json!({ "conditions": [case] }))
        }
        4 => {
            let mut config = json!({ "method": "POST", "url": "https://example.com/{gathered_data.title}" });
            config["body"] = json!({ "count": "{gathered_data.count}" });
            if chance.once_in(2) {
                config["into"] = json!(chance.pick(&["other", "count"]));
            }
            ("http_request", config)
        }
        5 | 6 => ("wait", json!({ "hours": 0.25 })),
        _ => (
            "loop",
            json!({ "over": "list", "as": format!("item{depth}"), "operations": operations(chance, depth - 1, count) }),
        ),
    };
    json!({ "type": of, "config": config })
}

/// A right side that an operator can be asked with.
fn operand(chance: &mut Chance, operator: &str) -> Value {
    match operator {
        "matches" => json!("[a-c]"),
        "in" | "not_in" => json!(["a", 7, "7.5"]),
        "eq" | "neq" | "contains" => value(chance),
        _ => json!(chance.from(0, 9)),
    }
}
