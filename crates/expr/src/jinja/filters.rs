//! The filters, tests and functions of bodies, each with its cost.

use std::sync::Arc;

use minijinja::value::{Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, filters, tests};

use super::guard::{PLAIN, SLICED, TIMES, TOUCHED};
use super::meter::{Meter, Over};
use super::slices::sliced;
use super::{own, text};
use crate::limits::JINJA_RANGE_MAX;

/// How much work a filter or test does.
#[derive(Clone, Copy)]
enum Price {
    /// Reads one text, or at most one part of any other value.
    Flat,
    /// Reads the whole value, and makes a result no larger than it.
    Whole,
    /// May make a much larger result; the function returns its size.
    Grows(fn(&[Value]) -> usize),
}

const FILTERS: &[(&str, Price)] = &[
    ("abs", Price::Flat),
    ("attr", Price::Flat),
    ("batch", Price::Grows(by_count)),
    ("capitalize", Price::Whole),
    ("center", Price::Grows(by_width)),
    ("count", Price::Flat),
    ("d", Price::Flat),
    ("default", Price::Flat),
    ("dictsort", Price::Whole),
    ("e", Price::Whole),
    ("escape", Price::Whole),
    ("first", Price::Flat),
    ("float", Price::Whole),
    ("groupby", Price::Whole),
    ("indent", Price::Grows(by_indent)),
    ("int", Price::Whole),
    ("items", Price::Whole),
    ("join", Price::Grows(by_join)),
    ("last", Price::Whole),
    ("length", Price::Flat),
    ("list", Price::Whole),
    ("lower", Price::Whole),
    ("map", Price::Whole),
    ("max", Price::Whole),
    ("min", Price::Whole),
    ("reject", Price::Whole),
    ("rejectattr", Price::Whole),
    ("replace", Price::Grows(by_replace)),
    ("reverse", Price::Whole),
    ("round", Price::Flat),
    ("safe", Price::Whole),
    ("select", Price::Whole),
    ("selectattr", Price::Whole),
    ("slice", Price::Grows(by_count)),
    ("sort", Price::Whole),
    ("split", Price::Whole),
    ("string", Price::Whole),
    ("sum", Price::Whole),
    ("title", Price::Whole),
    ("tojson", Price::Grows(by_json)),
    ("trim", Price::Whole),
    ("truncate", Price::Grows(by_end)),
    ("unique", Price::Whole),
    ("upper", Price::Whole),
    ("wordcount", Price::Whole),
];

const TESTS: &[&str] = &[
    "!=",
    "<",
    "<=",
    "==",
    ">",
    ">=",
    "boolean",
    "defined",
    "divisibleby",
    "eq",
    "equalto",
    "escaped",
    "even",
    "false",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "sameas",
    "sequence",
    "string",
    "true",
    "undefined",
    "upper",
];

/// The tests that read a whole value; the others look only at its kind.
const COMPARING: &[&str] = &[
    "!=",
    "<",
    "<=",
    "==",
    ">",
    ">=",
    "eq",
    "equalto",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "le",
    "lessthan",
    "lt",
    "ne",
    "sameas",
];

/// The names of all filters.
pub(super) fn filters() -> impl Iterator<Item = &'static str> {
    FILTERS.iter().map(|(name, _)| *name)
}

/// The names of all tests that are words.
pub(super) fn tests() -> impl Iterator<Item = &'static str> {
    TESTS.iter().copied()
}

/// Returns true if there is a filter of this name.
pub(super) fn is_filter(name: &str) -> bool {
    FILTERS.iter().any(|(known, _)| *known == name)
}

/// Returns true if there is a test of this name.
pub(super) fn is_test(name: &str) -> bool {
    TESTS.contains(&name)
}

