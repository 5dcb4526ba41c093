//! Counts the work of a check before anything is checked: how often each subschema will look at each value,
//! at most. A schema that applies several subschemas to the same value, level after level, would otherwise
//! take time without end.
//!
//! The count follows what the library does. To find out whether a value holds, it tries each subschema. To
//! report, it tries the choices of `anyOf` and `oneOf` once more, and then has each report.
//! `unevaluatedProperties` and `unevaluatedItems` go through all subschemas of the same value again, and try
//! them, to mark what they have looked at.

use serde_json::{Map, Value};

use crate::graph::{Graph, Sub, Use};
use crate::limits::{BYTES_PER_STEP, OPEN_MAX, PATTERN_WEIGHT_PER_STEP, STEPS_MAX, VALUE_DEPTH_MAX};
use crate::text::{bytes, depth_within, weight};

/// Why a value cannot be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooMuch {
    /// It nests too deep, by itself or in what its schema opens for it.
    Depth,
    Steps,
}

/// The steps of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    /// All of them.
    pub(crate) steps: u64,
    /// Those that may report something.
    pub(crate) reports: u64,
}

/// Counts the steps of a check.
///
/// # Errors
/// As [`TooMuch`] says.
pub(crate) fn count(graph: &Graph, value: &Value) -> Result<Counted, TooMuch> {
    if !depth_within(value, VALUE_DEPTH_MAX) {
        return Err(TooMuch::Depth);
    }
    let mut meter = Meter { graph, steps: 0, reports: 0 };
    let once = Load { tries: 1, reports: 1, copies: 0, marks: 0, open: 1 };
    meter.visit(value, vec![Looking { sub: graph.root, load: once }], 0)?;
    Ok(Counted { steps: meter.steps, reports: meter.reports })
}

/// How often one subschema looks at one value.
#[derive(Debug, Clone, Copy)]
struct Load {
    /// To find out whether it holds.
    tries: u64,
    /// To say what breaks it.
    reports: u64,
    /// Those of the reports whose value is copied, because a choice holds them.
    copies: u64,
    /// To mark what was looked at.
    marks: u64,
    /// Subschemas that are open then, itself included.
    open: usize,
}

/// A subschema that looks at a value. Those of one value are in the order of their indexes.
#[derive(Debug, Clone, Copy)]
struct Looking {
    sub: usize,
    load: Load,
}

struct Meter<'a> {
    graph: &'a Graph,
    steps: u64,
    reports: u64,
}

impl Load {
    fn all(self) -> u64 {
        self.tries.saturating_add(self.reports).saturating_add(self.marks)
    }

    /// What it hands on to a subschema for the same value.
    fn same(self, how: Use) -> Self {
        let tried = self.tries.saturating_add(self.marks);
        let open = self.open + 1;
        match how {
            Use::Plain => Self { tries: tried, open, ..self },
            Use::Choice => {
                Self { tries: tried.saturating_add(self.reports), copies: self.reports, open, ..self }
            }
            Use::Trial => {
                Self { tries: tried.saturating_add(self.reports), reports: 0, copies: 0, open, ..self }
            }
        }
    }

    /// What it hands on to a subschema for a part of the value.
    fn part(self) -> Self {
        Self { marks: 0, open: self.open + 1, ..self }
    }

    /// The same for a part that is tried to mark it.
    fn marked_part(self) -> Self {
        Self { tries: self.all(), ..self.part() }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            tries: self.tries.saturating_add(other.tries),
            reports: self.reports.saturating_add(other.reports),
            copies: self.copies.saturating_add(other.copies),
            marks: self.marks.saturating_add(other.marks),
            open: self.open.max(other.open),
        }
    }
}

fn add(all: &mut Vec<Looking>, sub: usize, load: Load) {
    match all.binary_search_by_key(&sub, |looking| looking.sub) {
        Ok(at) => all[at].load = all[at].load.plus(load),
        Err(at) => all.insert(at, Looking { sub, load }),
    }
}

