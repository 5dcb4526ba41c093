//! The suites of JSON Logic: each file of `tests/logic` is a list of texts, which are headings, and of cases
//! `{"rule", "data", "result"}` or `{"rule", "data", "error"}`. The table in `README.md` there says how many pass.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails if it cannot continue, and it reads the suites"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use switchward_expr::{Fuel, Logic};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/logic");
/// Suites whose every case must pass, with the number of their cases.
const COMPLETE: &[(&str, usize)] = &[("classic.json", 278), ("own.json", 215)];

/// The result of a suite.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    cases: usize,
    passed: usize,
}

/// Every suite by its path below the folder.
fn suites() -> BTreeMap<String, Vec<Value>> {
    let mut suites = BTreeMap::new();
    let mut folders = vec![Path::new(FOLDER).to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "json") {
                let name = path.strip_prefix(FOLDER).unwrap().to_str().unwrap().to_owned();
                suites.insert(name, serde_json::from_slice(&fs::read(path).unwrap()).unwrap());
            }
        }
    }
    suites
}

/// Returns true if two values are the same JSON; `1` is the same as `1.0`.
fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let same =
                |(key, left): (&String, &Value)| right.get(key).is_some_and(|right| is_same(left, right));
            left.len() == right.len() && left.iter().all(same)
        }
        (left, right) => left == right,
    }
}

/// An error is expected of the expression itself or of its evaluation; its kind is not compared.
fn passes(case: &Value) -> bool {
    let data = case.get("data").unwrap_or(&Value::Null);
    let logic = Logic::parse(&case["rule"]).map_err(|error| error.to_string());
    let value =
        logic.and_then(|logic| logic.evaluate(data, &Fuel::unlimited()).map_err(|error| error.to_string()));
    match (value, case.get("result")) {
        (Ok(value), Some(result)) => is_same(&value, result),
        (Err(_), None) => case.get("error").is_some(),
        (Ok(_), None) | (Err(_), Some(_)) => false,
    }
}

fn count(suite: &[Value]) -> (Counts, Vec<&Value>) {
    let cases = suite.iter().filter(|case| case.is_object());
    let (passed, failed): (Vec<&Value>, Vec<&Value>) = cases.partition(|case| passes(case));
    (Counts { cases: passed.len() + failed.len(), passed: passed.len() }, failed)
}

/// The rows of the table, in which the names are code.
fn table() -> BTreeMap<String, Counts> {
    let page = fs::read_to_string(format!("{FOLDER}/README.md")).unwrap();
    let row = |line: &str| {
        let mut cells =
            line.strip_prefix("| `")?.split('|').map(|cell| cell.trim().trim_end_matches('`').to_owned());
        let name = cells.next()?;
        let cases = cells.next()?.parse().ok()?;
        let passed = cells.next()?.parse().ok()?;
        Some((name, Counts { cases, passed }))
    };
    page.lines().filter_map(row).collect()
}

#[test]
fn the_table_has_what_passes() {
    let counted: BTreeMap<String, Counts> =
        suites().iter().map(|(name, suite)| (name.clone(), count(suite).0)).collect();
    let line =
        |(name, counts): (&String, &Counts)| format!("| `{name}` | {} | {} |", counts.cases, counts.passed);
    let lines: Vec<String> = counted.iter().map(line).collect();
    assert_eq!(table(), counted, "the table must have these rows:\n{}", lines.join("\n"));
}

#[test]
fn complete_suites_pass() {
    let suites = suites();
    for (name, cases) in COMPLETE {
        let (counts, failed) = count(&suites[*name]);
        let failed: Vec<String> = failed.iter().map(|case| case.to_string()).collect();
        assert_eq!(failed, [""; 0], "{name}");
        assert_eq!(counts.cases, *cases, "{name}");
    }
}
