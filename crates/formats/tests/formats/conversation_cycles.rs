//! Cycles that no run leaves: of states in one workflow, and of workflows that call each other.

use switchward_formats::{Calls, Compiled, Definition, codes, cycles};

use super::support::{clean, compile_text};

/// A workflow of one state that asks and others that run at once, with these transitions.
fn compiled(transitions: &str) -> Compiled {
    let source = format!(
        "name: p
state_schema: {{x: {{}}}}
states:
  - {{name: ask, type: conversation}}
  - {{name: a, type: logic, operations: []}}
  - {{name: b, type: logic, operations: []}}
  - {{name: held, type: logic, operations: [], require_human_approval: true, approval_contacts: [a@b.c]}}
  - {{name: tries, type: logic, on_error: port, operations: [{{type: transform, config: {{key: x, transform: trim}}}}]}}
  - {{name: tries-again, type: logic, on_error: retry_then_port, retry_policy: {{max_attempts: 2}}, operations: [{{type: transform, config: {{key: x, transform: trim}}}}]}}
  - {{name: waits, type: logic, operations: [{{type: wait, config: {{hours: 1}}}}]}}
  - {{name: branch, type: logic, operations: [{{type: conditional_branch, config: {{conditions: [{{key: x, operator: eq, value: 1, target_state: ask}}]}}}}]}}
transitions:
  - {{from: ask, to: a, guards: [{{type: always}}]}}
{transitions}"
    );
    compile_text("p.yaml", &source)
}

/// The states of the reported cycles.
fn reported(transitions: &[&str]) -> Vec<String> {
    let lines: String = transitions.iter().map(|line| format!("  - {{{line}}}\n")).collect();
    let compiled = compiled(&lines);
    assert!(compiled.definition.is_some(), "{:?}", compiled.findings);
    let loops = compiled.findings.into_iter().filter(|it| it.code == codes::DRAIN_LOOP.id);
    loops.map(|it| it.message.rsplit(": ").next().unwrap_or_default().replace('`', "")).collect()
}

const ALWAYS: &str = "guards: [{type: always}]";
const SOME: &str = "guards: [{type: data_equals, config: {key: x, value: 1}}]";
const OTHER: &str = "guards: [{type: data_equals, config: {key: x, value: 2}}]";
const JUDGED: &str = "guards: [{type: llm_judge, config: {rubric: Is it over?}}]";

#[test]
fn a_cycle_is_reported_if_every_transition_leads_on() {
    let back = format!("from: b, to: a, {ALWAYS}");
    assert_eq!(reported(&[&format!("from: a, to: b, {ALWAYS}"), &back]), ["a, b, a"]);
    assert_eq!(
        reported(&[&format!("from: a, to: b, {SOME}"), &format!("from: a, to: b, {ALWAYS}"), &back]),
        ["a, b, a"]
    );
    assert_eq!(
        reported(&[&format!("from: a, to: a, {SOME}"), &format!("from: a, to: b, {ALWAYS}"), &back]),
        ["a, b, a"]
    );
    // A transition after the one that always fires is never tried.
    assert_eq!(
        reported(&[&format!("from: a, to: b, {ALWAYS}"), &format!("from: a, to: ask, {SOME}"), &back]),
        ["a, b, a"]
    );
}

#[test]
fn several_cycles_are_reported_once_each() {
    let lines =
        ["from: a, to: a", "from: b, to: tries", "from: tries, to: b", "from: tries, port: error, to: b"];
    assert_eq!(reported(&lines), ["a, a", "b, tries, b"]);
}

#[test]
fn none_is_reported_if_a_transition_leads_out_or_the_run_may_rest() {
    let back = format!("from: b, to: a, {ALWAYS}");
    for ways in [
        // A guard that may hold leads out.
        vec![format!("from: a, to: ask, {SOME}"), format!("from: a, to: b, {ALWAYS}")],
        // All of the guards may fail, and it stays.
        vec![format!("from: a, to: b, {SOME}")],
        vec![format!("from: a, to: b, {SOME}"), format!("from: a, to: b, {OTHER}")],
        // Somebody is asked, and may take time to answer.
        vec![format!("from: a, to: b, {JUDGED}"), format!("from: a, to: b, {ALWAYS}")],
        vec![format!("from: a, to: held, {ALWAYS}"), format!("from: held, to: a, {ALWAYS}")],
        vec![format!("from: a, to: waits, {ALWAYS}"), format!("from: waits, to: a, {ALWAYS}")],
        // A branch leads out.
        vec![format!("from: a, to: branch, {ALWAYS}"), format!("from: branch, to: a, {ALWAYS}")],
        // What fails leads out, or is tried again after a while.
        vec![
            format!("from: a, to: tries, {ALWAYS}"),
            format!("from: tries, to: a, {ALWAYS}"),
            "from: tries, port: error, to: ask".to_owned(),
        ],
        vec![
            format!("from: a, to: tries-again, {ALWAYS}"),
            format!("from: tries-again, to: a, {ALWAYS}"),
            "from: tries-again, port: error, to: a".to_owned(),
        ],
        // It is the end.
        vec![],
    ] {
        let lines: Vec<&str> = ways.iter().map(String::as_str).chain([back.as_str()]).collect();
        assert_eq!(reported(&lines), Vec::<String>::new(), "{lines:?}");
    }
}