/// An environment with only these, all of which charge this meter.
pub(super) fn environment(meter: &Arc<Meter>) -> Environment<'static> {
    let mut environment = Environment::empty();
    for (name, price) in FILTERS {
        let inner = filter(name);
        let (meter, price) = (Arc::clone(meter), *price);
        environment.add_filter(*name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            paid(&meter, price, &inner, state, args)
        });
    }
    for name in TESTS {
        let inner = test(name);
        let price = if COMPARING.contains(name) { Price::Whole } else { Price::Flat };
        let meter = Arc::clone(meter);
        environment.add_test(*name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            paid(&meter, price, &inner, state, args).map(|verdict| verdict.is_true())
        });
    }
    let plain = Arc::clone(meter);
    environment.add_function(PLAIN, move |value: Value| plain.plain(value));
    environment.add_function(SLICED, sliced);
    let touched = Arc::clone(meter);
    environment.add_function(TOUCHED, move |value: Value| touched.touch(&value).map(|()| value));
    let times = Arc::clone(meter);
    environment.add_function(TIMES, move |left: Value, right: Value| product(&times, &left, &right));
    let range_of = Arc::clone(meter);
    environment.add_function("range", move |from: i64, to: Option<i64>, step: Option<i64>| {
        range(&range_of, from, to, step)
    });
    let dict = Value::from_function(minijinja::functions::dict);
    let dict_of = Arc::clone(meter);
    environment.add_function("dict", move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
        paid(&dict_of, Price::Whole, &dict, state, args)
    });
    environment
}

fn paid(
    meter: &Meter,
    price: Price,
    inner: &Value,
    state: &mut State<'_, '_>,
    args: Rest<ValueOrKwargs>,
) -> Result<Value, Error> {
    let args: Vec<Value> = args.0.into_iter().map(ValueOrKwargs::into_value).collect();
    match price {
        Price::Flat => {
            for arg in &args {
                meter.touch(arg)?;
            }
            return inner.call(state, &args);
        }
        Price::Whole => {}
        Price::Grows(much) => meter.charge_bytes(much(&args))?,
    }
    for arg in &args {
        meter.weigh(arg)?;
    }
    meter.plain(inner.call(state, &args)?)
}

fn filter(name: &str) -> Value {
    match name {
        "abs" => Value::from_function(filters::abs),
        "attr" => Value::from_function(filters::attr),
        "batch" => Value::from_function(filters::batch),
        "capitalize" => Value::from_function(filters::capitalize),
        "center" => Value::from_function(own::center),
        "count" | "length" => Value::from_function(filters::length),
        "d" | "default" => Value::from_function(filters::default),
        "dictsort" => Value::from_function(filters::dictsort),
        "e" | "escape" => Value::from_function(escape),
        "first" => Value::from_function(filters::first),
        "float" => or_nought(Value::from_function(filters::float), Value::from(0.0)),
        "groupby" => Value::from_function(filters::groupby),
        "indent" => Value::from_function(own::indent),
        "int" => or_nought(Value::from_function(filters::int), Value::from(0)),
        "items" => Value::from_function(filters::items),
        "join" => Value::from_function(filters::join),
        "last" => Value::from_function(filters::last),
        "list" => Value::from_function(filters::list),
        "lower" => Value::from_function(filters::lower),
        "map" => Value::from_function(filters::map),
        "max" => Value::from_function(filters::max),
        "min" => Value::from_function(filters::min),
        "reject" => Value::from_function(filters::reject),
        "rejectattr" => Value::from_function(filters::rejectattr),
        "replace" => Value::from_function(filters::replace),
        "reverse" => Value::from_function(filters::reverse),
        "round" => Value::from_function(filters::round),
        "safe" => Value::from_function(filters::safe),
        "select" => Value::from_function(filters::select),
        "selectattr" => Value::from_function(filters::selectattr),
        "slice" => Value::from_function(filters::slice),
        "sort" => Value::from_function(filters::sort),
        "split" => Value::from_function(filters::split),
        "string" => Value::from_function(filters::string),
        "sum" => Value::from_function(filters::sum),
        "title" => Value::from_function(filters::title),
        "tojson" => Value::from_function(filters::tojson),
        "trim" => Value::from_function(filters::trim),
        "truncate" => Value::from_function(own::truncate),
        "unique" => Value::from_function(filters::unique),
        "upper" => Value::from_function(filters::upper),
        "wordcount" => Value::from_function(own::wordcount),
        _ => Value::UNDEFINED,
    }
}

