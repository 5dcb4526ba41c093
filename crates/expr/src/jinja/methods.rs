//! The few methods of texts and dictionaries that bodies may call.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use super::meter::Meter;

/// The methods of dictionaries and of texts.
pub(super) const NAMES: [&str; 14] = [
    "items",
    "keys",
    "values",
    "get",
    "upper",
    "lower",
    "title",
    "capitalize",
    "strip",
    "replace",
    "split",
    "startswith",
    "endswith",
    "join",
];

/// Calls a method that the value itself does not have: the non-mutating ones of Python's `dict` and `str`.
pub(super) fn call(
    meter: &Meter,
    state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    meter.charge(value.len().and_then(|len| u64::try_from(len).ok()).unwrap_or(1))?;
    let unknown = || Error::new(ErrorKind::UnknownMethod, format!("there is no method {method}"));
    if value.kind() == ValueKind::Map {
        return match (method, args) {
            ("items", []) => state.apply_filter("items", std::slice::from_ref(value)),
            ("keys", []) => Ok(Value::from(value.try_iter()?.collect::<Vec<Value>>())),
            ("values", []) => {
                let values: Result<Vec<Value>, Error> =
                    value.try_iter()?.map(|key| value.get_item(&key)).collect();
                values.map(Value::from)
            }
            ("get", [key]) => Ok(present(value, key)?.unwrap_or_else(|| Value::from(()))),
            ("get", [key, otherwise]) => Ok(present(value, key)?.unwrap_or_else(|| otherwise.clone())),
            _ => Err(unknown()),
        };
    }
    let Some(text) = value.as_str() else { return Err(unknown()) };
    let filter = match (method, args) {
        ("upper" | "lower" | "title" | "capitalize", []) => method,
        ("strip", [] | [_]) => "trim",
        ("replace", [_, _]) => "replace",
        ("split", [] | [_]) => "split",
        ("startswith", [start]) => {
            return Ok(Value::from(start.as_str().is_some_and(|start| text.starts_with(start))));
        }
        ("endswith", [end]) => {
            return Ok(Value::from(end.as_str().is_some_and(|end| text.ends_with(end))));
        }
        ("join", [list]) => return state.apply_filter("join", &[list.clone(), value.clone()]),
        _ => return Err(unknown()),
    };
    let mut all = vec![value.clone()];
    all.extend_from_slice(args);
    state.apply_filter(filter, &all)
}

fn present(value: &Value, key: &Value) -> Result<Option<Value>, Error> {
    let found = value.get_item(key)?;
    Ok((!found.is_undefined()).then_some(found))
}
