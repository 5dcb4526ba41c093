//! The verbs, one per step. Every verb of every format is known here; whether a machine accepts it shows when it is
//! played.

use switchward_formats::{
    Finding, Report,
    codes::MISSING_KEY,
    document::{Key, Node},
    limits::SOURCE_BYTES_MAX,
    quoted,
    shape::{self, Fields, Shape},
};
use switchward_state::delivery::Draft;

use super::fields::{json, keys, needed_text, some_text};
use super::{NOTHING, expect, named, session, values};
use crate::codes::VERB_COUNT;
use crate::limits::LOST_MAX;
use crate::play::gates::GateVerb;
use crate::script::{Authorize, Step, TokenOf, Until, Verb, Work};

/// Verbs about other subjects than gates, and what a step can have beside its verb.
const OTHERS: [&str; 27] = [
    "answer",
    "message",
    "turn",
    "record",
    "signal",
    "retry",
    "switch",
    "tool",
    "authorize",
    "send_email",
    "usage",
    "work",
    "start",
    "email",
    "event",
    "advance",
    "supervise",
    "wait",
    "publish",
    "undelivered",
    "raise",
    "resume",
    "pause",
    "cancel",
    "shutdown",
    "expect",
    "expect_error",
];
const KEYS: [&str; OTHERS.len() + GateVerb::WORDS.len()] = joined();
const STEP: Shape = keys("a step", &KEYS);
const ANSWER: Shape = keys("`answer`", &["state", "answer", "note"]);
const TURN: Shape = keys("`turn`", &["text", "node"]);
const EMPTY: Shape = keys("this verb", &[]);
/// `result` is for readers: the engine is not informed of what a tool returned, only of its success and its cost.
const TOOL: Shape =
    Shape { ignored: &["result"], ..keys("`tool`", &["name", "success", "cost_usd", "tokens", "node"]) };
const AUTHORIZE: Shape = keys("`authorize`", &["capability", "args", "est_cost_usd", "node"]);
const SEND: Shape = keys("`send_email`", &["from", "to", "cc", "bcc", "subject", "text"]);
const USAGE: Shape = keys("`usage`", &["cost_usd", "tokens"]);
const WORK: Shape =
    keys("`work`", &["node", "kind", "result", "error", "next", "confidence", "usage", "lost"]);
const START: Shape = keys("`start`", &["role", "input"]);
const EMAIL: Shape = keys("`email`", &["from", "text", "headers", "authenticated"]);
const EVENT: Shape = keys("`event`", &["key", "data", "state", "token"]);
const TOKEN: Shape = keys("`token`", &["run", "entry", "forged"]);
const ADVANCE: Shape = keys("`advance`", &["to", "by"]);
const SUPERVISE: Shape = keys("`supervise`", &["command", "to", "node", "context", "reason"]);
const WAIT: Shape = keys("`wait`", &["until"]);
const RAISE: Shape = keys("`raise`", &["tokens", "cost_usd"]);
const REASON: Shape = keys("this verb", &["reason"]);

const WORKS: [&str; 11] = [
    "agent",
    "interaction",
    "tool",
    "script",
    "intent",
    "extract",
    "classify",
    "judge",
    "http",
    "delegate",
    "supervisor",
];
const COMMANDS: [&str; 6] =
    ["continue_process", "set_context", "transition_to", "skip_node", "retry_node", "fail_process"];

/// All keys of a step.
const fn joined() -> [&'static str; OTHERS.len() + GateVerb::WORDS.len()] {
    let mut all = [""; OTHERS.len() + GateVerb::WORDS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] =
            if at < GateVerb::WORDS.len() { GateVerb::WORDS[at] } else { OTHERS[at - GateVerb::WORDS.len()] };
        at += 1;
    }
    all
}

