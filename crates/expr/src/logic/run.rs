//! The evaluation of an expression, paid for by fuel.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::number::{self, is_truthy};
use super::operator::{Comparison, Iteration, Operator};
use super::problem::LogicFault;
use super::rule::{Arguments, Key, Rule, Var};
use super::text;
use crate::fuel::Fuel;
use crate::limits::{DATA_DEPTH_MAX, LIST_ITEMS_MAX, LOGIC_FUEL_MAX, LOGIC_STEP_FUEL, VALUE_FUEL};
use crate::path::Path;
use crate::value::{Amount, equal};

/// What errors call a list that was written as one.
const LIST: &str = "[]";
/// The names of what `reduce` evaluates over.
const CURRENT: &str = "current";
const ACCUMULATOR: &str = "accumulator";

/// One evaluation.
pub(super) struct Run<'f> {
    fuel: &'f Fuel,
    /// What must be left of the caller's fuel.
    floor: u64,
}

/// A value, of the data or the expression itself if possible.
type Evaluated<'v> = Result<Cow<'v, Value>, LogicFault>;

impl<'f> Run<'f> {
    pub(super) fn new(fuel: &'f Fuel) -> Self {
        Self { fuel, floor: fuel.left().saturating_sub(LOGIC_FUEL_MAX) }
    }

    /// Fails if nothing more may be computed.
    fn check(&self) -> Result<(), LogicFault> {
        if self.fuel.is_used_up() {
            Err(LogicFault::NoFuel)
        } else if self.fuel.left() < self.floor {
            Err(LogicFault::TooMuchWork)
        } else {
            Ok(())
        }
    }

    /// Pays for reading a value this many times.
    fn spend_reads(&self, value: &Value, times: u64) -> Result<(), LogicFault> {
        self.fuel.spend_reads(value, times);
        self.check()
    }

    /// Evaluates an expression.
    pub(super) fn value<'v>(&self, rule: &'v Rule, data: &'v Value) -> Evaluated<'v> {
        self.fuel.spend(LOGIC_STEP_FUEL);
        self.check()?;
        match rule {
            Rule::Literal(value) => Ok(Cow::Borrowed(value)),
            Rule::List(rules) => {
                let mut items = Vec::with_capacity(rules.len());
                for rule in rules {
                    items.push(self.owned(self.value(rule, data)?)?);
                }
                self.list(LIST, items).map(Cow::Owned)
            }
            Rule::Var(var) => self.var(var, data),
            Rule::Apply(operator, arguments) => self.apply(*operator, arguments, data),
        }
    }

    /// The value by itself; a copy is paid for before it is made.
    pub(super) fn owned(&self, value: Cow<'_, Value>) -> Result<Value, LogicFault> {
        match value {
            Cow::Owned(value) => Ok(value),
            Cow::Borrowed(value) => {
                self.spend_reads(value, 2)?;
                Ok(value.clone())
            }
        }
    }

    /// A list that is made, if it is neither too long nor nested too deep.
    fn list(&self, operator: &'static str, items: Vec<Value>) -> Result<Value, LogicFault> {
        if items.len() > LIST_ITEMS_MAX {
            return Err(LogicFault::TooManyItems { operator });
        }
        self.shallow(operator, Value::Array(items))
    }

    fn shallow(&self, operator: &'static str, value: Value) -> Result<Value, LogicFault> {
        self.spend_reads(&value, 1)?;
        if is_deeper(&value, DATA_DEPTH_MAX) { Err(LogicFault::TooDeep { operator }) } else { Ok(value) }
    }

    fn var<'v>(&self, var: &'v Var, data: &'v Value) -> Evaluated<'v> {
        let read = match &var.key {
            Key::Whole => Some(data),
            Key::Fixed(path) => self.read(path, data),
            Key::Computed(rule) => {
                let key = self.value(rule, data)?;
                match self.path(&key)? {
                    Some(path) => self.read(&path, data),
                    None => Some(data),
                }
            }
        };
        match (read, &var.default) {
            (Some(value), _) => Ok(Cow::Borrowed(value)),
            (None, Some(default)) => self.value(default, data),
            (None, None) => Ok(Cow::Owned(Value::Null)),
        }
    }

