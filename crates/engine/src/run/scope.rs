//! What templates, guards and operations read: a run's data, with the items of its loops over them.

use serde_json::{Map, Value};
use std::fmt::Display;
use switchward_expr::{Braces, Escape, Fuel, JinjaLimits, Path, Strict, StrictError, TooLong, render_within};
use switchward_machine::{Content, Dialect, RunId, SessionId, Templates, TenantId, Text, reserved_keys};
use switchward_state::limits::{
    FILLED_BYTES_MAX, REFERENCE_FUEL, TEMPLATE_DEPTH, TEMPLATE_FUEL, TEXT_BYTES_MAX,
};
use switchward_state::run::{Fault, FaultCause, Json, Loop, json_length};
use switchward_state::{Key, ReadRows, ViewError};

use crate::turn::Turn;

/// The position of an item, as templates call it.
const INDEX: &str = "index";

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    /// The data, with the items of loops under their names.
    root: Value,
    /// Bytes of the data's JSON text.
    bytes: usize,
    /// What is read here is counted, and so is what is written.
    fuel: Fuel,
    /// How values and short texts are read.
    dialect: Dialect,
}

impl Scope {
    /// The data of a run, the mark of the reply token of its state, and the positions of its loops. So nothing that is
    /// rendered here and stored holds a token. Values are read in the dialect of the node.
    pub(crate) fn of_run(turn: &Turn<'_, '_>, run: RunId) -> Result<Self, ViewError> {
        let mut scope = Self::of_data(turn, run)?.with_token(turn.reply_mark(run)?);
        let at = turn.run(run)?;
        let machine = turn.machine(&at)?;
        scope.dialect = match machine.templates {
            Templates::Strict => Dialect::Strict,
            Templates::Lenient => machine.node(at.node).map_or(scope.dialect, |node| node.dialect),
        };
        for at in &at.loops {
            scope.enter(at);
        }
        Ok(scope)
    }

    /// The data of a run alone: what is written into from outside its operations, so that a value for a key that has
    /// the name of a loop's item merges with the data and not with the item.
    pub(crate) fn of_data(turn: &Turn<'_, '_>, run: RunId) -> Result<Self, ViewError> {
        Ok(Self::of(read_by(turn.rows, turn.tenant(), turn.session_id()?, run)?, &turn.fuel))
    }

    /// Such data, with work that is taken from `fuel`.
    pub(crate) fn of(data: Map<String, Value>, fuel: &Fuel) -> Self {
        let root = Value::Object(data);
        let bytes = json_length(&root);
        fuel.spend_reads(&root, 3);
        Self { root, bytes, fuel: fuel.clone(), dialect: Dialect::Braces }
    }

    pub(crate) fn fuel(&self) -> &Fuel {
        &self.fuel
    }

    /// The same, with a reply token, or the mark of one, that can be read and is not part of the data.
    pub(crate) fn with_token(mut self, token: Option<impl Display>) -> Self {
        if let Some(token) = token {
            self.put(reserved_keys::REPLY_TOKEN, Some(Value::String(token.to_string())));
        }
        self
    }

    /// Bytes of the data's JSON text.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// All that can be read.
    pub(crate) fn root(&self) -> &Value {
        &self.root
    }

    pub(crate) fn keys(&self) -> usize {
        self.root.as_object().map_or(0, Map::len)
    }

    pub(crate) fn key(&self, key: &str) -> Option<&Value> {
        self.root.get(key)
    }

    pub(crate) fn get(&self, path: &Path) -> Option<&Value> {
        path.get(&self.root)
    }

    /// A key of the data holds this from now on, which makes the data this many bytes.
    pub(crate) fn hold(&mut self, key: &str, value: Value, bytes: usize) {
        self.put(key, Some(value));
        self.bytes = bytes;
    }

    /// Gives a name to a value, or takes it away; gives what was called so before.
    fn put(&mut self, name: &str, value: Option<Value>) -> Option<Value> {
        let map = self.root.as_object_mut()?;
        match value {
            Some(value) => map.insert(name.to_owned(), value),
            None => map.remove(name),
        }
    }

    /// Calls the item of a loop by its name.
    fn enter(&mut self, at: &Loop) {
        let Json(Value::Array(items)) = &at.items else { return };
        let index = usize::try_from(at.at).unwrap_or(usize::MAX);
        self.enter_item(&at.name, index, items.get(index).cloned().unwrap_or(Value::Null));
    }