/// Reads one step.
pub(super) fn step(index: usize, node: &Node, report: &mut Report) -> Option<Step> {
    Fields::open(node, &STEP, report)?;
    let entries = node.as_map().unwrap_or_default();
    let is_verb =
        |(key, _): &&(Key, Node)| STEP.keys.contains(&key.text.as_str()) && !key.text.starts_with("expect");
    let verbs: Vec<&(Key, Node)> = entries.iter().filter(is_verb).collect();
    let expected = expect::read(node, report);
    let [(key, value)] = verbs.as_slice() else {
        // A misspelt verb is reported as an unknown key, and that is enough.
        if verbs.len() > 1 || entries.iter().all(|(key, _)| key.text.starts_with("expect")) {
            let names: Vec<String> = verbs.iter().map(|(key, _)| quoted(&key.text)).collect();
            let found = if names.is_empty() { "no verb".to_owned() } else { names.join(" and ") };
            let message = format!("a step must have one verb, and this one has {found}");
            report.add(Finding::new(VERB_COUNT, node.span, message));
        }
        return None;
    };
    let value = if value.is_null() { &NOTHING } else { value };
    let verb = verb(&key.text, key, value, report)?;
    Some(Step { index, span: node.span, verb, expected })
}

fn verb(word: &str, key: &Key, value: &Node, report: &mut Report) -> Option<Verb> {
    match word {
        "answer" => answer(value, report),
        "message" => {
            let text = shape::text(value, "`message`", SOURCE_BYTES_MAX, report)?;
            Some(Verb::Message(text.to_owned()))
        }
        "turn" => {
            let fields = Fields::open(value, &TURN, report)?;
            let text = some_text(&fields, "text", report).unwrap_or_default();
            Some(Verb::Turn { text, node: some_text(&fields, "node", report) })
        }
        "record" => record(value, report),
        "switch" => {
            let name = shape::text(value, "`switch`", SOURCE_BYTES_MAX, report)?;
            Some(Verb::Switch(name.to_owned()))
        }
        "event" => event(value, report),
        "email" => email(value, report),
        "signal" => Fields::open(value, &EMPTY, report).map(|_| Verb::Signal),
        "retry" => Fields::open(value, &EMPTY, report).map(|_| Verb::Retry),
        "authorize" => authorize(value, report),
        "send_email" => send(value, report),
        "tool" => tool(value, report),
        "usage" => usage(value, report),
        "work" => work(value, report),
        "start" => {
            let fields = Fields::open(value, &START, report)?;
            Some(Verb::Start(session(&fields, report)))
        }
        "wait" => wait(value, report),
        "publish" => named(value, report).map(Verb::Publish),
        "undelivered" => {
            let to = shape::text(value, "`undelivered`", SOURCE_BYTES_MAX, report)?;
            Some(Verb::Undelivered(to.to_owned()))
        }
        "raise" => raise(value, key, report),
        "resume" => Some(Verb::Resume { reason: reason(value, report)? }),
        "pause" => Some(Verb::Pause { reason: reason(value, report)? }),
        "cancel" => Some(Verb::Cancel { reason: reason(value, report)? }),
        word if GateVerb::WORDS.contains(&word) => GateVerb::read(word, value, report).map(Verb::Gate),
        _ => elsewhere(word, value, report).map(Verb::Elsewhere),
    }
}

fn answer(value: &Node, report: &mut Report) -> Option<Verb> {
    let fields = Fields::open(value, &ANSWER, report)?;
    let state = some_text(&fields, "state", report);
    let note = some_text(&fields, "note", report).unwrap_or_default();
    Some(Verb::Answer { state, answer: needed_text(&fields, "answer", report)?, note })
}

fn record(value: &Node, report: &mut Report) -> Option<Verb> {
    if !values::is_map(value, "`record`", report) {
        return None;
    }
    if let serde_json::Value::Object(values) = json(value) { Some(Verb::Record(values)) } else { None }
}

fn event(value: &Node, report: &mut Report) -> Option<Verb> {
    let fields = Fields::open(value, &EVENT, report)?;
    let key = needed_text(&fields, "key", report);
    let state = some_text(&fields, "state", report);
    let data = fields.optional("data").filter(|node| values::is_map(node, "`data`", report));
    let data = data.map(json).and_then(|data| data.as_object().cloned()).unwrap_or_default();
    let token = fields.optional("token").map(|value| token(value, report));
    Some(Verb::Event { key: key?, data, state, token: token.map_or(Some(None), |token| token.map(Some))? })
}

