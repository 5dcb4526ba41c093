//! Every required case of JSON-Schema-Test-Suite for 2020-12, as the Python package jsonschema 4.26.0 ships them:
//! `tests/corpus/schema/suite`. Its licence is MIT, beside it.

use std::path::Path;

use serde_json::{Value, json};
use switchward_schema::{FlawKind, Schema};

use crate::stored;

/// Groups of cases that need something outside of their schema, and why each is refused.
const REFUSED: &[(&str, &str, FlawKind)] = &[
    ("defs", "validate definition against metaschema", FlawKind::Reference),
    ("dynamicRef", "strict-tree schema, guards against misspelled properties", FlawKind::Reference),
    ("dynamicRef", "tests for implementation dynamic anchor and reference link", FlawKind::Reference),
    ("dynamicRef", "$ref and $dynamicAnchor are independent of order - $defs first", FlawKind::Reference),
    ("dynamicRef", "$ref and $dynamicAnchor are independent of order - $ref first", FlawKind::Reference),
    ("dynamicRef", "$ref to $dynamicRef finds detached $dynamicAnchor", FlawKind::Reference),
    ("ref", "remote ref, containing refs itself", FlawKind::Reference),
    ("refRemote", "remote ref", FlawKind::Reference),
    ("refRemote", "fragment within remote ref", FlawKind::Reference),
    ("refRemote", "anchor within remote ref", FlawKind::Reference),
    ("refRemote", "ref within remote ref", FlawKind::Reference),
    ("refRemote", "base URI change", FlawKind::Reference),
    ("refRemote", "base URI change - change folder", FlawKind::Reference),
    ("refRemote", "base URI change - change folder in subschema", FlawKind::Reference),
    ("refRemote", "root ref in remote ref", FlawKind::Reference),
    ("refRemote", "remote ref with ref to defs", FlawKind::Reference),
    ("refRemote", "Location-independent identifier in remote ref", FlawKind::Reference),
    ("refRemote", "retrieved nested refs resolve relative to their URI not $id", FlawKind::Reference),
    ("refRemote", "remote HTTP ref with different $id", FlawKind::Reference),
    ("refRemote", "remote HTTP ref with different URN $id", FlawKind::Reference),
    ("refRemote", "remote HTTP ref with nested absolute ref", FlawKind::Reference),
    ("refRemote", "$ref to $ref finds detached $anchor", FlawKind::Reference),
    (
        "vocabulary",
        "schema that uses custom metaschema with with no validation vocabulary",
        FlawKind::Dialect,
    ),
    ("vocabulary", "ignore unrecognized optional vocabulary", FlawKind::Dialect),
];
/// Groups whose names of properties begin with `_`: they are checked one level deeper, where such names are
/// free.
const RESERVED: &[(&str, &str)] = &[
    ("properties", "properties whose names are Javascript object property names"),
    ("required", "required properties whose names are Javascript object property names"),
];
/// The required cases, so that none is lost.
const CASES: usize = 1_257;

struct Group {
    /// The name of its file.
    keyword: String,
    description: String,
    schema: Value,
    cases: Vec<Value>,
}

impl Group {
    fn name(&self) -> (&str, &str) {
        (&self.keyword, &self.description)
    }
}

#[expect(clippy::disallowed_methods, reason = "a test that reads the corpus")]
fn groups() -> Vec<Group> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/schema/suite");
    let mut all = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let keyword = path.file_stem().unwrap().to_string_lossy().into_owned();
        let groups: Vec<Value> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        all.extend(groups.into_iter().map(|group| Group {
            keyword: keyword.clone(),
            description: group["description"].as_str().unwrap().to_owned(),
            schema: group["schema"].clone(),
            cases: group["tests"].as_array().unwrap().clone(),
        }));
    }
    all
}

/// The cases of a group that a schema, also when it was stored, decides otherwise.
fn failed(schema: &Schema, group: &Group, data: impl Fn(&Value) -> Value) -> Vec<String> {
    let again = stored(schema);
    assert_eq!(&again, schema);
    let mut failed = Vec::new();
    for case in &group.cases {
        for schema in [schema, &again] {
            if schema.validate(&data(&case["data"])).is_ok() != case["valid"].as_bool().unwrap() {
                failed.push(format!("{:?}: {}", group.name(), case["description"]));
            }
        }
    }
    failed
}

#[test]
fn each_required_case_is_decided_as_it_says() {
    let mut wrong = Vec::new();
    let mut cases = 0;
    for group in groups() {
        cases += group.cases.len();
        if REFUSED.iter().any(|(keyword, description, _)| (*keyword, *description) == group.name()) {
            continue;
        }
        let is_inner = RESERVED.contains(&group.name());
        let schema = if is_inner { json!({"items": group.schema}) } else { group.schema.clone() };
        match Schema::new(&schema) {
            Ok(schema) => {
                let data = |data: &Value| if is_inner { json!([data]) } else { data.clone() };
                wrong.extend(failed(&schema, &group, data));
            }
            Err(flaws) => wrong.push(format!("{:?}: {flaws:?}", group.name())),
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(cases, CASES);
}

#[test]
fn what_needs_something_outside_is_refused() {
    let groups = groups();
    for (keyword, description, kind) in REFUSED {
        let group = groups.iter().find(|group| group.name() == (*keyword, *description));
        let group = group.unwrap_or_else(|| panic!("{keyword} has no group {description}"));
        let flaws = Schema::new(&group.schema).err().unwrap_or_else(|| panic!("{description} is sound"));
        assert!(flaws.iter().all(|flaw| flaw.kind == *kind), "{description}: {flaws:?}");
    }
}

#[test]
fn reserved_names_are_reserved_at_the_top_level_alone() {
    for group in groups().iter().filter(|group| RESERVED.contains(&group.name())) {
        let flaws = Schema::new(&group.schema).err().unwrap();
        assert!(flaws.iter().all(|flaw| flaw.kind == FlawKind::Reserved), "{flaws:?}");
    }
}
