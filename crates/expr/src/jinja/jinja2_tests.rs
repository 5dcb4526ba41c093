//! What Jinja2's own test suite renders, rendered here: the same text, or a listed difference.
//!
//! `crates/expr/tests/fixtures/jinja2-calls.json` was recorded by `crates/expr/tests/record_jinja2.py` with Jinja2 3.1.6
//! from its own tests, and from those of 2.11.3 and 2.10.3 that were dropped since; they are under the BSD-3-Clause licence
//! beside it. `crates/expr/tests/fixtures/differences.tsv` names each call that cannot be made here or gives another text,
//! with the reason. `BLESS=1` adds missing calls there, with a `?` to be replaced by a reason.

#![expect(clippy::disallowed_methods, reason = "the test reads fixtures")]

use std::collections::{BTreeMap, BTreeSet};

use minijinja::value::{Serde, Value as Made};
use serde_json::Value;

use super::{Escape, JinjaLimits, run};
use crate::Fuel;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/");
const LIMITS: JinjaLimits = JinjaLimits { fuel: 1_000_000, depth: 100, bytes: 1024 * 1024 };
/// Calls that must give Jinja2's text: distinct ones, each of a template with something to render in it.
const EQUAL_MIN: usize = 400;

/// The identity of a call: its source, its context and its settings. `None` if the source is plain text.
fn identity(call: &Value) -> Option<[String; 3]> {
    let source = call["source"].as_str().unwrap();
    let renders = ["{{", "{%", "{#"].iter().any(|opening| source.contains(opening));
    renders.then(|| [source.to_owned(), call["context"].to_string(), call["options"].to_string()])
}

/// Why this call does not give Jinja2's text here; `None` if it does.
fn differs(call: &Value) -> Option<String> {
    let (source, output) = (call["source"].as_str().unwrap(), call["output"].as_str().unwrap());
    let options = call["options"].as_object().unwrap();
    let escape = if options.contains_key("autoescape") { Escape::Html } else { Escape::None };
    let others: Vec<&str> = options.keys().map(String::as_str).filter(|name| *name != "autoescape").collect();
    if !others.is_empty() || options.get("autoescape").is_some_and(|it| it != true) {
        return Some(format!("settings: {}", options.keys().cloned().collect::<Vec<_>>().join(" ")));
    }
    if call["context"].is_null() {
        return Some("context is not JSON".to_owned());
    }
    // The calls name values at the top level, and not in `gathered_data`.
    match run(source, Made::from(Serde(&call["context"])), escape, &LIMITS, &Fuel::unlimited()) {
        Ok(text) if text == output => None,
        Ok(text) => Some(format!("{text:?} for {output:?}")),
        Err(error) => Some(error.to_string()),
    }
}

#[test]
fn jinja2s_own_tests_give_its_text_or_a_listed_difference() {
    let calls = std::fs::read_to_string(format!("{FIXTURES}jinja2-calls.json")).unwrap();
    let calls: Vec<Value> = serde_json::from_str(&calls).unwrap();
    let path = format!("{FIXTURES}differences.tsv");
    let listed = std::fs::read_to_string(&path).unwrap();
    let mut listed: BTreeMap<String, String> = listed
        .lines()
        .skip(1)
        .map(|line| line.split_once('\t').unwrap())
        .map(|(name, reason)| (name.to_owned(), reason.to_owned()))
        .collect();
    let unexplained = |reason: &String| reason.is_empty() || reason.starts_with('?');
    assert!(!listed.values().any(unexplained), "a listed difference has no reason");
    let (mut equal, mut wrong) = (BTreeSet::new(), Vec::new());
    for call in &calls {
        let name = call["name"].as_str().unwrap();
        match (differs(call), listed.contains_key(name)) {
            (None, false) => equal.extend(identity(call)),
            (None, true) => wrong.push(format!("{name} is listed as different, but renders Jinja2's text")),
            (Some(why), false) => {
                wrong.push(format!("{name}: {why}"));
                listed.insert(name.to_owned(), format!("? {why}").replace(['\n', '\t'], " "));
            }
            (Some(_), true) => {}
        }
    }
    let unknown = listed.keys().filter(|name| !calls.iter().any(|call| call["name"] == name.as_str()));
    wrong.extend(unknown.map(|name| format!("{name} is listed, but is not a call")));
    if std::env::var_os("BLESS").is_some() {
        let rows: String = listed.iter().map(|(name, why)| format!("{name}\t{why}\n")).collect();
        std::fs::write(&path, format!("name\treason\n{rows}")).unwrap();
    }
    let equal = equal.len();
    assert!(wrong.is_empty(), "{equal} are equal, {} are not:\n{}", wrong.len(), wrong.join("\n"));
    assert!(equal >= EQUAL_MIN, "only {equal} distinct calls render Jinja2's text");
}