fn token(value: &Node, report: &mut Report) -> Option<TokenOf> {
    let fields = Fields::open(value, &TOKEN, report)?;
    let mut number = |name: &'static str| {
        let node = fields.optional(name)?;
        let number = shape::integer(node, &format!("`{name}`"), 1..=u64::from(u32::MAX), report)?;
        u32::try_from(number).ok()
    };
    let (run, entry) = (number("run").unwrap_or(1), number("entry").unwrap_or(1));
    let forged = fields.optional("forged").and_then(|node| values::truth(node, "`forged`", report));
    Some(TokenOf { run, entry, forged: forged.unwrap_or(false) })
}

fn email(value: &Node, report: &mut Report) -> Option<Verb> {
    let fields = Fields::open(value, &EMAIL, report)?;
    let (from, text) = (needed_text(&fields, "from", report), needed_text(&fields, "text", report));
    // `authenticated` already stands for what a server derives from the headers.
    fields.optional("headers").filter(|node| values::is_map(node, "`headers`", report));
    let authenticated = fields.optional("authenticated");
    let authenticated =
        authenticated.and_then(|node| values::truth(node, "`authenticated`", report)).unwrap_or(true);
    Some(Verb::Email { from: from?, text: text?, authenticated })
}

fn authorize(value: &Node, report: &mut Report) -> Option<Verb> {
    let fields = Fields::open(value, &AUTHORIZE, report)?;
    let capability = needed_text(&fields, "capability", report);
    let args = fields.optional("args").map(values::json_bytes).unwrap_or_default();
    let estimate = fields.optional("est_cost_usd");
    let estimate = estimate.and_then(|node| values::reported(node, "`est_cost_usd`", report));
    let node = some_text(&fields, "node", report);
    Some(Verb::Authorize(Authorize { capability: capability?, args, estimate, node }))
}

fn send(value: &Node, report: &mut Report) -> Option<Verb> {
    let fields = Fields::open(value, &SEND, report)?;
    let mut list = |name: &'static str| {
        let Some(node) = fields.optional(name) else { return Vec::new() };
        let items = node.as_list().unwrap_or(std::slice::from_ref(node));
        let one = |item: &Node| shape::text(item, &quoted(name), SOURCE_BYTES_MAX, report).map(str::to_owned);
        items.iter().filter_map(one).collect()
    };
    let (to, cc, bcc) = (list("to"), list("cc"), list("bcc"));
    let mut text = |name: &'static str| some_text(&fields, name, report).unwrap_or_default();
    let (from, subject, text) = (text("from"), text("subject"), text("text"));
    Some(Verb::SendEmail(Draft { from, to, cc, bcc, subject, text }))
}

fn tool(value: &Node, report: &mut Report) -> Option<Verb> {
    let fields = Fields::open(value, &TOOL, report)?;
    let name = needed_text(&fields, "name", report);
    let success = fields.optional("success");
    let success = success.and_then(|node| values::truth(node, "`success`", report)).unwrap_or(true);
    let cost = fields.optional("cost_usd");
    let cost = cost.and_then(|node| values::reported(node, "`cost_usd`", report)).unwrap_or_default();
    let tokens = fields.optional("tokens").and_then(|node| values::tokens(node, report));
    let node = some_text(&fields, "node", report);
    Some(Verb::Tool { name: name?, success, cost, tokens: tokens.unwrap_or_default(), node })
}

fn usage(value: &Node, report: &mut Report) -> Option<Verb> {
    let fields = Fields::open(value, &USAGE, report)?;
    let cost = fields.optional("cost_usd");
    let cost = cost.and_then(|node| values::reported(node, "`cost_usd`", report)).unwrap_or_default();
    let tokens = fields.optional("tokens").and_then(|node| values::tokens(node, report));
    Some(Verb::Usage { cost, tokens: tokens.unwrap_or_default() })
}

