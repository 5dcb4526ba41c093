//! Schemas that are broken, or that take time, memory or a way out: each is refused where it is, or ends
//! within its limits.

use serde_json::{Map, Value, json};
use switchward_schema::limits::{
    FLAWS_MAX, PATTERNS_MAX, REFERENCES_MAX, SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SCHEMA_STORED_BYTES_MAX,
    SUBSCHEMAS_MAX, VALUE_DEPTH_MAX,
};
use switchward_schema::{FlawKind, Schema};

use crate::{broken, flaws, located, sound};

#[track_caller]
fn refused(schema: Value, pointer: &str, kind: FlawKind) {
    assert_eq!(located(&schema), [(pointer.to_owned(), kind)], "{schema}");
}

/// Definitions by number, and the first as the whole schema.
fn defined(count: usize, definition: impl Fn(String) -> Value) -> Value {
    let definitions: Map<String, Value> = (0..count)
        .map(|number| (format!("d{number}"), definition(format!("#/$defs/d{}", number + 1))))
        .chain([(format!("d{count}"), json!({"type": "null"}))])
        .collect();
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!("x"), |inner, _| json!([inner]))
}

#[test]
fn a_flaw_is_found_where_it_is() {
    refused(json!({"type": "text"}), "/type", FlawKind::Keyword);
    refused(
        json!({"properties": {"a/b": {"minLength": -1}}}),
        "/properties/a~1b/minLength",
        FlawKind::Keyword,
    );
    refused(json!({"allOf": [{}, 3]}), "/allOf/1", FlawKind::Keyword);
    refused(json!({"items": [{}]}), "/items", FlawKind::Keyword);
    refused(json!({"additionalItems": false}), "/additionalItems", FlawKind::Keyword);
    refused(json!([]), "", FlawKind::Keyword);
    refused(json!({"$schema": "http://json-schema.org/draft-07/schema#"}), "/$schema", FlawKind::Dialect);
    refused(json!({"properties": {"_a": {}}}), "/properties/_a", FlawKind::Reserved);
    refused(json!({"required": ["a", "_a"]}), "/required/1", FlawKind::Reserved);
    refused(json!({"properties": {"a": {"pattern": "("}}}), "/properties/a/pattern", FlawKind::Pattern);
    refused(json!({"patternProperties": {"a(?=b)": {}}}), "/patternProperties/a(?=b)", FlawKind::Pattern);
    refused(json!({"$id": "a#b"}), "/$id", FlawKind::Reference);
    refused(json!({"$anchor": "a b"}), "/$anchor", FlawKind::Reference);
}

#[test]
fn all_flaws_are_found_in_order() {
    let found = located(&json!({"type": 1, "properties": {"a": {"$ref": "#/x"}, "_b": true}}));
    let pointers: Vec<&str> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(pointers, ["/properties/_b", "/properties/a/$ref", "/type"]);
    let many: Map<String, Value> = (0..200).map(|number| (format!("p{number}"), json!(1))).collect();
    assert_eq!(flaws(&json!({"properties": many})).len(), FLAWS_MAX);
}

#[test]
fn a_schema_beside_the_dialect_is_sound() {
    sound(
        &json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "x-note": [1], "format": "date"}),
    );
    sound(&json!({"properties": {"a": {"properties": {"_b": {}}, "required": ["_b"]}}}));
}

#[test]
fn formats_and_contents_check_nothing() {
    let schema = sound(&json!({
        "format": "email", "contentEncoding": "base64", "contentMediaType": "application/json",
    }));
    assert_eq!(broken(&schema, &json!("no mail, no base64")), "");
}

#[test]
fn references_that_lead_out_or_nowhere_are_refused() {
    for reference in [
        "http://127.0.0.1:1/x.json",
        "https://json-schema.org/draft/2020-12/schema",
        "file:///etc/passwd",
        "other.json",
        "//host/x",
        "#/$defs/none",
        "#none",
    ] {
        for keyword in ["$ref", "$dynamicRef"] {
            let pointer = format!("/items/{keyword}");
            refused(json!({"items": {keyword: reference}}), &pointer, FlawKind::Reference);
        }
    }
}