    /// Calls an item of a list by its name; gives what the names meant before.
    pub(crate) fn enter_item(&mut self, name: &str, index: usize, item: Value) -> [Option<Value>; 2] {
        [self.put(name, Some(item)), self.put(INDEX, Some(Value::from(index)))]
    }

    /// The names mean again what they did.
    pub(crate) fn leave_item(&mut self, name: &str, [item, index]: [Option<Value>; 2]) {
        self.put(INDEX, index);
        self.put(name, item);
    }

    /// A JSON text with references in its texts.
    pub(crate) fn value(&self, source: &str) -> Result<Value, Fault> {
        self.fuel.spend_bytes(source.len(), REFERENCE_FUEL);
        self.check()?;
        let value: Value = serde_json::from_str(source).map_err(template)?;
        let mut left = FILLED_BYTES_MAX;
        self.filled(&value, &mut left)
    }

    /// A JSON text in which nothing stands for something else.
    pub(crate) fn literal(&self, source: &str) -> Result<Value, Fault> {
        self.fuel.spend_bytes(source.len(), REFERENCE_FUEL);
        self.check()?;
        serde_json::from_str(source).map_err(template)
    }

    /// Fills in a value; `left` bytes may be filled in, because each reference may take all of the data.
    fn filled(&self, value: &Value, left: &mut usize) -> Result<Value, Fault> {
        Ok(match value {
            Value::String(text) => {
                let filled = self.short(text)?;
                let rest = left.checked_sub(json_length(&filled));
                *left = rest.ok_or_else(|| template(TooLong { limit: FILLED_BYTES_MAX }))?;
                filled
            }
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.filled(item, left)).collect::<Result<_, _>>()?)
            }
            Value::Object(map) => {
                let fields = map.iter().map(|(name, value)| Ok((name.clone(), self.filled(value, left)?)));
                Value::Object(fields.collect::<Result<_, Fault>>()?)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        })
    }

    /// A text with references; one that is exactly one reference keeps the value's type.
    pub(crate) fn short(&self, text: &str) -> Result<Value, Fault> {
        match self.dialect {
            Dialect::Strict => self.strict(text),
            Dialect::Plain | Dialect::Braces | Dialect::Jinja => self.braces(text),
        }
    }

    fn braces(&self, text: &str) -> Result<Value, Fault> {
        self.fuel.spend_bytes(text.len(), REFERENCE_FUEL);
        self.check()?;
        Braces::parse(text).render(&|path| self.look(path), TEXT_BYTES_MAX).map_err(template)
    }

    fn strict(&self, text: &str) -> Result<Value, Fault> {
        self.fuel.spend_bytes(text.len(), REFERENCE_FUEL);
        self.check()?;
        Strict::parse(text).render(&|path| self.look(path), TEXT_BYTES_MAX).map_err(|error| match error {
            StrictError::Absent { path } => FaultCause::AbsentValue { path }.into(),
            StrictError::TooLong(error) => template(error),
        })
    }

    /// A copy of a value, which is paid for.
    fn look(&self, path: &Path) -> Option<Value> {
        let found = self.get(path)?;
        self.fuel.spend_reads(found, 3);
        Some(found.clone())
    }

    /// A text in the dialect that it is written in. HTML is escaped if the content is HTML.
    pub(crate) fn text(&self, text: &Text, content: Content) -> Result<String, Fault> {
        match text.dialect {
            Dialect::Plain => Ok(text.source.clone()),
            Dialect::Braces => Ok(plain(self.braces(&text.source)?)),
            Dialect::Strict => Ok(plain(self.strict(&text.source)?)),
            Dialect::Jinja => {
                let escape = if content == Content::Html { Escape::Html } else { Escape::None };
                let limits =
                    JinjaLimits { fuel: TEMPLATE_FUEL, depth: TEMPLATE_DEPTH, bytes: TEXT_BYTES_MAX };
                self.check()?;
                let rendered = render_within(&text.source, &self.root, escape, &limits, &self.fuel);
                rendered.map_err(template)
            }
        }
    }

    /// Fails if nothing more may be computed.
    fn check(&self) -> Result<(), Fault> {
        if self.fuel.is_used_up() { Err(FaultCause::TurnFuel.into()) } else { Ok(()) }
    }
}