fn work(value: &Node, report: &mut Report) -> Option<Verb> {
    let fields = Fields::open(value, &WORK, report)?;
    let node = some_text(&fields, "node", report);
    let kind = fields.optional("kind").and_then(|node| shape::word(node, "`kind`", &WORKS, report));
    let kind = WORKS.into_iter().find(|known| kind == Some(*known));
    let error = some_text(&fields, "error", report);
    let result = fields.optional("result").map(json);
    let next = some_text(&fields, "next", report);
    if fields.optional("confidence").is_some() {
        return Some(Verb::Elsewhere("work"));
    }
    let used = fields.optional("usage").and_then(|node| usage(node, report));
    let (cost, tokens) = match used {
        Some(Verb::Usage { cost, tokens }) => (cost, tokens),
        Some(_) | None => Default::default(),
    };
    let lost = fields.optional("lost");
    let ends = lost.is_none() || error.is_some() || result.is_some();
    let lost = lost.and_then(|node| shape::integer(node, "`lost`", 1..=LOST_MAX, report)).unwrap_or_default();
    let came = match (error, result) {
        (Some(error), _) => Err(error),
        (None, result) => Ok(result.unwrap_or_default()),
    };
    Some(Verb::Work(Work { node, kind, lost, ends, came, next, cost, tokens }))
}

fn wait(value: &Node, report: &mut Report) -> Option<Verb> {
    if value.as_map().is_none() {
        return values::duration(value, "`wait`", report).map(Verb::Wait);
    }
    let fields = Fields::open(value, &WAIT, report)?;
    let until = fields.required("until", report).and_then(|node| values::time(node, report));
    until.map(|at| Verb::Wait(Until::At(at)))
}

fn raise(value: &Node, key: &Key, report: &mut Report) -> Option<Verb> {
    let fields = Fields::open(value, &RAISE, report)?;
    let (cost, tokens) = (fields.optional("cost_usd"), fields.optional("tokens"));
    if cost.is_none() && tokens.is_none() {
        let message = "`raise` needs `tokens` or `cost_usd`, the new cap";
        report.add(Finding::new(MISSING_KEY, key.span, message));
        return None;
    }
    let cost = cost.map(|node| shape::money(node, "`cost_usd`", report));
    let tokens = tokens.map(|node| values::tokens(node, report));
    // The outer level says whether the key is there, the inner one whether it could be read.
    Some(Verb::Raise { cost: read_if_there(cost)?, tokens: read_if_there(tokens)? })
}

/// The value of a key that may be absent; `None` if it is present and could not be read.
fn read_if_there<T>(read: Option<Option<T>>) -> Option<Option<T>> {
    match read {
        None => Some(None),
        Some(None) => None,
        Some(Some(value)) => Some(Some(value)),
    }
}

fn reason(value: &Node, report: &mut Report) -> Option<String> {
    let fields = Fields::open(value, &REASON, report)?;
    Some(some_text(&fields, "reason", report).unwrap_or_default())
}

/// The verbs that no machine of this build accepts. Their keys are checked all the same, so that a scenario that can
/// be read today can be read tomorrow.
fn elsewhere(word: &str, value: &Node, report: &mut Report) -> Option<&'static str> {
    let word = STEP.keys.iter().copied().find(|known| *known == word)?;
    let shape = match word {
        "advance" => &ADVANCE,
        "supervise" => &SUPERVISE,
        "shutdown" => &REASON,
        _ => &EMPTY,
    };
    let fields = Fields::open(value, shape, report)?;
    let needed: &[&'static str] = match word {
        "supervise" => &["command"],
        _ => &[],
    };
    for key in needed {
        fields.required(key, report);
    }
    let worded: Option<(&'static str, &[&'static str])> = match word {
        "supervise" => Some(("command", &COMMANDS)),
        _ => None,
    };
    if let Some((key, words)) = worded
        && let Some(node) = fields.optional(key)
    {
        shape::word(node, &quoted(key), words, report);
    }
    Some(word)
}