#[test]
fn references_that_only_lead_back_are_refused() {
    refused(json!({"$ref": "#"}), "/$ref", FlawKind::Reference);
    refused(json!({"allOf": [{"not": {"$ref": "#"}}]}), "/allOf/0/not/$ref", FlawKind::Reference);
    let circular = json!({
        "properties": {"a": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}},
    });
    let pointers = ["/$defs/a/$ref", "/$defs/b/anyOf/0/$ref"].map(|it| (it.to_owned(), FlawKind::Reference));
    assert_eq!(located(&circular), pointers);
}

#[test]
fn a_tree_may_hold_itself() {
    let schema = sound(&json!({
        "properties": {"value": {"type": "integer"}, "children": {"items": {"$ref": "#"}}},
        "required": ["value"],
        "unevaluatedProperties": false,
    }));
    let tree = |depth: usize| {
        (0..depth).fold(json!({"value": 0}), |inner, _| json!({"value": 1, "children": [inner]}))
    };
    assert_eq!(broken(&schema, &tree(50)), "");
    assert_eq!(broken(&schema, &json!({"value": 1, "children": [{}]})), "/children/0 lacks `value`");
    assert_eq!(broken(&schema, &tree(VALUE_DEPTH_MAX)), "the value nests deeper than can be checked");
}

#[test]
fn size_depth_and_numbers_are_bounded() {
    refused(json!({"description": "x".repeat(SCHEMA_BYTES_MAX)}), "", FlawKind::Limit);
    let deep = (0..=SCHEMA_DEPTH_MAX).fold(json!({}), |inner, _| json!({"not": inner}));
    refused(deep, "", FlawKind::Limit);
    refused(json!({"allOf": vec![json!({}); SUBSCHEMAS_MAX]}), "", FlawKind::Limit);
    sound(&json!({"allOf": vec![json!({}); SUBSCHEMAS_MAX - 1]}));
    let references = json!({
        "$defs": {"a": {}},
        "allOf": vec![json!({"$ref": "#/$defs/a"}); REFERENCES_MAX + 1],
    });
    refused(references, "", FlawKind::Limit);
    refused(json!({"anyOf": vec![json!({"pattern": "a"}); PATTERNS_MAX + 1]}), "", FlawKind::Limit);
    refused(defined(300, |next| json!({"$ref": next})), "", FlawKind::Limit);
}

#[test]
fn a_chain_within_its_limit_is_followed() {
    let schema = sound(&defined(100, |next| json!({"$ref": next})));
    assert_eq!(broken(&schema, &json!(null)), "");
    assert_eq!(broken(&schema, &json!(1)), "the value is an integer, not of type null");
}

#[test]
fn work_that_doubles_at_each_step_is_refused_before_it_begins() {
    let too_much = "the value takes more steps to check than are allowed";
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let schema = sound(&defined(60, |next| json!({keyword: [{"$ref": next}, {"$ref": next}]})));
        assert_eq!(broken(&schema, &json!(1)), too_much, "{keyword}");
    }
    let doubled = json!({
        "$ref": "#/$defs/n",
        "$defs": {"n": {"anyOf": [
            {"items": {"$ref": "#/$defs/n"}, "minItems": 2},
            {"items": {"$ref": "#/$defs/n"}, "minItems": 2},
        ]}},
    });
    let schema = sound(&doubled);
    assert_eq!(broken(&schema, &nested(40)), too_much);
    assert_eq!(broken(&schema, &nested(2)), "the value fits none of the schemas of `anyOf`");
}

#[test]
fn marks_within_marks_are_counted() {
    let inner = (0..20).fold(json!({"unevaluatedProperties": {"type": "null"}}), |inner, _| {
        json!({"anyOf": [inner.clone(), {"$comment": "x"}], "unevaluatedProperties": {"type": "null"}})
    });
    let schema = sound(&inner);
    let many: Value = (0..2_000).map(|number| (format!("k{number}"), json!(null))).collect();
    let said = broken(&schema, &many);
    assert!(said.is_empty() || said == "the value takes more steps to check than are allowed", "{said}");
}