    fn read<'v>(&self, path: &Path, data: &'v Value) -> Option<&'v Value> {
        self.fuel.spend_bytes(path.as_str().len(), 1);
        path.get(data)
    }

    /// The path that a value names; `None` for the data as a whole.
    fn path(&self, key: &Value) -> Result<Option<Path>, LogicFault> {
        self.spend_reads(key, 1)?;
        let named = match key {
            Value::Null => return Ok(None),
            Value::String(text) if text.is_empty() => return Ok(None),
            Value::String(text) => Path::new(text),
            Value::Number(number) => Path::new(&number.to_string()),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                return Err(LogicFault::NotPath { kind: number::kind(key) });
            }
        };
        named.map(Some).map_err(LogicFault::BadPath)
    }

    fn apply<'v>(&self, operator: Operator, arguments: &'v Arguments, data: &'v Value) -> Evaluated<'v> {
        let rules = arguments.rules.as_slice();
        match operator {
            Operator::If => self.conditional(rules, data),
            Operator::And | Operator::Or => self.junction(operator, rules, data),
            Operator::Compare(how) => self.chain(how, rules, data).map(boolean),
            Operator::Not => self.first(rules, data).map(|value| boolean(!is_truthy(&value))),
            Operator::Truthy => self.first(rules, data).map(|value| boolean(is_truthy(&value))),
            Operator::Log => self.first(rules, data),
            Operator::Through(how) => self.through(how, rules, data),
            Operator::Compute(how) => {
                let values = self.values(operator, arguments, data)?;
                number::computed(how, &values).map(Cow::Owned)
            }
            Operator::Missing
            | Operator::MissingSome
            | Operator::Merge
            | Operator::In
            | Operator::Cat
            | Operator::Substr => {
                let values = self.values(operator, arguments, data)?;
                self.called(operator, &values, data).map(Cow::Owned)
            }
        }
    }

    /// The arguments, each of them paid for.
    fn values<'v>(
        &self,
        operator: Operator,
        arguments: &'v Arguments,
        data: &'v Value,
    ) -> Result<Vec<Cow<'v, Value>>, LogicFault> {
        let mut values = Vec::with_capacity(arguments.rules.len());
        for rule in &arguments.rules {
            values.push(self.value(rule, data)?);
        }
        if !arguments.complete {
            values = self.spread(values)?;
        }
        if values.len() < operator.least() {
            return Err(LogicFault::TooFewArguments { operator: operator.word() });
        }
        values.iter().try_for_each(|value| self.spend_reads(value, 1))?;
        Ok(values)
    }

    /// The items of lists instead of the lists.
    fn spread<'v>(&self, values: Vec<Cow<'v, Value>>) -> Result<Vec<Cow<'v, Value>>, LogicFault> {
        let mut items: Vec<Cow<'v, Value>> = Vec::new();
        for value in values {
            match value {
                Cow::Borrowed(Value::Array(inner)) => {
                    self.fuel.spend_bytes(inner.len(), VALUE_FUEL);
                    self.check()?;
                    items.extend(inner.iter().map(Cow::Borrowed));
                }
                Cow::Owned(Value::Array(inner)) => items.extend(inner.into_iter().map(Cow::Owned)),
                other @ (Cow::Borrowed(_) | Cow::Owned(_)) => items.push(other),
            }
        }
        Ok(items)
    }

    /// The value after the first condition that holds; the last one if none does and it has no condition.
    fn conditional<'v>(&self, rules: &'v [Rule], data: &'v Value) -> Evaluated<'v> {
        for pair in rules.chunks(2) {
            match pair {
                [condition, then] if is_truthy(self.value(condition, data)?.as_ref()) => {
                    return self.value(then, data);
                }
                [otherwise] => return self.value(otherwise, data),
                _ => {}
            }
        }
        Ok(Cow::Owned(Value::Null))
    }

    /// The first value that decides, or the last one; without any it does not hold.
    fn junction<'v>(&self, operator: Operator, rules: &'v [Rule], data: &'v Value) -> Evaluated<'v> {
        let mut last = boolean(false);
        for rule in rules {
            last = self.value(rule, data)?;
            if is_truthy(&last) == (operator == Operator::Or) {
                break;
            }
        }
        Ok(last)
    }

    /// Whether each value compares so with the one after it; values after a pair that does not are not looked
    /// at.
    fn chain(&self, how: Comparison, rules: &[Rule], data: &Value) -> Result<bool, LogicFault> {
        let Some((first, others)) = rules.split_first() else { return Ok(true) };
        let mut left = self.value(first, data)?;
        for rule in others {
            let right = self.value(rule, data)?;
            self.spend_reads(&left, 1)?;
            self.spend_reads(&right, 1)?;
            if !number::compares(how, &left, &right)? {
                return Ok(false);
            }
            left = right;
        }
        Ok(true)
    }

    /// The first argument; null if there is none.
    fn first<'v>(&self, rules: &'v [Rule], data: &'v Value) -> Evaluated<'v> {
        rules.first().map_or(Ok(Cow::Owned(Value::Null)), |rule| self.value(rule, data))
    }

    /// An operator that evaluates its second argument over each item of the first. Null counts as an empty
    /// list.
    fn through<'v>(&self, how: Iteration, rules: &'v [Rule], data: &'v Value) -> Evaluated<'v> {
        let operator = Operator::Through(how).word();
        let (Some(list), Some(each)) = (rules.first(), rules.get(1)) else {
            return Err(LogicFault::TooFewArguments { operator });
        };
        let list = self.value(list, data)?;
        let items: &[Value] = match &*list {
            Value::Array(items) => items.as_slice(),
            Value::Null => &[],
            other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
                return Err(LogicFault::NotList { operator, kind: number::kind(other) });
            }
        };
        match how {
            Iteration::Map => self.mapped(items, each).map(Cow::Owned),
            Iteration::Filter => self.filtered(items, each).map(Cow::Owned),
            Iteration::Reduce => {
                let begin = rules.get(2).map(|rule| self.owned(self.value(rule, data)?)).transpose()?;
                self.reduced(items, each, begin.unwrap_or_default()).map(Cow::Owned)
            }
            Iteration::All => Ok(boolean(!items.is_empty() && self.find(items, each, false)?.is_none())),
            Iteration::None => Ok(boolean(self.find(items, each, true)?.is_none())),
            Iteration::Some => Ok(boolean(self.find(items, each, true)?.is_some())),
        }
    }

    /// The first item for which the expression is true, or false.
    fn find<'i>(&self, items: &'i [Value], each: &Rule, is: bool) -> Result<Option<&'i Value>, LogicFault> {
        for item in items {
            if is_truthy(self.value(each, item)?.as_ref()) == is {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    fn mapped(&self, items: &[Value], each: &Rule) -> Result<Value, LogicFault> {
        let mut made = Vec::new();
        for item in items {
            made.push(self.owned(self.value(each, item)?)?);
        }
        self.list(Operator::Through(Iteration::Map).word(), made)
    }

    fn filtered(&self, items: &[Value], each: &Rule) -> Result<Value, LogicFault> {
        let mut made = Vec::new();
        for item in items {
            if is_truthy(self.value(each, item)?.as_ref()) {
                made.push(self.owned(Cow::Borrowed(item))?);
            }
        }
        self.list(Operator::Through(Iteration::Filter).word(), made)
    }

    fn reduced(&self, items: &[Value], each: &Rule, begin: Value) -> Result<Value, LogicFault> {
        let mut accumulator = begin;
        for item in items {
            let current = self.owned(Cow::Borrowed(item))?;
            let names = [(CURRENT.to_owned(), current), (ACCUMULATOR.to_owned(), accumulator)];
            let both = Value::Object(Map::from_iter(names));
            let made = self.owned(self.value(each, &both)?)?;
            accumulator = self.shallow(Operator::Through(Iteration::Reduce).word(), made)?;
        }
        Ok(accumulator)
    }

    /// An operator over values and names that computes no number.
    fn called(
        &self,
        operator: Operator,
        values: &[Cow<'_, Value>],
        data: &Value,
    ) -> Result<Value, LogicFault> {
        match (operator, values) {
            (Operator::Missing, [keys]) if keys.is_array() => self.missing(&items(keys), data),
            (Operator::Missing, _) => {
                let keys: Vec<&Value> = values.iter().map(|value| &**value).collect();
                self.missing(&keys, data)
            }
            (Operator::MissingSome, [enough, keys]) => self.missing_some(enough, &items(keys), data),
            (Operator::In, [part, whole]) => Ok(Value::Bool(contains(whole, part))),
            (Operator::Substr, [whole, begin]) => text::substr(whole, begin, None),
            (Operator::Substr, [whole, begin, length]) => text::substr(whole, begin, Some(length)),
            (Operator::Cat, _) => text::cat(values),
            (Operator::Merge, _) => self.merged(values),
            (_, _) => Err(LogicFault::TooFewArguments { operator: operator.word() }),
        }
    }

    /// The keys of which the data have nothing, or null or an empty text.
    fn missing(&self, keys: &[&Value], data: &Value) -> Result<Value, LogicFault> {
        let mut missing = Vec::new();
        for key in keys.iter().copied() {
            let value = match self.path(key)? {
                Some(path) => self.read(&path, data),
                None => Some(data),
            };
            let is_empty = |value: &Value| value.is_null() || value.as_str() == Some("");
            if value.is_none_or(is_empty) {
                missing.push(self.owned(Cow::Borrowed(key))?);
            }
        }
        self.list(Operator::Missing.word(), missing)
    }

    /// Nothing if enough of the keys are there, otherwise those that are missing.
    fn missing_some(&self, enough: &Value, keys: &[&Value], data: &Value) -> Result<Value, LogicFault> {
        let missing = self.missing(keys, data)?;
        let present = keys.len().saturating_sub(missing.as_array().map_or(0, Vec::len));
        let operator = Operator::MissingSome.word();
        let not_number = LogicFault::NotNumber { operator, kind: number::kind(enough) };
        let enough = number::number(enough).ok_or(not_number)?;
        let is_less = Amount::Whole(i128::try_from(present).unwrap_or(i128::MAX)).compare(enough);
        Ok(if is_less == Some(Ordering::Less) { missing } else { Value::Array(Vec::new()) })
    }

    fn merged(&self, values: &[Cow<'_, Value>]) -> Result<Value, LogicFault> {
        let mut made = Vec::new();
        for item in values.iter().flat_map(|value| items(value)) {
            made.push(self.owned(Cow::Borrowed(item))?);
        }
        self.list(Operator::Merge.word(), made)
    }
}

fn boolean(is: bool) -> Cow<'static, Value> {
    Cow::Owned(Value::Bool(is))
}

/// The items of a list; any other value is the only item.
fn items(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => vec![value],
    }
}

/// Whether a list has this item, or a text this part.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Array(items), _) => items.iter().any(|item| equal(item, part)),
        (Value::String(text), Value::String(_) | Value::Number(_) | Value::Bool(_)) => {
            text.contains(&*text::written(part))
        }
        (_, _) => false,
    }
}

/// Returns true if a value has more lists and objects inside each other than this.
fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(map) => levels == 0 || map.values().any(|value| is_deeper(value, levels - 1)),
    }
}
