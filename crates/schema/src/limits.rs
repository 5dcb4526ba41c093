//! Named maxima of schemas and of what is checked against them. Units are in the names; bytes are of UTF-8
//! text.

/// A schema as canonical text, bytes.
pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// A stored schema, bytes: a derived one may hold the whole of the one that it comes from.
pub const SCHEMA_STORED_BYTES_MAX: usize = 2 * SCHEMA_BYTES_MAX;
/// Nesting of lists and dictionaries in a schema.
pub const SCHEMA_DEPTH_MAX: usize = 64;
/// Nesting of a stored schema: a derived one may hold another one in its `$defs`.
pub const SCHEMA_STORED_DEPTH_MAX: usize = SCHEMA_DEPTH_MAX + 4;
/// Subschemas of one schema; those that a derived one adds count too.
pub const SUBSCHEMAS_MAX: usize = 2_000;
/// `$ref` and `$dynamicRef` of one schema.
pub const REFERENCES_MAX: usize = 1_000;
/// An `$id`, `$ref` or anchor as written, bytes.
pub const REFERENCE_BYTES_MAX: usize = 1024;
/// How deep subschemas lead into one another, `$ref` included, until one comes again.
pub const CHAIN_MAX: usize = 256;
/// Subschemas with an `$id` of one schema.
pub const ADDRESSES_MAX: usize = 16;
/// Parts that `unevaluatedProperties` and `unevaluatedItems` of one schema look through when it is compiled,
/// each as often as references lead to it. A pattern counts for more.
pub const MARKED_PARTS_MAX: u64 = 50_000;
/// Regular expressions of one schema.
pub const PATTERNS_MAX: usize = 64;
/// One regular expression as written, bytes.
pub const PATTERN_BYTES_MAX: usize = 1024;
/// One compiled regular expression, bytes.
pub const PATTERN_COMPILED_BYTES_MAX: usize = 256 * 1024;
/// Flaws of one schema that are reported.
pub const FLAWS_MAX: usize = 50;
/// Nesting of a value that is checked.
pub const VALUE_DEPTH_MAX: usize = 128;
/// Subschemas that are open at one time while a value is checked.
pub const OPEN_MAX: usize = 256;
/// Work to check one value, steps: a subschema that looks at one value, or a property or item that it hands
/// on.
pub const STEPS_MAX: u64 = 8_000_000;
/// Steps that may report something, weighed by what a report copies. If there are more, a value that breaks
/// its schema is refused without saying where.
pub const REPORT_STEPS_MAX: u64 = 100_000;
/// States of a regular expression that are looked at for one byte of a text, at a cost of one step.
pub const PATTERN_WEIGHT_PER_STEP: u64 = 64;
/// Bytes of a value that are read or copied for one step.
pub const BYTES_PER_STEP: u64 = 64;
/// Violations that are shown; the others are counted.
pub const VIOLATIONS_MAX: usize = 10;
/// What is shown of a JSON pointer, bytes; the rest is cut off.
pub const SHOWN_PATH_BYTES_MAX: usize = 256;
/// A shown name or value, bytes.
pub const SHOWN_VALUE_BYTES_MAX: usize = 64;
/// Names or values that one sentence lists.
pub const SHOWN_NAMES_MAX: usize = 8;
