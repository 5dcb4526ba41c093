//! From JSON to a checked expression.

use std::slice;

use serde_json::{Map, Value};

use super::operator::{Form, Operator, Row};
use super::problem::{LogicArity, LogicError, LogicProblem};
use super::rule::{Arguments, Key, LogicRead, LogicReads, Rule, Var};
use crate::limits::{LOGIC_DEPTH_MAX, LOGIC_VALUES_MAX, LOGIC_WORD_CHARS_MAX};
use crate::path::Path;

/// The operator that reads the data.
const VAR: &str = "var";

/// Checks an expression; gives it with what it reads.
pub(super) fn parse(value: &Value) -> Result<(Rule, LogicReads), LogicError> {
    let mut parser =
        Parser { at: String::new(), values: 0, scope: Scope::Data, reads: LogicReads::default() };
    let rule = parser.rule(value, 1)?;
    Ok((rule, parser.reads))
}

/// What paths are relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The data that the whole expression is evaluated over.
    Data,
    /// An item of a list.
    Item,
}

struct Parser {
    /// The JSON pointer of what is read now.
    at: String,
    /// How much was read.
    values: usize,
    scope: Scope,
    reads: LogicReads,
}

type Parsed<T> = Result<T, LogicError>;

impl Parser {
    fn refuse<T>(&self, problem: LogicProblem) -> Parsed<T> {
        Err(LogicError { at: self.at.clone(), problem })
    }

