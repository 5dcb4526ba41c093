//! Why an expression is refused, and why one cannot be evaluated.

use std::fmt;

use crate::limits::{
    DATA_DEPTH_MAX, LIST_ITEMS_MAX, LOGIC_BYTES_MAX, LOGIC_DEPTH_MAX, LOGIC_FUEL_MAX, LOGIC_VALUES_MAX,
    TEXT_BYTES_MAX,
};
use crate::path::PathError;

/// An expression that is not valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogicError {
    /// The JSON pointer of what is wrong, from the whole expression; empty for the expression itself.
    pub at: String,
    /// The reason.
    pub problem: LogicProblem,
}

impl LogicError {
    pub(super) fn at_root(problem: LogicProblem) -> Self {
        Self { at: String::new(), problem }
    }
}

impl fmt::Display for LogicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, problem } = self;
        if at.is_empty() { problem.fmt(f) } else { write!(f, "{problem} (at {at})") }
    }
}

impl std::error::Error for LogicError {}

/// How many arguments an operator takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogicArity {
    /// The fewest.
    pub least: usize,
    /// The largest number; `usize::MAX` if any number will do.
    pub most: usize,
}

impl fmt::Display for LogicArity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = |number: usize| if number == 1 { "argument" } else { "arguments" };
        let Self { least, most } = *self;
        match (least, most) {
            (_, usize::MAX) => write!(f, "at least {least} {}", noun(least)),
            (_, _) if least == most => write!(f, "{least} {}", noun(least)),
            (0, _) => write!(f, "at most {most} {}", noun(most)),
            (_, _) => write!(f, "{least} to {most} arguments"),
        }
    }
}

/// What is wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogicProblem {
    /// A guard that is neither an operation nor true or false.
    #[error("a guard must be a JSON Logic operation, true or false")]
    NoCondition,
    /// A text that is not JSON.
    #[error("the expression is not JSON")]
    NotJson,
    /// No operator has this name.
    #[error("unknown operator {word:?}")]
    UnknownOperator {
        /// At most [`LOGIC_WORD_CHARS_MAX`](crate::limits::LOGIC_WORD_CHARS_MAX) characters of what was
        /// written.
        word: String,
    },
    /// An object of more than one key.
    #[error("an operation must have exactly one operator")]
    SeveralOperators,
    /// An operator that needs its arguments as a list has one argument without a list.
    #[error("{operator} needs a list of arguments")]
    NoArguments {
        /// The operator as it was written.
        operator: &'static str,
    },
    /// Too few or too many arguments.
    #[error("{operator} takes {arity}")]
    ArgumentCount {
        /// The operator as it was written.
        operator: &'static str,
        /// What would be accepted.
        arity: LogicArity,
    },
    /// A literal that is no list stands where an operator goes through a list.
    #[error("{operator} needs a list to go through")]
    NoList {
        /// The operator as it was written.
        operator: &'static str,
    },
    /// A literal that names no value of the data.
    #[error("a path must be a text or a number")]
    NoPath,
    /// A text that is no path into the data.
    #[error("the path {0}")]
    BadPath(PathError),
    /// Longer than [`LOGIC_BYTES_MAX`].
    #[error("the expression is longer than {LOGIC_BYTES_MAX} bytes")]
    TooLong,
    /// Nested deeper than [`LOGIC_DEPTH_MAX`].
    #[error("the expression is nested deeper than {LOGIC_DEPTH_MAX} levels")]
    TooDeep,
    /// More than [`LOGIC_VALUES_MAX`] operations, lists and literals.
    #[error("the expression has more than {LOGIC_VALUES_MAX} values")]
    TooManyValues,
}

/// Why an expression has no value over some data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LogicFault {
    /// A value that does not stand for a number.
    #[error("{operator} needs numbers, and {kind} is none")]
    NotNumber {
        /// The operator's name.
        operator: &'static str,
        /// What the value is.
        kind: &'static str,
    },
    /// Two values of which neither is more than the other.
    #[error("{operator} cannot compare {left} with {right}")]
    NotComparable {
        /// The operator's name.
        operator: &'static str,
        /// What the left value is.
        left: &'static str,
        /// What the right value is.
        right: &'static str,
    },
    /// A division by zero, or its remainder.
    #[error("{operator} divides by zero")]
    DivisionByZero {
        /// The operator's name.
        operator: &'static str,
    },
    /// A result that JSON numbers cannot express.
    #[error("the result of {operator} is out of range")]
    OutOfRange {
        /// The operator's name.
        operator: &'static str,
    },
    /// An operator goes through a value that is neither a list nor null.
    #[error("{operator} needs a list, and {kind} is none")]
    NotList {
        /// The operator's name.
        operator: &'static str,
        /// What the value is.
        kind: &'static str,
    },
    /// A computed list of arguments is too short.
    #[error("{operator} has too few arguments")]
    TooFewArguments {
        /// The operator's name.
        operator: &'static str,
    },
    /// A computed path is neither a text nor a number.
    #[error("a path must be a text or a number, and {kind} is neither")]
    NotPath {
        /// What the value is.
        kind: &'static str,
    },
    /// A computed text is no path into the data.
    #[error("the path {0}")]
    BadPath(PathError),
    /// A list of more than [`LIST_ITEMS_MAX`] items was made.
    #[error("{operator} makes a list of more than {LIST_ITEMS_MAX} items")]
    TooManyItems {
        /// The operator's name; `[]` for a list that was written as one.
        operator: &'static str,
    },
    /// A text of more than [`TEXT_BYTES_MAX`] bytes was made.
    #[error("{operator} makes a text of more than {TEXT_BYTES_MAX} bytes")]
    TextTooLong {
        /// The operator's name.
        operator: &'static str,
    },
    /// A value that is nested deeper than [`DATA_DEPTH_MAX`] was made.
    #[error("{operator} makes a value of more than {DATA_DEPTH_MAX} levels")]
    TooDeep {
        /// The operator's name; `[]` for a list that was written as one.
        operator: &'static str,
    },
    /// The evaluation takes more than [`LOGIC_FUEL_MAX`].
    #[error("the expression takes more than {LOGIC_FUEL_MAX} units of work")]
    TooMuchWork,
    /// The caller's fuel is used up.
    #[error("no work is left for the expression")]
    NoFuel,
}
