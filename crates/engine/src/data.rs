//! The write path of a run's data: limits, then the key's type and reducer.

use serde_json::Value;
use switchward_expr::{DataType, Reducer, reduce};
use switchward_machine::Machine;

use crate::limits::{DATA_BYTES_MAX, DATA_DEPTH_MAX, DATA_KEY_BYTES_MAX, DATA_KEYS_MAX};
use crate::scope::Scope;

/// A value that may not be written; nothing of it is. What exactly, for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadWrite(pub(crate) String);

/// Merges a value into what a key holds. Gives how many bytes of JSON it holds then.
pub(crate) fn merge(
    machine: &Machine,
    scope: &mut Scope,
    key: &str,
    value: Value,
) -> Result<usize, BadWrite> {
    if key.is_empty() || key.len() > DATA_KEY_BYTES_MAX {
        return Err(BadWrite(format!("a key must be 1 to {DATA_KEY_BYTES_MAX} bytes")));
    }
    if depth(&value) > DATA_DEPTH_MAX {
        return Err(BadWrite(format!("{key:?} is nested deeper than {DATA_DEPTH_MAX}")));
    }
    let before = scope.key(key);
    if before.is_none() && scope.keys() >= DATA_KEYS_MAX {
        return Err(BadWrite(format!("there are {DATA_KEYS_MAX} keys already")));
    }
    let (holds, reducer) =
        machine.field(key).map_or((DataType::Any, Reducer::Overwrite), |field| (field.holds, field.reducer));
    let merged = reduce(before, reducer, holds, value);
    let merged = merged.map_err(|clash| BadWrite(format!("{key:?}: {clash}")))?;
    let (was, grown) = (before.map_or(0, length), length(&merged));
    let all = scope.bytes().saturating_sub(was).saturating_add(grown);
    if all > DATA_BYTES_MAX {
        return Err(BadWrite(format!("{key:?} would make the data larger than {DATA_BYTES_MAX} bytes")));
    }
    scope.hold(key, merged, all);
    Ok(grown)
}

/// Bytes of a value's JSON text.
pub(crate) fn length(value: &Value) -> usize {
    value.to_string().len()
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