impl Meter<'_> {
    fn step(&mut self, steps: u64) -> Result<(), TooMuch> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > STEPS_MAX { Err(TooMuch::Steps) } else { Ok(()) }
    }

    fn visit(&mut self, value: &Value, mut loads: Vec<Looking>, path_bytes: u64) -> Result<(), TooMuch> {
        if loads.is_empty() {
            return Ok(());
        }
        let graph = self.graph;
        let size = weight(value);
        self.step(size / BYTES_PER_STEP)?;
        // A subschema comes before all that it leads to for the same value, so each is complete when it is
        // looked at.
        let mut next = 0;
        while let Some(Looking { sub, mut load }) = loads.get(next).copied() {
            let sub = &graph.subs[sub];
            if sub.marks() {
                load.marks = load.all();
                loads[next].load = load;
            }
            if load.open > OPEN_MAX {
                return Err(TooMuch::Depth);
            }
            self.count(sub, load, value, size, path_bytes)?;
            for (how, to) in sub.for_same() {
                self.step(1)?;
                add(&mut loads, to, load.same(how));
            }
            next += 1;
        }
        match value {
            Value::Object(map) => self.fields(map, &loads, path_bytes),
            Value::Array(items) => self.items(items, &loads, path_bytes),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    /// Counts what a subschema itself does with a value of this size.
    fn count(
        &mut self,
        sub: &Sub,
        load: Load,
        value: &Value,
        size: u64,
        path_bytes: u64,
    ) -> Result<(), TooMuch> {
        let looked = match value {
            Value::String(text) => {
                let weight = sub.pattern.unwrap_or_default();
                bytes(text) / BYTES_PER_STEP + bytes(text).saturating_mul(weight) / PATTERN_WEIGHT_PER_STEP
            }
            Value::Array(_) if sub.unique => size,
            Value::Object(map) => bounded(map.len()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => 0,
        };
        let steps = looked.saturating_add(sub.steps).saturating_add(1);
        let copied = sub.steps.saturating_add(path_bytes / BYTES_PER_STEP);
        let names = match value {
            Value::Object(map) => map.keys().map(|name| bytes(name)).sum::<u64>() / BYTES_PER_STEP,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => 0,
        };
        let reports = load.reports.saturating_mul(copied.saturating_add(names).saturating_add(1));
        let copies = load.copies.saturating_mul(size / BYTES_PER_STEP);
        self.reports = self.reports.saturating_add(reports).saturating_add(copies);
        self.step(load.all().saturating_mul(steps))
    }

    fn fields(
        &mut self,
        map: &Map<String, Value>,
        loads: &[Looking],
        path_bytes: u64,
    ) -> Result<(), TooMuch> {
        let graph = self.graph;
        for (name, field) in map {
            let mut next = Vec::new();
            let mut names = Vec::new();
            for Looking { sub, load } in loads {
                let sub = &graph.subs[*sub];
                if let Some(to) = sub.fields.get(name).copied().or(sub.additional) {
                    add(&mut next, to, load.part());
                }
                for (weight, to) in &sub.by_pattern {
                    let once = bytes(name).saturating_mul(*weight) / PATTERN_WEIGHT_PER_STEP + 1;
                    self.step(load.all().saturating_mul(once))?;
                    add(&mut next, *to, load.part());
                }
                if let Some(to) = sub.other_fields {
                    add(&mut next, to, load.marked_part());
                }
                if let Some(to) = sub.names {
                    add(&mut names, to, load.part());
                }
            }
            self.step(bounded(loads.len()))?;
            let inner = path_bytes + bytes(name) + 1;
            if !names.is_empty() {
                self.visit(&Value::String(name.clone()), names, inner)?;
            }
            self.visit(field, next, inner)?;
        }
        Ok(())
    }

    fn items(&mut self, items: &[Value], loads: &[Looking], path_bytes: u64) -> Result<(), TooMuch> {
        let graph = self.graph;
        for (number, item) in items.iter().enumerate() {
            let mut next = Vec::new();
            for Looking { sub, load } in loads {
                let sub = &graph.subs[*sub];
                if let Some(to) = sub.prefix.get(number).copied().or(sub.items) {
                    add(&mut next, to, load.part());
                }
                for to in [sub.contains, sub.other_items].into_iter().flatten() {
                    add(&mut next, to, load.marked_part());
                }
            }
            self.step(bounded(loads.len()))?;
            self.visit(item, next, path_bytes + 8)?;
        }
        Ok(())
    }
}

fn bounded(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::read::{Origin, read};

    fn measured(schema: &Value, value: &Value) -> Result<u64, TooMuch> {
        count(&read(schema, Origin::Author).unwrap().graph, value).map(|counted| counted.reports)
    }

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!("x"), |inner, _| json!([inner]))
    }

    #[test]
    fn an_ordinary_check_takes_few_steps() {
        let schema = json!({"properties": {"a": {"type": "string"}, "b": {"items": {"type": "integer"}}}});
        let steps = measured(&schema, &json!({"a": "x", "b": [1, 2, 3], "c": {"d": 1}})).unwrap();
        assert!((5..40).contains(&steps), "{steps}");
    }

    #[test]
    fn choices_that_double_at_each_level_are_counted_before_they_are_tried() {
        let schema = json!({
            "$ref": "#/$defs/n",
            "$defs": {"n": {"anyOf": [
                {"items": {"$ref": "#/$defs/n"}, "minItems": 0},
                {"items": {"$ref": "#/$defs/n"}, "maxItems": 99},
            ]}},
        });
        assert!(measured(&schema, &nested(4)).is_ok());
        assert_eq!(measured(&schema, &nested(40)), Err(TooMuch::Steps));
    }

    #[test]
    fn a_value_that_nests_too_deep_is_refused() {
        let schema = json!({"items": {"$ref": "#"}});
        assert!(measured(&schema, &nested(VALUE_DEPTH_MAX / 2)).is_ok());
        assert_eq!(measured(&schema, &nested(VALUE_DEPTH_MAX + 1)), Err(TooMuch::Depth));
    }
}
