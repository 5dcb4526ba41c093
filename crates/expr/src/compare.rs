//! Comparisons of guards and of conditions.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use minicbor::{CborLen, Decode, Encode};
use regex::{Regex, RegexBuilder};
use serde_json::Value;

use crate::fuel::{Fuel, weight};
use crate::limits::{
    REGEX_BYTES_MAX, REGEX_BYTES_PER_FUEL, REGEX_COMPILED_BYTES_MAX, REGEX_COMPILED_BYTES_MIN,
    REGEX_NEST_MAX, REGEXES_COMPILED_BYTES_MAX,
};
use crate::value::{self, Amount};

/// How two values are compared. The guards `data_*` are the same under other names. See
/// `docs/formats-conversation-operations.md#operations`, `conditional_branch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum CmpOp {
    /// The same JSON; numbers are compared by value.
    #[n(0)]
    Eq,
    /// Not the same JSON, or absent.
    #[n(1)]
    Neq,
    /// Numerically greater.
    #[n(2)]
    Gt,
    /// Numerically greater or equal.
    #[n(3)]
    Gte,
    /// Numerically less.
    #[n(4)]
    Lt,
    /// Numerically less or equal.
    #[n(5)]
    Lte,
    /// One of the items of a list.
    #[n(6)]
    In,
    /// None of the items of a list, or absent.
    #[n(7)]
    NotIn,
    /// A text with this part, a list with this item, a dictionary with this key.
    #[n(8)]
    Contains,
    /// A text in which a regular expression is found.
    #[n(9)]
    Matches,
}

impl CmpOp {
    /// Every operator, in order.
    pub const ALL: [Self; 10] = [
        Self::Eq,
        Self::Neq,
        Self::Gt,
        Self::Gte,
        Self::Lt,
        Self::Lte,
        Self::In,
        Self::NotIn,
        Self::Contains,
        Self::Matches,
    ];

    /// The source's name of it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Neq => "neq",
            Self::Gt => "gt",
            Self::Gte => "gte",
            Self::Lt => "lt",
            Self::Lte => "lte",
            Self::In => "in",
            Self::NotIn => "not_in",
            Self::Contains => "contains",
            Self::Matches => "matches",
        }
    }

    /// The operator of this name.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.word() == word)
    }
}

/// Why a comparison has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// The right side of `matches` is not a text.
    #[error("a pattern must be a text")]
    NotText,
    /// It is not a regular expression.
    #[error("is not a regular expression")]
    BadPattern,
    /// It is longer than [`REGEX_BYTES_MAX`], or compiled larger than [`REGEX_COMPILED_BYTES_MAX`].
    #[error("is too large for a regular expression")]
    PatternTooLarge,
    /// All of them together are compiled larger than [`REGEXES_COMPILED_BYTES_MAX`].
    #[error("is beyond what all regular expressions together may need")]
    PatternsTooLarge,
    /// The fuel is used up.
    #[error("takes too much work")]
    Fuel,
}

/// Compiled regular expressions: each is compiled once, and all of them within a bound, because compiling takes far more
/// time than any other comparison.
#[derive(Debug)]
pub struct Patterns {
    compiled: BTreeMap<String, Compiled>,
    bytes_left: usize,
}

#[derive(Debug)]
struct Compiled {
    regex: Regex,
    /// The limit within which it was compiled.
    bytes: usize,
}

impl Default for Patterns {
    fn default() -> Self {
        Self { compiled: BTreeMap::new(), bytes_left: REGEXES_COMPILED_BYTES_MAX }
    }
}

impl Patterns {
    /// The same as [`compare`], with work that is taken from `fuel`.
    ///
    /// # Errors
    /// The right side of `matches` is no usable pattern, see [`check`](Self::check), or the fuel is used up.
    pub fn compare(
        &mut self,
        left: Option<&Value>,
        op: CmpOp,
        right: &Value,
        fuel: &Fuel,
    ) -> Result<bool, CompareError> {
        let Some(left) = left else { return Ok(matches!(op, CmpOp::Neq | CmpOp::NotIn)) };
        fuel.spend(read(left, op, right));
        if fuel.is_used_up() {
            return Err(CompareError::Fuel);
        }
        Ok(match op {
            CmpOp::Eq => value::equal(left, right),
            CmpOp::Neq => !value::equal(left, right),
            CmpOp::Gt => order(left, right).is_some_and(Ordering::is_gt),
            CmpOp::Gte => order(left, right).is_some_and(Ordering::is_ge),
            CmpOp::Lt => order(left, right).is_some_and(Ordering::is_lt),
            CmpOp::Lte => order(left, right).is_some_and(Ordering::is_le),
            CmpOp::In => is_item(left, right),
            CmpOp::NotIn => !is_item(left, right),
            CmpOp::Contains => contains(left, right),
            CmpOp::Matches => {
                let pattern = right.as_str().ok_or(CompareError::NotText)?;
                let (compiled, text) = (self.compiled(pattern)?, value::text(left));
                let states = u64::try_from(compiled.bytes / REGEX_BYTES_PER_FUEL).unwrap_or(u64::MAX);
                fuel.spend_bytes(text.len(), states);
                if fuel.is_used_up() {
                    return Err(CompareError::Fuel);
                }
                compiled.regex.is_match(&text)
            }
        })
    }

