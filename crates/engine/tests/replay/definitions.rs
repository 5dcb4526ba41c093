//! Random definitions, as their authors would write them.

use std::sync::Arc;
use switchward_formats::compile_file;
use switchward_machine::{Act, ActIx, ActKind, Digest, Ending, Machine, NoExit, Node, Op, Outcome, Port};

use crate::chance::Chance;

/// Names under which definitions are deployed: few, so that one name gets several versions and its ledgers serve
/// several of them.
pub(crate) const NAMES: [&str; 2] = ["gate", "spender"];

/// What agents call. Every pattern of a rule covers some of them.
pub(crate) const CAPABILITIES: [&str; 5] =
    ["bash", "pay", "mcp:fs:read_file", "mcp:fs:write_file", "resend-email"];

const PATTERNS: [&str; 6] = ["bash", "pay", "mcp:fs:read_file", "mcp:fs:write_file", "mcp:fs:*", "mcp:*"];

/// A definition that was compiled.
#[derive(Debug, Clone)]
pub(crate) struct Compiled {
    pub(crate) name: String,
    pub(crate) source: Vec<u8>,
    pub(crate) digest: Digest,
    pub(crate) machine: Arc<Machine>,
}

/// A definition of this name.
pub(crate) fn random(chance: &mut Chance, name: &str) -> Compiled {
    let source = source(chance, name);
    let compiled = compile_file("definition.json", source.as_bytes(), None);
    let mut definition = compiled.definition.unwrap_or_else(|| panic!("{source}\n{:?}", compiled.findings));
    definition.machine.nodes.iter_mut().for_each(|node| embellish(chance, node));
    Compiled {
        name: name.to_owned(),
        source: source.into_bytes(),
        digest: definition.source,
        machine: Arc::new(definition.machine),
    }
}

/// What a machine can do and no checkpoint process says: operations before the question, a node that ends by itself.
fn embellish(chance: &mut Chance, node: &mut Node) {
    let log = |then| Act { kind: ActKind::Do(vec![Op::Log(format!("at {}", node.name))]), then };
    if chance.once_in(10) {
        node.acts = vec![log(Vec::new())];
        node.exits.clear();
        node.on_no_exit = NoExit::End(Ending::plain(Outcome::Completed));
    } else if chance.once_in(5) && node.acts.len() == 1 {
        node.acts.insert(0, log(vec![(Port::Done, ActIx(1))]));
    }
}

fn source(chance: &mut Chance, name: &str) -> String {
    let states = 1 + chance.below(4);
    let list: Vec<String> = (0..states).map(|at| state(chance, at, states)).collect();
    let initial = chance.below(states);
    let mut fields = vec![
        format!(r#""name": "{name}""#),
        format!(r#""initial": "state-{initial}""#),
        format!(r#""states": {{ {} }}"#, list.join(", ")),
    ];
    if !chance.once_in(4) {
        fields.push(policy(chance));
    }
    if chance.once_in(2) {
        fields.push(format!(r#""session_budget_usd": {}"#, dollars(chance)));
    }
    if chance.once_in(3) {
        let emails = chance.below(3);
        fields.push(format!(
            r#""email_config": {{ "max_emails_per_session": {emails}, "allowed_to": ["*@ours.example"] }}"#
        ));
    }
    format!("{{ {} }}", fields.join(", "))
}

fn state(chance: &mut Chance, at: usize, states: usize) -> String {
    let answers: Vec<String> = (0..1 + chance.below(3)).map(|answer| exit(chance, answer, states)).collect();
    format!(r#""state-{at}": {{ "question": "What now?", "answers": {{ {} }} }}"#, answers.join(", "))
}

fn exit(chance: &mut Chance, answer: usize, states: usize) -> String {
    let next = if chance.once_in(5) { "null".into() } else { format!(r#""state-{}""#, chance.below(states)) };
    let action = match chance.below(8) {
        0 => r#", "action": "warn""#,
        1 => r#", "action": "block""#,
        2 => r#", "action": "complete""#,
        3 | 4 => r#", "action": "notify_human""#,
        _ => "",
    };
    format!(r#""answer-{answer}": {{ "next": {next}{action} }}"#)
}

fn policy(chance: &mut Chance) -> String {
    let allow = rules(chance, true);
    let ask = rules(chance, true);
    let deny = if chance.once_in(4) { rules(chance, false) } else { String::new() };
    format!(r#""policy": {{ "role": "agent", "allow": [{allow}], "ask": [{ask}], "deny": [{deny}] }}"#)
}

/// Rules with different patterns.
fn rules(chance: &mut Chance, limited: bool) -> String {
    let mut patterns = PATTERNS.to_vec();
    let mut all = Vec::new();
    for _ in 0..chance.below(4) {
        let pattern = patterns.swap_remove(chance.below(patterns.len()));
        let mut rule = format!(r#"{{ "capability": "{pattern}""#);
        if limited && chance.once_in(2) {
            let (calls, seconds) = (1 + chance.below(4), chance.pick(&[60, 600, 3_600, 86_400]));
            rule += &format!(r#", "rate_limit": {{ "max_calls": {calls}, "window_seconds": {seconds} }}"#);
        }
        if limited && chance.once_in(3) {
            let period = chance.pick(&["hourly", "daily", "monthly"]);
            rule +=
                &format!(r#", "budget_limit": {{ "max_usd": {}, "period": "{period}" }}"#, dollars(chance));
        }
        all.push(rule + " }");
    }
    all.join(", ")
}

fn dollars(chance: &mut Chance) -> String {
    format!("{}.{:02}", chance.below(3), chance.from(1, 99))
}
