//! Random definitions, like those of real authors.

use std::sync::Arc;
use switchward_formats::compile_file;
use switchward_machine::{Act, ActIx, ActKind, Digest, Ending, Machine, NoExit, Node, Op, Outcome, Port};

use crate::Rng;

/// Names under which definitions are deployed: few, so that one name gets several versions and its ledgers serve
/// several of them.
pub const NAMES: [&str; 2] = ["gate", "spender"];

/// The capabilities that agents call. Every pattern of a rule covers some of them.
pub const CAPABILITIES: [&str; 5] = ["bash", "pay", "mcp:fs:read_file", "mcp:fs:write_file", "resend-email"];

const PATTERNS: [&str; 6] = ["bash", "pay", "mcp:fs:read_file", "mcp:fs:write_file", "mcp:fs:*", "mcp:*"];

/// A compiled definition.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// Its name.
    pub name: String,
    /// Its file, as the author wrote it.
    pub source: Vec<u8>,
    /// The digest of the source.
    pub digest: Digest,
    /// The result of the compilation.
    pub machine: Arc<Machine>,
}

/// Draws a checkpoint process of this name.
#[must_use]
pub fn random(rng: &mut Rng, name: &str) -> Compiled {
    let source = source(rng, name);
    let compiled = compile_file("definition.json", source.as_bytes(), None);
    let mut definition = compiled.definition.unwrap_or_else(|| panic!("{source}\n{:?}", compiled.findings));
    definition.machine.nodes.iter_mut().for_each(|node| embellish(rng, node));
    Compiled {
        name: name.to_owned(),
        source: source.into_bytes(),
        digest: definition.source,
        machine: Arc::new(definition.machine),
    }
}

/// Features of machines that no checkpoint process has: operations before the question, a node that ends by itself.
fn embellish(rng: &mut Rng, node: &mut Node) {
    let log = |then| Act { kind: ActKind::Do(vec![Op::Log(format!("at {}", node.name))]), then };
    if rng.once_in(10) {
        node.acts = vec![log(Vec::new())];
        node.exits.clear();
        node.on_no_exit = NoExit::End(Ending::plain(Outcome::Completed));
    } else if rng.once_in(5) && node.acts.len() == 1 {
        node.acts.insert(0, log(vec![(Port::Done, ActIx(1))]));
    }
}

fn source(rng: &mut Rng, name: &str) -> String {
    let states = 1 + rng.below(4);
    let list: Vec<String> = (0..states).map(|at| state(rng, at, states)).collect();
    let initial = rng.below(states);
    let mut fields = vec![
        format!(r#""name": "{name}""#),
        format!(r#""initial": "state-{initial}""#),
        format!(r#""states": {{ {} }}"#, list.join(", ")),
    ];
    if !rng.once_in(4) {
        fields.push(policy(rng));
    }
    if rng.once_in(2) {
        fields.push(format!(r#""session_budget_usd": {}"#, dollars(rng)));
    }
    if rng.once_in(3) {
        let emails = rng.below(3);
        fields.push(format!(
            r#""email_config": {{ "max_emails_per_session": {emails}, "allowed_to": ["*@ours.example"] }}"#
        ));
    }
    format!("{{ {} }}", fields.join(", "))
}

fn state(rng: &mut Rng, at: usize, states: usize) -> String {
    let answers: Vec<String> = (0..1 + rng.below(3)).map(|answer| exit(rng, answer, states)).collect();
    format!(r#""state-{at}": {{ "question": "What now?", "answers": {{ {} }} }}"#, answers.join(", "))
}

fn exit(rng: &mut Rng, answer: usize, states: usize) -> String {
    let next = if rng.once_in(5) { "null".into() } else { format!(r#""state-{}""#, rng.below(states)) };
    let action = match rng.below(8) {
        0 => r#", "action": "warn""#,
        1 => r#", "action": "block""#,
        2 => r#", "action": "complete""#,
        3 | 4 => r#", "action": "notify_human""#,
        _ => "",
    };
    format!(r#""answer-{answer}": {{ "next": {next}{action} }}"#)
}

fn policy(rng: &mut Rng) -> String {
    let allow = rules(rng, true);
    let ask = rules(rng, true);
    let deny = if rng.once_in(4) { rules(rng, false) } else { String::new() };
    format!(r#""policy": {{ "role": "agent", "allow": [{allow}], "ask": [{ask}], "deny": [{deny}] }}"#)
}

/// Rules with different patterns.
fn rules(rng: &mut Rng, limited: bool) -> String {
    let mut patterns = PATTERNS.to_vec();
    let mut all = Vec::new();
    for _ in 0..rng.below(4) {
        let pattern = patterns.swap_remove(rng.below(patterns.len()));
        let mut rule = format!(r#"{{ "capability": "{pattern}""#);
        if limited && rng.once_in(2) {
            let (calls, seconds) = (1 + rng.below(4), rng.pick(&[60, 600, 3_600, 86_400]));
            rule += &format!(r#", "rate_limit": {{ "max_calls": {calls}, "window_seconds": {seconds} }}"#);
        }
        if limited && rng.once_in(3) {
            let period = rng.pick(&["hourly", "daily", "monthly"]);
            rule += &format!(r#", "budget_limit": {{ "max_usd": {}, "period": "{period}" }}"#, dollars(rng));
        }
        all.push(rule + " }");
    }
    all.join(", ")
}

fn dollars(rng: &mut Rng) -> String {
    format!("{}.{:02}", rng.below(3), rng.between(1, 99))
}