#[test]
fn patterns_run_in_linear_time() {
    let schema = sound(&json!({"pattern": "^(a+)+$"}));
    let text = format!("{}!", "a".repeat(50_000));
    assert_eq!(broken(&schema, &json!(text)), "the value does not match the pattern `^(a+)+$`");
    for pattern in ["(?=a)", "(?<!a)", r"(a)\1", "(?>a)", "a++", "(a{1000}){1000}", "[", "a{2,1}"] {
        refused(json!({"pattern": pattern}), "/pattern", FlawKind::Pattern);
        let pointer = format!("/patternProperties/{pattern}");
        refused(json!({"patternProperties": {pattern: {}}}), &pointer, FlawKind::Pattern);
    }
    let costly = sound(&json!({"items": {"pattern": "^([a-z0-9]{1,20}-){1,4}x$"}}));
    let texts = json!(vec!["a-".repeat(10_000); 100]);
    assert_eq!(broken(&costly, &texts), "the value takes more steps to check than are allowed");
}

#[test]
fn a_large_value_ends() {
    let schema = sound(&json!({"uniqueItems": true, "items": {"type": "integer"}}));
    let numbers: Vec<usize> = (0..100_000).collect();
    assert_eq!(broken(&schema, &json!(numbers)), "");
    let twice: Vec<usize> = (0..20_000).chain([7]).collect();
    assert_eq!(broken(&schema, &json!(twice)), "the value has an item twice");
    let wrong = json!(vec!["x"; 100_000]);
    assert_eq!(broken(&schema, &wrong), "the value breaks the schema, and is too large to say where");
}

#[test]
fn numbers_of_any_size_are_compared() {
    let schema = sound(&json!({"multipleOf": 1e-300, "maximum": 1e308}));
    for number in [json!(1e308), json!(-1e308), json!(u64::MAX), json!(5e-324), json!(0)] {
        drop(schema.validate(&number));
    }
    assert!(broken(&sound(&json!({"maximum": 1e308})), &json!(1.5e308)).contains("more than 1e"));
}

#[test]
fn a_stored_schema_is_its_canonical_text() {
    let decoded = |text: &str| minicbor::decode::<Schema>(&minicbor::to_vec(text).unwrap()).is_ok();
    assert!(decoded(r#"{"maximum":1,"minimum":0}"#));
    assert!(decoded("true"));
    for text in [
        r#"{"minimum":0,"maximum":1}"#,
        r#"{"maximum":1,"maximum":2}"#,
        r#"{"maximum": 1}"#,
        r#"{"maximum":1e400}"#,
        r#"{"type":"text"}"#,
        r#"{"$ref":"http://example.com/"}"#,
        "{",
        "",
        "3",
    ] {
        assert!(!decoded(text), "{text}");
    }
    assert!(!decoded(&format!("{{\"x\":\"{}\"}}", "x".repeat(SCHEMA_STORED_BYTES_MAX))));
    assert!(!decoded(&"[".repeat(10_000)));
    assert!(minicbor::decode::<Schema>(&[0x01]).is_err());
}

#[test]
fn a_stored_schema_that_the_library_refuses_fits_nothing() {
    let bytes = minicbor::to_vec(r#"{"pattern":"("}"#).unwrap();
    let schema: Schema = minicbor::decode(&bytes).unwrap();
    let expected = "the value cannot be checked, because its schema cannot be compiled";
    assert_eq!(broken(&schema, &json!("x")), expected);
}

#[test]
fn schemas_are_equal_by_what_they_say() {
    let text = r#"{"required":["a"],"properties":{"ü":{"const":"\u00fc"},"a":{}}}"#;
    let schema = sound(&serde_json::from_str(text).unwrap());
    assert_eq!(schema, sound(&json!({"properties": {"a": {}, "ü": {"const": "ü"}}, "required": ["a"]})));
    assert_ne!(schema, sound(&json!({})));
    assert_eq!(schema.text(), r#"{"properties":{"a":{},"ü":{"const":"ü"}},"required":["a"]}"#);
    assert_eq!(broken(&schema, &json!({"a": 1, "ü": "u"})), "/ü is \"u\", and not \"ü\"");
}