/// The data that a run reads: its own, and if it is one of several children of its parent's machine, over what its parent
/// reads.
pub(crate) fn read_by(
    rows: &dyn ReadRows,
    tenant: TenantId,
    id: SessionId,
    run: RunId,
) -> Result<Map<String, Value>, ViewError> {
    let at = rows.run(tenant, id, run)?;
    let own = rows.data_at(&Key::data(tenant, id, run))?;
    let own = own.map(|data| data.values.clone()).unwrap_or_default();
    let Some(parent) = at.parent.filter(|_| at.frame.is_some()) else { return Ok(own) };
    let mut all = read_by(rows, tenant, id, parent.run)?;
    all.extend(own);
    Ok(all)
}

/// The fault of a template that cannot be filled in.
fn template(error: impl Display) -> Fault {
    FaultCause::Template { diagnostic: error.to_string() }.into()
}

/// A value as a text.
pub(crate) fn plain(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_takes_the_data_a_bounded_number_of_times() {
        let text = "x".repeat(TEXT_BYTES_MAX);
        let data = Map::from_iter([("a".to_owned(), Value::String(text.clone()))]);
        let scope = Scope::of(data, &Fuel::unlimited());
        let list = |count: usize| scope.value(&format!("[{}]", vec![r#""{gathered.a}""#; count].join(",")));
        assert_eq!(list(2).unwrap(), Value::Array(vec![Value::String(text); 2]));
        assert!(list(FILLED_BYTES_MAX / TEXT_BYTES_MAX).is_err());
    }

    /// In a strict scope two braces are a reference and one brace is text; elsewhere it is the other way round. An
    /// absent value is a fault that no retry follows; a loop's item hides the data of its name.
    #[test]
    fn strict_values_must_be_there() {
        let data = Map::from_iter([("a".to_owned(), Value::from(1)), ("no".to_owned(), Value::Null)]);
        let mut scope = Scope { dialect: Dialect::Strict, ..Scope::of(data, &Fuel::unlimited()) };
        let made = scope.value(r#"{"x": ["{{a}}", "n {{ a }}", "{gathered.a}", 2]}"#).unwrap();
        assert_eq!(made, serde_json::json!({"x": [1, "n 1", "{gathered.a}", 2]}));
        for (source, path) in [(r#""{{b.0}}""#, "b.0"), (r#"[{"x": "{{no}}"}]"#, "no")] {
            let fault = scope.value(source).unwrap_err();
            assert_eq!(fault, Fault::from(FaultCause::AbsentValue { path: path.to_owned() }));
            assert!(!fault.is_retryable());
        }
        let strict = |source: &str| Text { source: source.to_owned(), dialect: Dialect::Strict };
        assert_eq!(scope.text(&strict("is {{a}}"), Content::Text).unwrap(), "is 1");
        assert!(scope.text(&strict("is {{b}}"), Content::Text).is_err());
        let before = scope.enter_item("a", 0, Value::from("item"));
        assert_eq!(scope.value(r#""{{a}}{{index}}""#), Ok(Value::from("item0")));
        scope.leave_item("a", before);
        assert_eq!(scope.value(r#""{{a}}""#), Ok(Value::from(1)));
        let lenient = Scope { dialect: Dialect::Plain, ..scope };
        assert_eq!(lenient.value(r#""{{a}} {gathered.b}""#), Ok(Value::from("{{a}} ")));
    }

    /// Each value that a reference stands for is paid for, and nothing is filled in when the fuel is used up.
    #[test]
    fn references_are_paid_for() {
        let data = Map::from_iter([("a".to_owned(), Value::from(vec![1; 1_000]))]);
        let fuel = Fuel::new(1_000_000);
        let scope = Scope::of(data, &fuel);
        let before = fuel.left();
        scope.value(r#""{gathered.a}""#).unwrap();
        assert!(before - fuel.left() > 16_000);
        let turn_fuel = Fault::from(FaultCause::TurnFuel);
        fuel.spend(u64::MAX);
        assert_eq!(scope.value(r#""{gathered.a}""#), Err(turn_fuel.clone()));
        let sources = [
            (Dialect::Braces, "{gathered.a}"),
            (Dialect::Jinja, "{{ gathered.a }}"),
            (Dialect::Strict, "{{a}}"),
        ];
        for (dialect, source) in sources {
            let text = Text { source: source.to_owned(), dialect };
            assert_eq!(scope.text(&text, Content::Text), Err(turn_fuel.clone()));
        }
    }
}
