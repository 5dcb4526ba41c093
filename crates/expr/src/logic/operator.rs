//! The operators: their names, and how many arguments they take.

use super::problem::LogicArity;

/// What an operation does. `var` is not here: it has a rule of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Missing,
    MissingSome,
    If,
    Compare(Comparison),
    Not,
    Truthy,
    Or,
    And,
    Compute(Arithmetic),
    Through(Iteration),
    Merge,
    In,
    Cat,
    Substr,
    Log,
}

/// A comparison of each argument with the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    LooseEqual,
    StrictEqual,
    LooseUnequal,
    StrictUnequal,
    Greater,
    AtLeast,
    Less,
    AtMost,
}

/// A number made of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Max,
    Min,
    Plus,
    Minus,
    Times,
    Divide,
    Remainder,
}

/// What is done with each item of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Iteration {
    Map,
    Filter,
    Reduce,
    All,
    None,
    Some,
}

/// How the arguments of an operator are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As a list; a single argument stands for itself.
    Plain,
    /// As a list and nothing else.
    Listed,
    /// As a list; a single argument that gives a list stands for the items of that list.
    Spread,
}

/// A row of the table of operators.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) word: &'static str,
    pub(super) operator: Operator,
    pub(super) form: Form,
    pub(super) arity: LogicArity,
}

const ANY: usize = usize::MAX;

const fn row(word: &'static str, operator: Operator, form: Form, least: usize, most: usize) -> Row {
    Row { word, operator, form, arity: LogicArity { least, most } }
}

/// Every name; the first one of an operator is that which errors show.
const TABLE: &[Row] = &[
    row("missing", Operator::Missing, Form::Plain, 0, ANY),
    row("missing_some", Operator::MissingSome, Form::Listed, 2, 2),
    row("if", Operator::If, Form::Listed, 0, ANY),
    row("?:", Operator::If, Form::Listed, 0, ANY),
    row("==", Operator::Compare(Comparison::LooseEqual), Form::Listed, 2, ANY),
    row("===", Operator::Compare(Comparison::StrictEqual), Form::Listed, 2, ANY),
    row("!=", Operator::Compare(Comparison::LooseUnequal), Form::Listed, 2, ANY),
    row("!==", Operator::Compare(Comparison::StrictUnequal), Form::Listed, 2, ANY),
    row("!", Operator::Not, Form::Plain, 0, 1),
    row("!!", Operator::Truthy, Form::Plain, 0, 1),
    row("or", Operator::Or, Form::Listed, 0, ANY),
    row("and", Operator::And, Form::Listed, 0, ANY),
    row(">", Operator::Compare(Comparison::Greater), Form::Listed, 2, ANY),
    row(">=", Operator::Compare(Comparison::AtLeast), Form::Listed, 2, ANY),
    row("<", Operator::Compare(Comparison::Less), Form::Listed, 2, ANY),
    row("<=", Operator::Compare(Comparison::AtMost), Form::Listed, 2, ANY),
    row("max", Operator::Compute(Arithmetic::Max), Form::Spread, 1, ANY),
    row("min", Operator::Compute(Arithmetic::Min), Form::Spread, 1, ANY),
    row("+", Operator::Compute(Arithmetic::Plus), Form::Spread, 0, ANY),
    row("-", Operator::Compute(Arithmetic::Minus), Form::Spread, 1, ANY),
    row("*", Operator::Compute(Arithmetic::Times), Form::Spread, 0, ANY),
    row("/", Operator::Compute(Arithmetic::Divide), Form::Spread, 1, ANY),
    row("%", Operator::Compute(Arithmetic::Remainder), Form::Spread, 2, ANY),
    row("map", Operator::Through(Iteration::Map), Form::Listed, 2, 2),
    row("filter", Operator::Through(Iteration::Filter), Form::Listed, 2, 2),
    row("reduce", Operator::Through(Iteration::Reduce), Form::Listed, 2, 3),
    row("all", Operator::Through(Iteration::All), Form::Listed, 2, 2),
    row("none", Operator::Through(Iteration::None), Form::Listed, 2, 2),
    row("some", Operator::Through(Iteration::Some), Form::Listed, 2, 2),
    row("merge", Operator::Merge, Form::Plain, 0, ANY),
    row("in", Operator::In, Form::Listed, 2, 2),
    row("cat", Operator::Cat, Form::Spread, 0, ANY),
    row("substr", Operator::Substr, Form::Listed, 2, 3),
    row("log", Operator::Log, Form::Plain, 1, 1),
];

impl Row {
    /// Returns `None` if no operator is called so.
    pub(super) fn of(word: &str) -> Option<&'static Self> {
        TABLE.iter().find(|row| row.word == word)
    }
}

impl Operator {
    /// The name that errors show.
    pub(super) fn word(self) -> &'static str {
        TABLE.iter().find(|row| row.operator == self).map_or("", |row| row.word)
    }

    /// The fewest arguments.
    pub(super) fn least(self) -> usize {
        TABLE.iter().find(|row| row.operator == self).map_or(0, |row| row.arity.least)
    }
}