    /// Checks at definition time that a text can be the right side of `matches`, beside those that were checked before.
    ///
    /// # Errors
    /// As [`CompareError`] says.
    pub fn check(&mut self, pattern: &str) -> Result<(), CompareError> {
        self.compiled(pattern).map(|_| ())
    }

    fn compiled(&mut self, pattern: &str) -> Result<&Compiled, CompareError> {
        if !self.compiled.contains_key(pattern) {
            let compiled = self.compile(pattern)?;
            self.compiled.insert(pattern.to_owned(), compiled);
        }
        self.compiled.get(pattern).ok_or(CompareError::BadPattern)
    }

    /// Compiles a pattern. Its size is not known before, so larger and larger limits are tried, and each try counts.
    fn compile(&mut self, pattern: &str) -> Result<Compiled, CompareError> {
        if pattern.len() > REGEX_BYTES_MAX {
            return Err(CompareError::PatternTooLarge);
        }
        let mut limit = REGEX_COMPILED_BYTES_MIN;
        loop {
            self.bytes_left = self.bytes_left.checked_sub(limit).ok_or(CompareError::PatternsTooLarge)?;
            match build(pattern, limit) {
                Err(CompareError::PatternTooLarge) if limit < REGEX_COMPILED_BYTES_MAX => limit *= 4,
                built => return built.map(|regex| Compiled { regex, bytes: limit }),
            }
        }
    }
}

/// Compares `left` with `right`. An absent left makes every operator false except `neq` and `not_in`. `gt gte lt lte`
/// read a text on either side as a number if it is one, and are false if a side is no number
/// (`tests/corpus/conversation/sentences.tsv#4b-10`). `contains` looks for a number or a boolean in a text by how it is
/// written. `matches` finds the pattern anywhere; a value that is no text is searched as compact JSON, null as the
/// empty text. All other cases are false, or true for `neq` and `not_in`.
///
/// # Errors
/// The right side of `matches` is no usable pattern, see [`Patterns::check`].
pub fn compare(left: Option<&Value>, op: CmpOp, right: &Value) -> Result<bool, CompareError> {
    Patterns::default().compare(left, op, right, &Fuel::unlimited())
}

/// What the two sides cost at most before a pattern is looked for: lists are gone through, texts are read, and of two values
/// no more is compared than the smaller one has.
fn read(left: &Value, op: CmpOp, right: &Value) -> u64 {
    match op {
        CmpOp::Eq | CmpOp::Neq | CmpOp::In | CmpOp::NotIn => weight(right).saturating_mul(2),
        CmpOp::Gt | CmpOp::Gte | CmpOp::Lt | CmpOp::Lte => {
            top(left).saturating_add(top(right)).saturating_mul(4)
        }
        CmpOp::Contains if left.is_array() => weight(left).saturating_mul(2),
        CmpOp::Contains => top(left).saturating_add(top(right)).saturating_mul(2),
        CmpOp::Matches => weight(left).saturating_mul(2),
    }
}

/// The weight of a value without what is in it.
fn top(value: &Value) -> u64 {
    match value {
        Value::Array(_) | Value::Object(_) => weight(&Value::Null),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => weight(value),
    }
}

fn build(pattern: &str, size_limit: usize) -> Result<Regex, CompareError> {
    RegexBuilder::new(pattern)
        .size_limit(size_limit)
        .dfa_size_limit(REGEX_COMPILED_BYTES_MAX)
        .nest_limit(REGEX_NEST_MAX)
        .build()
        .map_err(|error| {
            let large = matches!(error, regex::Error::CompiledTooBig(_));
            if large { CompareError::PatternTooLarge } else { CompareError::BadPattern }
        })
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    Amount::of(left)?.compare(Amount::of(right)?)
}

fn is_item(left: &Value, list: &Value) -> bool {
    list.as_array().is_some_and(|items| items.iter().any(|item| value::equal(left, item)))
}

fn contains(left: &Value, right: &Value) -> bool {
    match left {
        Value::String(text) => match right {
            Value::String(_) | Value::Number(_) | Value::Bool(_) => text.contains(&*value::text(right)),
            Value::Null | Value::Array(_) | Value::Object(_) => false,
        },
        Value::Array(_) => is_item(right, left),
        Value::Object(map) => right.as_str().is_some_and(|key| map.contains_key(key)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests;