fn test(name: &str) -> Value {
    match name {
        "==" | "eq" | "equalto" => Value::from_function(tests::is_eq),
        "!=" | "ne" => Value::from_function(tests::is_ne),
        "<" | "lt" | "lessthan" => Value::from_function(tests::is_lt),
        "<=" | "le" => Value::from_function(tests::is_le),
        ">" | "gt" | "greaterthan" => Value::from_function(tests::is_gt),
        ">=" | "ge" => Value::from_function(tests::is_ge),
        "boolean" => Value::from_function(tests::is_boolean),
        "defined" => Value::from_function(tests::is_defined),
        "divisibleby" => Value::from_function(tests::is_divisibleby),
        "escaped" => Value::from_function(tests::is_safe),
        "even" => Value::from_function(tests::is_even),
        "false" => Value::from_function(tests::is_false),
        "float" => Value::from_function(tests::is_float),
        "in" => Value::from_function(tests::is_in),
        "integer" => Value::from_function(tests::is_integer),
        "iterable" => Value::from_function(is_iterable),
        "lower" => Value::from_function(tests::is_lower),
        "mapping" => Value::from_function(tests::is_mapping),
        "none" => Value::from_function(tests::is_none),
        "number" => Value::from_function(tests::is_number),
        "odd" => Value::from_function(tests::is_odd),
        "sameas" => Value::from_function(tests::is_sameas),
        "sequence" => Value::from_function(is_sequence),
        "string" => Value::from_function(tests::is_string),
        "true" => Value::from_function(tests::is_true),
        "undefined" => Value::from_function(tests::is_undefined),
        "upper" => Value::from_function(tests::is_upper),
        _ => Value::UNDEFINED,
    }
}

/// The filter; returns `nought` if its input is no number.
fn or_nought(inner: Value, nought: Value) -> Value {
    Value::from_function(move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
        let args: Vec<Value> = args.0.into_iter().map(ValueOrKwargs::into_value).collect();
        match inner.call(state, &args) {
            Err(error) if error.kind() == ErrorKind::InvalidOperation => Ok(nought.clone()),
            other => other,
        }
    })
}

fn is_iterable(value: &Value) -> bool {
    is_sequence(value) || value.kind() == ValueKind::Undefined
}

/// Values with a length and positions: Jinja2 treats texts and dictionaries as sequences.
fn is_sequence(value: &Value) -> bool {
    is_many(value) || value.kind() == ValueKind::Map
}

fn escape(value: &Value) -> Value {
    if value.is_safe() {
        return value.clone();
    }
    Value::from_safe_string(text::escaped(&value.to_string()))
}

/// Numbers are multiplied, texts and lists repeated.
fn product(meter: &Meter, left: &Value, right: &Value) -> Result<Value, Error> {
    let failed = || Error::new(ErrorKind::InvalidOperation, "cannot multiply these values");
    let (many, times) = if is_many(left) { (left, right) } else { (right, left) };
    if is_many(many) {
        let times = i64::try_from(times.clone()).map_err(|_| failed())?;
        let times = usize::try_from(times).unwrap_or(0);
        return repeated(meter, many, times);
    }
    if let (Ok(a), Ok(b)) = (i128::try_from(left.clone()), i128::try_from(right.clone()))
        && !is_float(left)
        && !is_float(right)
    {
        return a.checked_mul(b).map(Value::from).ok_or_else(failed);
    }
    let (a, b) = (f64::try_from(left.clone()), f64::try_from(right.clone()));
    Ok(Value::from(a.map_err(|_| failed())? * b.map_err(|_| failed())?))
}

