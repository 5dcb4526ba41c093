//! Compiled expressions.

use serde_json::Value;

use super::operator::Operator;
use crate::path::Path;

/// A checked expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rule {
    /// Stands for itself.
    Literal(Value),
    /// Each item is evaluated.
    List(Vec<Rule>),
    /// A value of the data.
    Var(Box<Var>),
    /// An operator with what it is applied to.
    Apply(Operator, Arguments),
}

/// A read of the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Var {
    pub(super) key: Key,
    /// What is read if the data have nothing there.
    pub(super) default: Option<Rule>,
}

/// Which part of the data is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    /// All of it.
    Whole,
    /// The value at a path that was written as such.
    Fixed(Path),
    /// The value at a path that is computed.
    Computed(Rule),
}

/// What an operator is applied to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arguments {
    pub(super) rules: Vec<Rule>,
    /// False if a single argument was written without a list, and the operator takes a list for its
    /// arguments.
    pub(super) complete: bool,
}

/// The values of the data that an expression may read, in the order in which they are written, with
/// duplicates. What is read of the items of a list is not among them, but the list itself is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogicReads {
    /// The paths that are written as such.
    pub paths: Vec<LogicRead>,
    /// True if it also reads the data as a whole, or a path that it computes.
    pub others: bool,
}

/// A path that an expression reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogicRead {
    /// Relative to the data as a whole.
    pub path: Path,
    /// The JSON pointer of the operation that reads it, from the whole expression.
    pub at: String,
}
