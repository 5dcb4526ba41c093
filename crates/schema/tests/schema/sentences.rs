//! What is said about values that break a schema.

use serde_json::{Value, json};
use switchward_schema::limits::{SHOWN_PATH_BYTES_MAX, SHOWN_VALUE_BYTES_MAX, VIOLATIONS_MAX};

use crate::{broken, sound};

#[track_caller]
fn says(schema: Value, value: Value, expected: &str) {
    assert_eq!(broken(&sound(&schema), &value), expected, "{schema}: {value}");
}

#[test]
fn each_keyword_has_its_sentence() {
    says(json!({"type": "string"}), json!(3), "the value is an integer, not of type string");
    says(
        json!({"type": ["string", "null"]}),
        json!(1.5),
        "the value is a number, not of type null or string",
    );
    says(json!({"enum": ["a", 1]}), json!("b"), "the value is \"b\", and not one of \"a\", 1");
    says(json!({"const": null}), json!([1]), "the value is a list of 1, and not null");
    says(json!({"minimum": 5}), json!(3), "the value is 3, less than 5");
    says(json!({"maximum": 5}), json!(7), "the value is 7, more than 5");
    says(json!({"exclusiveMinimum": 5}), json!(5), "the value is 5, not more than 5");
    says(json!({"exclusiveMaximum": 5}), json!(5), "the value is 5, not less than 5");
    says(json!({"multipleOf": 2}), json!(7), "the value is 7, no multiple of 2");
    says(json!({"minLength": 2}), json!("ü"), "the value is shorter than 2 characters");
    says(json!({"maxLength": 1}), json!("üü"), "the value is longer than 1 characters");
    says(json!({"pattern": "^a$"}), json!("b"), "the value does not match the pattern `^a$`");
    says(json!({"minItems": 1}), json!([]), "the value has fewer than 1 items");
    says(json!({"maxItems": 1}), json!([1, 2]), "the value has more than 1 items");
    says(json!({"uniqueItems": true}), json!([1, 1.0]), "the value has an item twice");
    says(json!({"minProperties": 1}), json!({}), "the value has fewer than 1 properties");
    says(json!({"maxProperties": 0}), json!({"a": 1}), "the value has more than 0 properties");
    says(json!({"required": ["a"]}), json!({}), "the value lacks `a`");
    says(
        json!({"properties": {"b": {}}, "additionalProperties": false}),
        json!({"a": 1}),
        "the value has `a`, which the schema does not declare",
    );
    says(
        json!({"unevaluatedProperties": false}),
        json!({"a": 1}),
        "the value has `a`, which the schema does not declare",
    );
    says(json!(false), json!(1), "the value is not allowed");
    says(json!({"not": {}}), json!(1), "the value fits the schema of `not`");
    says(json!({"anyOf": [false, false]}), json!(1), "the value fits none of the schemas of `anyOf`");
    says(
        json!({"oneOf": [{"type": "string"}, false]}),
        json!(1),
        "the value fits none of the schemas of `oneOf`",
    );
    says(json!({"oneOf": [{}, {}]}), json!(1), "the value fits more than one of the schemas of `oneOf`");
    says(
        json!({"propertyNames": {"maxLength": 1}}),
        json!({"ab": 1}),
        "the value has a name that is not allowed: it is longer than 1 characters",
    );
}

#[test]
fn a_path_names_the_part_that_breaks_its_schema() {
    let schema =
        json!({"properties": {"a/b~c": {"items": {"$ref": "#/$defs/n"}}}, "$defs": {"n": {"type": "null"}}});
    says(schema, json!({"a/b~c": [null, 1]}), "/a~1b~0c/1 is an integer, not of type null");
}

#[test]
fn the_first_violations_are_shown_and_all_are_counted() {
    let schema = sound(&json!({"items": {"type": "string"}}));
    let violations = schema.validate(&json!(vec![0; 500])).unwrap_err();
    assert_eq!((violations.first.len(), violations.total), (VIOLATIONS_MAX, 500));
    assert!(violations.first.is_sorted());
    assert!(violations.to_string().ends_with("; and 490 more"));
}

#[test]
fn the_same_value_has_the_same_sentences() {
    let schema = json!({"additionalProperties": {"type": "string"}, "required": ["x"]});
    let fields: Vec<(String, Value)> = (0..40).map(|number| (format!("k{number}"), json!(number))).collect();
    let one: Value = fields.iter().cloned().collect();
    let other: Value = fields.into_iter().rev().collect();
    let said = broken(&sound(&schema), &one);
    assert_eq!(said, broken(&sound(&schema), &other));
    assert_eq!(said, broken(&sound(&serde_json::from_str(&schema.to_string()).unwrap()), &one));
    assert!(said.contains("and 31 more"), "{said}");
}

#[test]
fn no_sentence_repeats_more_than_the_beginning_of_a_value() {
    let long = "ü".repeat(100_000);
    let schema = sound(&json!({
        "propertyNames": {"maxLength": 5},
        "additionalProperties": {"enum": ["a"]},
        "maxProperties": 0,
    }));
    let violations = schema.validate(&json!({long.clone(): long})).unwrap_err();
    assert_eq!(violations.total, 3);
    for violation in &violations.first {
        assert!(violation.path.len() <= SHOWN_PATH_BYTES_MAX + 3, "{}", violation.path.len());
        assert!(violation.message.len() <= 2 * SHOWN_VALUE_BYTES_MAX + 64, "{}", violation.message);
    }
    let closed = sound(&json!({"additionalProperties": false}));
    let many: Value = (0..10_000).map(|number| (format!("{number:0>200}"), json!(1))).collect();
    assert!(broken(&closed, &many).len() < 2_000);
}
