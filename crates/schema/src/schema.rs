//! A checked schema.

use std::fmt;
use std::sync::{Arc, OnceLock};

use jsonschema::Validator;
use minicbor::encode::Write;
use minicbor::{CborLen, Decode, Decoder, Encode, Encoder};
use serde_json::{Map, Value};

use crate::derive::derived;
use crate::flaw::{Flaw, FlawKind};
use crate::flaws::Flaws;
use crate::graph::Graph;
use crate::library;
use crate::limits::{PATTERN_COMPILED_BYTES_MAX, REPORT_STEPS_MAX, SCHEMA_STORED_BYTES_MAX, STEPS_MAX};
use crate::meter::{self, TooMuch};
use crate::read::{Origin, Read, read};
use crate::text::{canonical, step};
use crate::violation::{Violation, Violations};

/// The name under which a result says by which exit it leaves.
pub const NEXT_NODE: &str = "_next_node";

/// A JSON Schema 2020-12 that was checked. It is cheap to clone; equal schemas have equal canonical texts.
#[derive(Clone)]
pub struct Schema(Arc<Inner>);

struct Inner {
    text: String,
    value: Value,
    graph: Graph,
    /// Compiled at its first use; `None` in it if the library refuses the schema.
    validator: OnceLock<Option<Validator>>,
}

impl Schema {
    /// Checks a schema of an author. Names of the top level that begin with `_` are not for authors.
    ///
    /// # Errors
    /// What is wrong with it, in the order of pointers.
    pub fn new(value: &Value) -> Result<Self, Vec<Flaw>> {
        let mut flaws = Flaws::default();
        let read = match read(value, Origin::Author) {
            Ok(read) => read,
            Err(mut others) => {
                check_reserved(value, &mut flaws);
                others.extend(flaws.sorted());
                others.sort();
                return Err(others);
            }
        };
        check_reserved(value, &mut flaws);
        for (pointer, pattern) in &read.patterns {
            if !library::pattern_compiles(pattern) {
                let message = format!(
                    "the pattern cannot be read, or needs more than {PATTERN_COMPILED_BYTES_MAX} bytes"
                );
                flaws.add(&**pointer, FlawKind::Pattern, message);
            }
        }
        if !flaws.is_empty() {
            return Err(flaws.sorted());
        }
        match library::compile(value) {
            Ok(validator) => Ok(Self::of(value.clone(), read, OnceLock::from(Some(validator)))),
            Err(pointer) => {
                flaws.add(pointer, FlawKind::Keyword, "cannot be compiled");
                Err(flaws.sorted())
            }
        }
    }

    fn of(value: Value, read: Read, validator: OnceLock<Option<Validator>>) -> Self {
        Self(Arc::new(Inner { text: read.text, value, graph: read.graph, validator }))
    }

    /// The canonical text: no white space, keys in the order of their bytes.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The schema as JSON.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// Compares a value with the schema, in at most [`crate::limits::STEPS_MAX`] steps.
    ///
    /// # Errors
    /// What breaks the schema. A value that cannot be checked within the limits breaks it too.
    pub fn validate(&self, value: &Value) -> Result<(), Violations> {
        self.validate_counted(value, &mut 0)
    }

    /// The same. The steps that it takes are added to `spent`.
    ///
    /// # Errors
    /// As [`Self::validate`].
    pub fn validate_counted(&self, value: &Value, spent: &mut u64) -> Result<(), Violations> {
        let counted = meter::count(&self.0.graph, value).map_err(|reason| {
            whole(match reason {
                TooMuch::Depth => "nests deeper than can be checked",
                TooMuch::Steps => {
                    *spent = spent.saturating_add(STEPS_MAX);
                    "takes more steps to check than are allowed"
                }
            })
        })?;
        *spent = spent.saturating_add(counted.steps);
        let compiled = self.0.validator.get_or_init(|| library::compile(&self.0.value).ok());
        let Some(validator) = compiled else {
            return Err(whole("cannot be checked, because its schema cannot be compiled"));
        };
        if validator.is_valid(value) {
            Ok(())
        } else if counted.reports > REPORT_STEPS_MAX {
            Err(whole("breaks the schema, and is too large to say where"))
        } else {
            Err(library::violations(validator, value))
        }
    }

