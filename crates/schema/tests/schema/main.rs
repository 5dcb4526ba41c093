//! Schemas and values as authors and workers send them, and as somebody sends them who means harm.

#![expect(clippy::unwrap_used, reason = "a test fails if it cannot continue")]

mod derived;
mod hostile;
mod random;
mod sentences;
mod suite;

use serde_json::Value;
use switchward_schema::{Flaw, FlawKind, Schema};

/// A schema that must be sound.
#[track_caller]
fn sound(schema: &Value) -> Schema {
    Schema::new(schema).unwrap_or_else(|flaws| panic!("{schema}: {flaws:?}"))
}

/// The flaws of a schema that must have some.
#[track_caller]
fn flaws(schema: &Value) -> Vec<Flaw> {
    Schema::new(schema).err().unwrap_or_else(|| panic!("{schema} is sound"))
}

/// The pointers and sorts of flaws.
#[track_caller]
fn located(schema: &Value) -> Vec<(String, FlawKind)> {
    flaws(schema).into_iter().map(|flaw| (flaw.pointer, flaw.kind)).collect()
}

/// All that breaks a schema, in one line.
fn broken(schema: &Schema, value: &Value) -> String {
    schema.validate(value).err().map(|violations| violations.to_string()).unwrap_or_default()
}

/// The schema as it is stored, read again.
fn stored(schema: &Schema) -> Schema {
    let bytes = minicbor::to_vec(schema).unwrap();
    assert_eq!(bytes.len(), minicbor::len(schema));
    minicbor::decode(&bytes).unwrap()
}
