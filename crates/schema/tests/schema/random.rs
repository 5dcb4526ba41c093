//! Random schemas and values: nothing panics, and what is derived or stored says the same.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use switchward_schema::Schema;

use crate::stored;

/// The keywords of random schemas.
const KEYWORDS: &[&str] = &[
    "$anchor",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "dependentSchemas",
    "else",
    "enum",
    "if",
    "items",
    "maxContains",
    "maximum",
    "minItems",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "then",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// Any small JSON.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[abc#/_~]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[abc_]{1,2}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A schema whose keywords mostly have values that they can have.
fn schema() -> impl Strategy<Value = Value> {
    let reference =
        prop::sample::select(vec!["#", "#/$defs/a", "#/properties/b", "#a", "x", "x#a", "#/allOf/0"]);
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        prop::sample::select(vec!["string", "integer", "object", "array", "null"])
            .prop_map(|name| json!({"type": name})),
        reference.clone().prop_map(|to| json!({"$ref": to})),
        reference.prop_map(|to| json!({"$dynamicRef": to})),
        "[ab]\\{1,2\\}|a\\+|\\(".prop_map(|pattern| json!({"pattern": pattern})),
        (prop::sample::select(KEYWORDS.to_vec()), json_value())
            .prop_map(|(keyword, value)| json!({keyword: value})),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4).prop_map(Value::from);
        let map = prop::collection::btree_map("[abc]", inner.clone(), 0..3)
            .prop_map(|map| Value::Object(map.into_iter().collect()));
        let one = prop::sample::select(vec![
            "not",
            "if",
            "then",
            "else",
            "items",
            "contains",
            "additionalProperties",
            "propertyNames",
            "unevaluatedItems",
            "unevaluatedProperties",
        ]);
        let lists = prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]);
        let maps = prop::sample::select(vec!["$defs", "properties", "patternProperties", "dependentSchemas"]);
        let name = prop::sample::select(vec!["$id", "$anchor", "$dynamicAnchor"]);
        let keyword = prop_oneof![
            (one, inner).prop_map(|(name, value)| (name, value)),
            (lists, list).prop_map(|(name, value)| (name, value)),
            (maps, map).prop_map(|(name, value)| (name, value)),
            (name, prop::sample::select(vec!["a", "x"])).prop_map(|(name, value)| (name, json!(value))),
        ];
        prop::collection::vec(keyword, 1..4).prop_map(|keywords| {
            let map: Map<String, Value> =
                keywords.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            Value::Object(map)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn no_schema_and_no_value_panics(schema in prop_oneof![schema(), json_value()], value in json_value()) {
        if let Ok(schema) = Schema::new(&schema) {
            let again = stored(&schema);
            prop_assert_eq!(&again, &schema);
            prop_assert_eq!(schema.validate(&value), again.validate(&value));
        }
    }

    #[test]
    fn a_derived_schema_takes_only_what_may_be_written(
        schema in schema(),
        value in json_value(),
        writes in prop::collection::vec("[abc]", 0..3),
    ) {
        let both = json!({"properties": {"a": schema.clone(), "b": schema}, "required": ["b"]});
        let Ok(schema) = Schema::new(&both) else { return Ok(()) };
        let derived = schema.derive(&writes, &[]);
        prop_assert_eq!(&stored(&derived), &derived);
        for name in ["a", "b", "c"] {
            let result = json!({name: value.clone()});
            if derived.validate(&result).is_ok() {
                prop_assert!(writes.iter().any(|write| write == name) && name != "c");
            }
        }
    }

    #[test]
    fn a_derived_schema_takes_what_the_schema_takes(schema in schema(), value in json_value()) {
        let Ok(schema) = Schema::new(&json!({"properties": {"a": schema}})) else { return Ok(()) };
        let derived = schema.derive(&["a".to_owned()], &[]);
        let result = json!({"a": value});
        let fits = (schema.validate(&result).is_ok(), derived.validate(&result).is_ok());
        prop_assert!(fits.0 == fits.1, "{} {}: {}", schema.text(), derived.text(), result);
    }
}
