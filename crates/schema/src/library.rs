//! The one file that knows the library which checks values.

use std::collections::BTreeSet;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Value, json};

use crate::limits::{PATTERN_COMPILED_BYTES_MAX, VIOLATIONS_MAX};
use crate::sentence;
use crate::violation::{Violation, Violations};

/// Distinct violations that are counted exactly; after that each counts by itself.
const DISTINCT_MAX: usize = 1_000;

/// Compiles a schema that was read: patterns run in linear time and have a size limit, formats are notes.
///
/// # Errors
/// The pointer of what the library refuses.
pub(crate) fn compile(schema: &Value) -> Result<Validator, String> {
    let patterns = PatternOptions::regex()
        .size_limit(PATTERN_COMPILED_BYTES_MAX)
        .dfa_size_limit(PATTERN_COMPILED_BYTES_MAX);
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(patterns)
        .should_validate_formats(false)
        .build(schema)
        .map_err(|error| error.instance_path().as_str().to_owned())
}

/// Returns true if a regular expression compiles within its limit.
pub(crate) fn pattern_compiles(pattern: &str) -> bool {
    compile(&json!({"pattern": pattern})).is_ok()
}

/// What breaks a schema, in an order that does not depend on the library's.
pub(crate) fn violations(validator: &Validator, value: &Value) -> Violations {
    let mut distinct: BTreeSet<Violation> = BTreeSet::new();
    let mut others = 0_usize;
    for error in validator.iter_errors(value) {
        if distinct.insert(sentence::of(&error, value)) && distinct.len() > DISTINCT_MAX {
            distinct.pop_last();
            others += 1;
        }
    }
    let total = distinct.len() + others;
    Violations { first: distinct.into_iter().take(VIOLATIONS_MAX).collect(), total }
}