/// A workflow that calls others.
fn calling(name: &str, others: &[&str]) -> Definition {
    let states: String = others
        .iter()
        .map(|other| format!("  - {{name: to-{other}, type: subworkflow, workflow: {other}}}\n"))
        .collect();
    let ways: String = others
        .iter()
        .map(|other| format!("  - {{from: ask, to: to-{other}, guards: [{{type: data_equals, config: {{key: to, value: {other}}}}}]}}\n"))
        .collect();
    clean(&format!(
        "name: {name}\nstate_schema: {{to: {{}}}}\nstates:\n  - {{name: ask, type: conversation}}\n{states}transitions:\n{ways}  - {{from: ask, to: ask, guards: [{{type: user_confirmed}}]}}\n"
    ))
}

/// The index and the names of each reported cycle.
fn closed(definitions: &[(&str, &[&str])]) -> Vec<(usize, String)> {
    let known: Vec<Definition> = definitions.iter().map(|(name, others)| calling(name, others)).collect();
    let calls: Vec<Calls<'_>> =
        known.iter().map(|it| Calls { file: "p.yaml", name: &it.name, calls: &it.calls }).collect();
    let found = cycles(&calls).into_iter();
    found
        .map(|(at, it)| {
            assert_eq!(it.code, codes::CALL_CYCLE.id);
            (at, it.message.replace("this call closes a cycle: ", "").replace('`', ""))
        })
        .collect()
}

#[test]
fn a_cycle_of_calls_is_reported_where_it_closes() {
    let cycle = [("a", &["b"][..]), ("b", &["c"]), ("c", &["a"])];
    assert_eq!(closed(&cycle), [(2, "a calls b calls c calls a".to_owned())]);
    // In another order it closes elsewhere; a definition that only leads to it is not part of it.
    let other = [("x", &["c"][..]), ("c", &["a"]), ("b", &["c"]), ("a", &["b", "d"]), ("d", &[])];
    assert_eq!(closed(&other), [(2, "c calls a calls b calls c".to_owned())]);
}

#[test]
fn two_cycles_are_two_findings() {
    let both = [("a", &["b", "c"][..]), ("b", &["a"]), ("c", &["a"])];
    assert_eq!(closed(&both), [(1, "a calls b calls a".to_owned()), (2, "a calls c calls a".to_owned())]);
}

#[test]
fn what_is_no_cycle_is_not_reported() {
    let none: [(usize, String); 0] = [];
    assert_eq!(closed(&[("a", &["b", "c"]), ("b", &["d"]), ("c", &["d"]), ("d", &[])]), none);
    // Nobody knows what the missing one calls.
    assert_eq!(closed(&[("a", &["b"]), ("c", &["a"])]), none);
    // Which of two is meant is not known, unless both call on.
    assert_eq!(closed(&[("a", &["b"]), ("b", &["a"]), ("b", &[])]), none);
    let twice = closed(&[("a", &["b"]), ("b", &["a"]), ("b", &["c", "a"])]);
    assert_eq!(twice.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_long_chain_of_calls_is_followed_to_its_end() {
    let names: Vec<String> = (0..5_000).map(|at| format!("w{at}")).collect();
    let others: Vec<Vec<&str>> =
        (0..names.len()).map(|at| vec![names[(at + 1) % names.len()].as_str()]).collect();
    let call = |name: &str| switchward_formats::Call {
        name: name.to_owned(),
        span: switchward_formats::document::Span { line: 1, column: 1, width: 1 },
    };
    let lists: Vec<Vec<switchward_formats::Call>> =
        others.iter().map(|others| others.iter().map(|name| call(name)).collect()).collect();
    let calls: Vec<Calls<'_>> =
        names.iter().zip(&lists).map(|(name, calls)| Calls { file: "p.yaml", name, calls }).collect();
    let found = cycles(&calls);
    assert_eq!(found.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [4_999]);
    assert!(found[0].1.message.starts_with("this call closes a cycle: `w0` calls `w1` calls "));
}