fn is_float(value: &Value) -> bool {
    value.is_number() && !value.is_integer()
}

fn is_many(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Iterable)
}

fn repeated(meter: &Meter, many: &Value, times: usize) -> Result<Value, Error> {
    if let Some(text) = many.as_str() {
        meter.charge_bytes(text.len().saturating_mul(times))?;
        return Ok(Value::from(text.repeat(times)));
    }
    let items: Vec<Value> = many.try_iter()?.collect();
    let count = u64::try_from(items.len().saturating_mul(times)).unwrap_or(u64::MAX);
    meter.charge(count)?;
    let all = std::iter::repeat_n(items, times).flatten().collect::<Vec<Value>>();
    meter.plain(Value::from(all))
}

fn range(meter: &Meter, from: i64, to: Option<i64>, step: Option<i64>) -> Result<Value, Error> {
    let (from, to) = to.map_or((0, from), |to| (from, to));
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(Error::new(ErrorKind::InvalidOperation, "the step of a range must not be 0"));
    }
    let mut items = Vec::new();
    let mut next = from;
    while (step > 0 && next < to) || (step < 0 && next > to) {
        if items.len() == JINJA_RANGE_MAX {
            return Err(meter.stop(Over::Work));
        }
        meter.charge(1)?;
        items.push(Value::from(next));
        let Some(after) = next.checked_add(step) else { break };
        next = after;
    }
    Ok(Value::from(items))
}

/// The number at a position among the arguments, or given by name.
fn number(args: &[Value], at: usize, name: &str) -> i64 {
    let named = args.last().and_then(|last| last.get_attr(name).ok()).filter(Value::is_number);
    let plain = || args.get(at).filter(|value| value.is_number()).cloned();
    named.or_else(plain).and_then(|value| i64::try_from(value).ok()).unwrap_or(0)
}

/// Lists of equal length that are filled up: as many values as one of them, or as there are lists.
fn by_count(args: &[Value]) -> usize {
    usize::try_from(number(args, 1, "linecount").max(number(args, 1, "slices")))
        .unwrap_or(0)
        .saturating_mul(4)
}

/// Each line may be indented by this much.
fn by_indent(args: &[Value]) -> usize {
    let named = args.last().and_then(|last| last.get_attr("width").ok());
    let texts = args.get(1).into_iter().chain(&named).filter_map(Value::as_str);
    let text = texts.map(str::len).max().unwrap_or(0);
    let width = usize::try_from(number(args, 1, "width")).unwrap_or(0).max(text).max(4);
    let lines = args.first().map_or(1, |value| value.to_string().split('\n').count());
    width.saturating_mul(lines)
}

/// As long as its width argument.
fn by_width(args: &[Value]) -> usize {
    usize::try_from(number(args, 1, "width")).unwrap_or(0)
}

/// Only its end is added.
fn by_end(args: &[Value]) -> usize {
    args.get(3).and_then(Value::as_str).map_or(0, str::len)
}

/// The separator stands between any two.
fn by_join(args: &[Value]) -> usize {
    let separator = args.get(1).and_then(Value::as_str).map_or(0, str::len);
    separator.saturating_mul(args.first().and_then(Value::len).unwrap_or(0))
}

/// The new text replaces each occurrence of the old one; an empty old one matches between any two characters.
fn by_replace(args: &[Value]) -> usize {
    let text = args.first().map(Value::to_string).unwrap_or_default();
    let old = args.get(1).map(Value::to_string).unwrap_or_default();
    let new = args.get(2).map(Value::to_string).unwrap_or_default();
    text.matches(old.as_str()).count().saturating_mul(new.len())
}

/// Each line is indented once for each level; there are no more lines than values.
fn by_json(args: &[Value]) -> usize {
    let width = usize::try_from(number(args, 1, "indent")).unwrap_or(0);
    width.saturating_mul(args.first().map_or(0, |value| value.to_string().len()))
}