    /// The names of the top level's `properties`, in the order of their bytes.
    pub fn properties(&self) -> impl Iterator<Item = &str> {
        let mut names: Vec<&str> =
            self.declared().into_iter().flat_map(Map::keys).map(String::as_str).collect();
        names.sort_unstable();
        names.into_iter()
    }

    /// The `default` of a top-level property. It fills a form's first value, and nothing else.
    #[must_use]
    pub fn default_of(&self, name: &str) -> Option<&Value> {
        self.declared()?.get(name)?.get("default")
    }

    /// The schema of a result that may write some of the properties, by the names that both have: closed, and
    /// requiring none. If there are exits to choose from, a result may name one as [`NEXT_NODE`]. If what
    /// results exceeds the limits of a stored schema, by a list of exits beyond all limits of definitions, no
    /// value fits it.
    #[must_use]
    pub fn derive(&self, writes: &[String], exits: &[String]) -> Self {
        let value = derived(&self.0.value, writes, exits);
        match read(&value, Origin::Stored) {
            Ok(read) => Self::of(value, read, OnceLock::new()),
            Err(_) => Self::fitting_nothing(),
        }
    }

    fn fitting_nothing() -> Self {
        let value = Value::Bool(false);
        let read = read(&value, Origin::Stored).expect("`false` is a schema");
        Self::of(value, read, OnceLock::new())
    }

    fn declared(&self) -> Option<&Map<String, Value>> {
        self.0.value.get("properties")?.as_object()
    }

    /// Reads a stored schema.
    fn stored(text: &str) -> Result<Self, Flaw> {
        let flaw = |kind, message: &str| Flaw { pointer: String::new(), kind, message: message.to_owned() };
        if text.len() > SCHEMA_STORED_BYTES_MAX {
            return Err(flaw(FlawKind::Limit, "is longer than a stored schema can be"));
        }
        let value: Value =
            serde_json::from_str(text).map_err(|error| flaw(FlawKind::Json, &error.to_string()))?;
        // A key that is there twice is not in the canonical text.
        if canonical(&value) != text {
            return Err(flaw(FlawKind::Json, "is not the canonical text of a schema"));
        }
        let read = read(&value, Origin::Stored).map_err(|flaws| {
            flaws.into_iter().next().unwrap_or_else(|| flaw(FlawKind::Keyword, "cannot be read"))
        })?;
        Ok(Self::of(value, read, OnceLock::new()))
    }
}

/// Finds names of the top level that begin with `_`.
fn check_reserved(value: &Value, flaws: &mut Flaws) {
    let message = "begins with `_`: such names are not for authors";
    for name in value.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
        if name.starts_with('_') {
            flaws.add(format!("/properties/{}", step(name)), FlawKind::Reserved, message);
        }
    }
    let required = value.get("required").and_then(Value::as_array).into_iter().flatten().enumerate();
    for (number, name) in required {
        if name.as_str().is_some_and(|name| name.starts_with('_')) {
            flaws.add(format!("/required/{number}"), FlawKind::Reserved, message);
        }
    }
}

/// One violation by the whole value.
fn whole(message: &str) -> Violations {
    let violation = Violation { path: String::new(), message: message.to_owned() };
    Violations { first: vec![violation], total: 1 }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Schema {}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.text()).finish()
    }
}

impl<C> Encode<C> for Schema {
    fn encode<W: Write>(
        &self,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        e.str(self.text())?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Schema {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        let text = d.str()?;
        Self::stored(text).map_err(minicbor::decode::Error::message)
    }
}

impl<C> CborLen<C> for Schema {
    fn cbor_len(&self, context: &mut C) -> usize {
        self.text().cbor_len(context)
    }
}