    /// Reads something below a key or an index.
    fn below<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let before = self.at.len();
        self.at.push('/');
        self.at.push_str(&key.replace('~', "~0").replace('/', "~1"));
        let read = read(self);
        self.at.truncate(before);
        read
    }

    fn rule(&mut self, value: &Value, depth: usize) -> Parsed<Rule> {
        self.values += 1;
        if self.values > LOGIC_VALUES_MAX {
            return self.refuse(LogicProblem::TooManyValues);
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Ok(Rule::Literal(value.clone()))
            }
            Value::Array(_) | Value::Object(_) if depth > LOGIC_DEPTH_MAX => {
                self.refuse(LogicProblem::TooDeep)
            }
            Value::Array(items) => self.rules(items, depth).map(list),
            Value::Object(map) => self.operation(map, depth),
        }
    }

    fn rules(&mut self, items: &[Value], depth: usize) -> Parsed<Vec<Rule>> {
        let mut rules = Vec::with_capacity(items.len().min(LOGIC_VALUES_MAX));
        for (at, item) in items.iter().enumerate() {
            rules.push(self.below(&at.to_string(), |parser| parser.rule(item, depth + 1))?);
        }
        Ok(rules)
    }

    fn operation(&mut self, map: &Map<String, Value>, depth: usize) -> Parsed<Rule> {
        let mut entries = map.iter();
        let (word, arguments) = match (entries.next(), entries.next()) {
            (None, _) => return Ok(Rule::Literal(Value::Object(Map::new()))),
            (Some(entry), None) => entry,
            (Some(_), Some(_)) => return self.refuse(LogicProblem::SeveralOperators),
        };
        if word == VAR {
            return self.below(VAR, |parser| parser.var(arguments, depth + 1));
        }
        let Some(row) = Row::of(word) else {
            let word = word.chars().take(LOGIC_WORD_CHARS_MAX).collect();
            return self.refuse(LogicProblem::UnknownOperator { word });
        };
        self.below(word, |parser| parser.arguments(row, arguments, depth + 1))
    }

    fn arguments(&mut self, row: &Row, value: &Value, depth: usize) -> Parsed<Rule> {
        let operator = row.word;
        let (listed, count) = match value {
            Value::Array(items) => (true, items.len()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                (false, 1)
            }
        };
        if !listed && row.form == Form::Listed {
            return self.refuse(LogicProblem::NoArguments { operator });
        }
        let complete = listed || row.form != Form::Spread;
        // A literal is all that a single argument can give; anything else may give a list.
        let fixed = complete || !value.is_object();
        if fixed && !(row.arity.least..=row.arity.most).contains(&count) {
            return self.refuse(LogicProblem::ArgumentCount { operator, arity: row.arity });
        }
        let rules = match value {
            Value::Array(_) if depth > LOGIC_DEPTH_MAX => return self.refuse(LogicProblem::TooDeep),
            Value::Array(items) if matches!(row.operator, Operator::Through(_)) => {
                self.loop_rules(row, items, depth)?
            }
            Value::Array(items) => self.rules(items, depth)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                vec![self.rule(value, depth)?]
            }
        };
        self.note_keys(row.operator, &rules)?;
        Ok(Rule::Apply(row.operator, Arguments { rules, complete }))
    }

    /// The list, what is evaluated over each of its items, and maybe what it begins with.
    fn loop_rules(&mut self, row: &Row, items: &[Value], depth: usize) -> Parsed<Vec<Rule>> {
        let mut rules = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let outer = self.scope;
            if at == 1 {
                self.scope = Scope::Item;
            }
            let rule = self.below(&at.to_string(), |parser| {
                let rule = parser.rule(item, depth + 1)?;
                if at == 0 && matches!(&rule, Rule::Literal(value) if !value.is_array()) {
                    return parser.refuse(LogicProblem::NoList { operator: row.word });
                }
                Ok(rule)
            });
            self.scope = outer;
            rules.push(rule?);
        }
        Ok(rules)
    }

    fn var(&mut self, value: &Value, depth: usize) -> Parsed<Rule> {
        let written = match value {
            Value::Array(_) if depth > LOGIC_DEPTH_MAX => return self.refuse(LogicProblem::TooDeep),
            Value::Array(items) => items.as_slice(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                slice::from_ref(value)
            }
        };
        if written.len() > 2 {
            let arity = LogicArity { least: 0, most: 2 };
            return self.refuse(LogicProblem::ArgumentCount { operator: VAR, arity });
        }
        let depth = if value.is_array() { depth + 1 } else { depth };
        let key = match written.first() {
            None | Some(Value::Null) => Key::Whole,
            Some(literal @ (Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Array(_))) => {
                self.key(literal)?.map_or(Key::Whole, Key::Fixed)
            }
            Some(computed @ Value::Object(_)) if value.is_array() => {
                Key::Computed(self.below("0", |parser| parser.rule(computed, depth))?)
            }
            Some(computed @ Value::Object(_)) => Key::Computed(self.rule(computed, depth)?),
        };
        self.note(&key);
        let default = match written.get(1) {
            Some(default) => Some(self.below("1", |parser| parser.rule(default, depth))?),
            None => None,
        };
        Ok(Rule::Var(Box::new(Var { key, default })))
    }

    /// The path that a literal names; `None` for the data as a whole.
    fn key(&self, literal: &Value) -> Parsed<Option<Path>> {
        let text = match literal {
            Value::String(text) if text.is_empty() => return Ok(None),
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                return self.refuse(LogicProblem::NoPath);
            }
        };
        match Path::new(&text) {
            Ok(path) => Ok(Some(path)),
            Err(error) => self.refuse(LogicProblem::BadPath(error)),
        }
    }

    /// Records what a key reads.
    fn note(&mut self, key: &Key) {
        if self.scope == Scope::Item {
            return;
        }
        match key {
            Key::Fixed(path) => {
                self.reads.paths.push(LogicRead { path: path.clone(), at: self.at.clone() });
            }
            Key::Whole | Key::Computed(_) => self.reads.others = true,
        }
    }

    /// Records the paths whose absence an operator reports.
    fn note_keys(&mut self, operator: Operator, rules: &[Rule]) -> Parsed<()> {
        let rules = match operator {
            Operator::Missing => rules,
            Operator::MissingSome => rules.get(1..).unwrap_or_default(),
            Operator::If
            | Operator::Compare(_)
            | Operator::Not
            | Operator::Truthy
            | Operator::Or
            | Operator::And
            | Operator::Compute(_)
            | Operator::Through(_)
            | Operator::Merge
            | Operator::In
            | Operator::Cat
            | Operator::Substr
            | Operator::Log => return Ok(()),
        };
        for rule in rules {
            match rule {
                Rule::Literal(Value::Array(keys)) => {
                    keys.iter().try_for_each(|key| self.note_literal(key))?;
                }
                Rule::Literal(key) => self.note_literal(key)?,
                Rule::List(_) | Rule::Var(_) | Rule::Apply(_, _) => self.note(&Key::Whole),
            }
        }
        Ok(())
    }

    fn note_literal(&mut self, literal: &Value) -> Parsed<()> {
        let key = self.key(literal)?.map_or(Key::Whole, Key::Fixed);
        self.note(&key);
        Ok(())
    }
}

/// A list of expressions, as a literal if each of them is one.
fn list(rules: Vec<Rule>) -> Rule {
    let literal = |rule: &Rule| match rule {
        Rule::Literal(value) => Some(value.clone()),
        Rule::List(_) | Rule::Var(_) | Rule::Apply(_, _) => None,
    };
    match rules.iter().map(literal).collect::<Option<Vec<Value>>>() {
        Some(values) => Rule::Literal(Value::Array(values)),
        None => Rule::List(rules),
    }
}
