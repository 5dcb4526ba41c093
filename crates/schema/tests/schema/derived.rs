//! The schema of what a step may write.

use serde_json::{Value, json};
use switchward_schema::{NEXT_NODE, Schema};

use crate::{broken, sound, stored};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn derived(schema: &Value, writes: &[&str], exits: &[&str]) -> Schema {
    let derived = sound(schema).derive(&names(writes), &names(exits));
    assert_eq!(stored(&derived), derived);
    derived
}

#[test]
fn it_has_the_properties_that_both_have_and_requires_none() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "minProperties": 2,
    });
    let result = derived(&schema, &["a", "c"], &[]);
    assert_eq!(
        result.text(),
        r#"{"additionalProperties":false,"properties":{"a":{"type":"string"}},"type":"object"}"#
    );
    assert_eq!(broken(&result, &json!({})), "");
    assert_eq!(broken(&result, &json!({"a": "x"})), "");
    assert_eq!(broken(&result, &json!({"a": 1})), "/a is an integer, not of type string");
    for undeclared in [json!({"b": 1}), json!({"a": "x", "c": 1}), json!({"_x": 1}), json!({NEXT_NODE: "x"})]
    {
        assert_ne!(broken(&result, &undeclared), "", "{undeclared}");
    }
    assert_ne!(broken(&result, &json!([])), "");
}

#[test]
fn exits_are_a_choice() {
    let result = derived(&json!({}), &[], &["ask", "end"]);
    assert_eq!(broken(&result, &json!({})), "");
    assert_eq!(broken(&result, &json!({NEXT_NODE: "end"})), "");
    assert_ne!(broken(&result, &json!({NEXT_NODE: "other"})), "");
    assert_ne!(broken(&result, &json!({NEXT_NODE: null})), "");
}

#[test]
fn definitions_stay_as_far_as_they_are_needed() {
    let schema = json!({
        "properties": {"a": {"$ref": "#/$defs/one"}, "b": {"$ref": "#/$defs/three"}},
        "$defs": {
            "one": {"items": {"$ref": "#/$defs/two~1x/not"}},
            "two/x": {"not": {"type": "null"}},
            "three": {},
        },
    });
    let result = derived(&schema, &["a"], &[]);
    let definitions = result.value()["$defs"].as_object().unwrap();
    assert_eq!(definitions.keys().collect::<Vec<_>>(), ["one", "two/x"]);
    assert_eq!(broken(&result, &json!({"a": [null]})), "");
    assert_ne!(broken(&result, &json!({"a": [1]})), "");
}

#[test]
fn references_to_other_parts_still_mean_the_same() {
    let cases = [
        json!({"properties": {"a": {"$ref": "#/properties/b"}, "b": {"type": "null"}}}),
        json!({"properties": {"a": {"$ref": "#n"}, "b": {"$anchor": "n", "type": "null"}}}),
        json!({
            "$id": "http://example.com/x",
            "properties": {"a": {"$ref": "x#/$defs/n"}},
            "$defs": {"n": {"type": "null"}},
        }),
        json!({"properties": {"a": {"$id": "n", "$ref": "#/$defs/m", "$defs": {"m": {"type": "null"}}}}}),
    ];
    for schema in cases {
        let result = derived(&schema, &["a"], &["x"]);
        assert_eq!(broken(&result, &json!({"a": null, NEXT_NODE: "x"})), "", "{schema}");
        assert_ne!(broken(&result, &json!({"a": 1})), "", "{schema}");
        assert_ne!(broken(&result, &json!({"b": null})), "", "{schema}");
        assert_ne!(broken(&result, &json!({"a": null, NEXT_NODE: "y"})), "", "{schema}");
    }
}

#[test]
fn a_property_that_holds_the_whole_again_is_checked_by_the_whole() {
    let schema = json!({"properties": {"a/% ü": {"items": {"$ref": "#"}}}, "required": ["a/% ü"]});
    let result = derived(&schema, &["a/% ü"], &[]);
    assert_eq!(broken(&result, &json!({"a/% ü": [{"a/% ü": []}]})), "");
    assert_eq!(broken(&result, &json!({"a/% ü": [{}]})), "/a~1% ü/0 lacks `a/% ü`");
}

#[test]
fn exits_beyond_all_limits_leave_a_schema_that_nothing_fits() {
    let exits: Vec<String> = (0..50_000).map(|number| format!("exit {number}")).collect();
    let result = sound(&json!({})).derive(&[], &exits);
    assert_eq!(broken(&result, &json!({})), "the value is not allowed");
}

#[test]
fn a_default_is_given_and_checks_nothing() {
    let schema = sound(&json!({"properties": {"a": {"default": 1, "type": "string"}, "b": true}}));
    assert_eq!(schema.default_of("a"), Some(&json!(1)));
    assert_eq!(schema.default_of("b"), None);
    assert_eq!(schema.default_of("c"), None);
    assert_eq!(schema.properties().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(broken(&schema, &json!({})), "");
    assert_eq!(sound(&json!(true)).properties().count(), 0);
}
