//! What templates, guards and operations read: a run's data, with the items of its loops over them.

use serde_json::{Map, Value};
use std::fmt::Display;
use switchward_expr::{Braces, Escape, JinjaLimits, Path, TooLong};
use switchward_machine::{Content, Dialect, RunId, Text, reserved_keys};
use switchward_state::limits::{FILLED_BYTES_MAX, TEMPLATE_DEPTH, TEMPLATE_FUEL, TEXT_BYTES_MAX};
use switchward_state::run::{Fault, FaultCause, Json, Loop, json_length};
use switchward_state::{Key, ReadRows as _, ViewError};

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
}

impl Scope {
    /// The data of a run, the mark of the reply token of its state, and the positions of its loops. So nothing that is
    /// rendered here and stored holds a token.
    pub(crate) fn of_run(turn: &Turn<'_, '_>, run: RunId) -> Result<Self, ViewError> {
        let mut scope = Self::of_data(turn, run)?.with_token(turn.reply_mark(run)?);
        for at in &turn.run(run)?.loops {
            scope.enter(at);
        }
        Ok(scope)
    }

    /// The data of a run alone: what is written into from outside its operations, so that a value for a key that has
    /// the name of a loop's item merges with the data and not with the item.
    pub(crate) fn of_data(turn: &Turn<'_, '_>, run: RunId) -> Result<Self, ViewError> {
        let key = Key::data(turn.tenant(), turn.session_id()?, run);
        Ok(Self::of(turn.rows.data_at(&key)?.map(|data| data.values.clone()).unwrap_or_default()))
    }

    pub(crate) fn of(data: Map<String, Value>) -> Self {
        let root = Value::Object(data);
        let bytes = json_length(&root);
        Self { root, bytes }
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
        let value: Value = serde_json::from_str(source).map_err(template)?;
        let mut left = FILLED_BYTES_MAX;
        self.filled(&value, &mut left)
    }

    /// Fills in a value; `left` bytes may be filled in, because each reference may take all of the data.
    fn filled(&self, value: &Value, left: &mut usize) -> Result<Value, Fault> {
        Ok(match value {
            Value::String(text) => {
                let filled = self.braces(text)?;
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
    pub(crate) fn braces(&self, text: &str) -> Result<Value, Fault> {
        let look = |path: &Path| path.get(&self.root).cloned();
        Braces::parse(text).render(&look, TEXT_BYTES_MAX).map_err(template)
    }

    /// A text in the dialect that it is written in. HTML is escaped if the content is HTML.
    pub(crate) fn text(&self, text: &Text, content: Content) -> Result<String, Fault> {
        match text.dialect {
            Dialect::Plain => Ok(text.source.clone()),
            Dialect::Braces => Ok(plain(self.braces(&text.source)?)),
            Dialect::Jinja => {
                let escape = if content == Content::Html { Escape::Html } else { Escape::None };
                let limits =
                    JinjaLimits { fuel: TEMPLATE_FUEL, depth: TEMPLATE_DEPTH, bytes: TEXT_BYTES_MAX };
                switchward_expr::render(&text.source, &self.root, escape, &limits).map_err(template)
            }
        }
    }
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
        let scope = Scope::of(Map::from_iter([("a".to_owned(), Value::String(text.clone()))]));
        let list = |count: usize| scope.value(&format!("[{}]", vec![r#""{gathered.a}""#; count].join(",")));
        assert_eq!(list(2).unwrap(), Value::Array(vec![Value::String(text); 2]));
        assert!(list(FILLED_BYTES_MAX / TEXT_BYTES_MAX).is_err());
    }
}
