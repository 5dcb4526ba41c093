//! JSON Schemas of authors, and values of workers: the bytes are a list of a schema and a value.

use serde_json::Value;
use switchward_schema::Schema;
use switchward_schema::limits::VIOLATIONS_MAX;

/// Returns true if the schema is sound.
pub(crate) fn read(bytes: &[u8]) -> bool {
    let Ok(both) = serde_json::from_slice::<Value>(bytes) else { return false };
    let (Some(schema), Some(value)) = (both.get(0), both.get(1)) else { return false };
    match Schema::new(schema) {
        Ok(schema) => {
            check(&schema, value);
            true
        }
        Err(flaws) => {
            assert!(!flaws.is_empty(), "a schema is refused without a reason");
            assert!(flaws.is_sorted(), "{flaws:?}");
            false
        }
    }
}

fn check(schema: &Schema, value: &Value) {
    let again = stored(schema);
    let said = schema.validate(value);
    assert_eq!(said, again.validate(value), "a schema says something else when it was stored");
    if let Err(violations) = said {
        assert!((1..=VIOLATIONS_MAX).contains(&violations.first.len()), "{violations:?}");
        assert!(violations.first.len() <= violations.total, "{violations:?}");
    }
    let names: Vec<String> = schema.properties().map(str::to_owned).collect();
    let derived = stored(&schema.derive(&names, &names));
    if derived.validate(value).is_ok() {
        let fields = value.as_object().expect("a result is a dictionary");
        let next = switchward_schema::NEXT_NODE;
        assert!(fields.keys().all(|name| name == next || names.contains(name)), "an undeclared name");
    }
}

/// The schema as it is stored, read again.
fn stored(schema: &Schema) -> Schema {
    let bytes = minicbor::to_vec(schema).expect("a schema can be encoded");
    let again: Schema = minicbor::decode(&bytes).expect("a stored schema can be decoded");
    assert_eq!(&again, schema, "a schema differs after encoding and decoding");
    again
}
