//! Every field of every request that an agent's key may send, with what an agent could gain by it and what prevents that:
//! `agent_fields.tsv`. A new field needs a row, written by somebody who has thought about it.

use prost_reflect::MessageDescriptor;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use switchward_api::PACKAGE;

use crate::roles::allowed;
use crate::rpcs::all;

const COLUMNS: [&str; 5] = ["call", "field", "what an agent could gain", "what prevents it", "test"];

/// The rows by call and field.
fn rows() -> BTreeMap<(String, String), [String; 3]> {
    let mut lines = include_str!("agent_fields.tsv").lines();
    let head: Vec<&str> = lines.next().expect("a head").split('\t').collect();
    assert_eq!(head, COLUMNS);
    let mut rows = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split('\t').map(str::trim).collect();
        let [call, field, gain, prevented, test] = cells[..] else {
            panic!("five cells are expected: {line}")
        };
        assert!(cells.iter().all(|cell| !cell.is_empty()), "no cell may be empty: {line}");
        let before = rows.insert((call.into(), field.into()), [gain.into(), prevented.into(), test.into()]);
        assert!(before.is_none(), "{call}.{field} has two rows");
    }
    rows
}

/// The fields of a message and of our own messages in it; a recursive message is entered once.
fn fields(message: &MessageDescriptor, prefix: &str, within: &mut Vec<String>, found: &mut BTreeSet<String>) {
    within.push(message.full_name().to_owned());
    for field in message.fields() {
        let path = format!("{prefix}{}", field.name());
        if let Some(inner) = field.kind().as_message()
            && inner.package_name() == PACKAGE
            && !field.is_map()
            && !within.contains(&inner.full_name().to_owned())
        {
            fields(inner, &format!("{path}."), within, found);
        }
        found.insert(path);
    }
    within.pop();
}

/// All of a request's fields, of every call that an agent's key may make.
fn sent() -> BTreeSet<(String, String)> {
    let mut sent = BTreeSet::new();
    for rpc in all().into_iter().filter(|rpc| allowed(&rpc.descriptor(), "agent")) {
        let mut found = BTreeSet::new();
        fields(&rpc.descriptor().input(), "", &mut Vec::new(), &mut found);
        sent.extend(found.into_iter().map(|field| (rpc.method.to_owned(), field)));
    }
    sent
}

#[test]
fn every_field_that_an_agent_may_send_has_its_row() {
    let (sent, rows) = (sent(), rows());
    let missing: Vec<_> = sent.iter().filter(|at| !rows.contains_key(at)).collect();
    assert!(
        missing.is_empty(),
        "describe in agent_fields.tsv what an agent could gain by these fields and what prevents it: {missing:?}"
    );
    let gone: Vec<_> = rows.keys().filter(|at| !sent.contains(at)).collect();
    assert!(gone.is_empty(), "no call of an agent has these fields: {gone:?}");
    assert!(sent.contains(&("RecordData".into(), "values".into())) && sent.len() > 100, "{}", sent.len());
}

/// The text of every file of tests below the crates.
fn tests() -> String {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates' folder").to_owned();
    let mut folders: Vec<PathBuf> = ["delivery", "engine", "gateway", "shard", "switchward"]
        .map(|name| crates.join(name).join("tests"))
        .into();
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                text.push_str(&std::fs::read_to_string(path).expect("a text"));
            }
        }
    }
    text
}

#[test]
fn every_row_names_a_test_that_is_there() {
    let (tests, repository) = (tests(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    for ((call, field), [_, _, test]) in rows() {
        let there = if test.contains('/') {
            repository.join(&test).is_file()
        } else {
            tests.contains(&format!("fn {test}("))
        };
        assert!(there, "{call}.{field}: there is no test {test}");
    }
}
