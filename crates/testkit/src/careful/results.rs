//! A work item says what its result must be, and the result is handled accordingly.

use serde_json::Value;
use switchward_engine::work_view;
use switchward_machine::WorkKind;
use switchward_scenario::{Answer, Broken};
use switchward_state::work::WorkCommand;
use switchward_state::{Body, Command, Reply, Scope};

use super::CarefulMemory;

/// The first HTTP status that is an error: its body is not written.
const STATUS_ERROR: u64 = 400;

/// The requirements on a result.
#[derive(Debug, Clone)]
pub(super) struct Handed {
    kind: WorkKind,
    schema: Value,
}

/// Before work is completed: the requirements on the result that its worker was given.
pub(super) fn handed(memory: &CarefulMemory, command: &Command) -> Result<Option<Handed>, Broken> {
    let (Body::Work(WorkCommand::Complete(done)), Scope::Session(id)) = (&command.body, &command.scope)
    else {
        return Ok(None);
    };
    let shard = &memory.shards()[memory.home(command.tenant, &command.scope)];
    let view = work_view(shard, command.tenant, *id, done.item)?;
    Ok(view.map(|view| Handed { kind: view.kind, schema: view.schema.0 }))
}

/// An accepted result fits the requirements. A result that fits is accepted, unless what it writes does not fit
/// the data: no schema covers that.
pub(super) fn taken(handed: Option<Handed>, command: &Command, answer: &Answer) -> Result<(), Broken> {
    let (
        Some(Handed { kind, schema }),
        Body::Work(WorkCommand::Complete(done)),
        Ok(Reply::Worked { wrong, .. }),
    ) = (handed, &command.body, answer)
    else {
        return Ok(());
    };
    let writes = match kind {
        WorkKind::Agent
        | WorkKind::Extract
        | WorkKind::Delegate
        | WorkKind::Tool
        | WorkKind::Interaction
        | WorkKind::Script => true,
        WorkKind::Http => done.result.get("status").and_then(Value::as_u64) < Some(STATUS_ERROR),
        WorkKind::Judge | WorkKind::Classify | WorkKind::Intent => false,
    };
    let fits = schema.is_object() && fits(&schema, &done.result);
    if fits == wrong.is_none() || (fits && writes) {
        return Ok(());
    }
    Err(Broken(format!("the result {} got the answer {wrong:?}, but its schema is {schema}", done.result)))
}

/// Returns true if a value fits the part of JSON Schema that our schemas use.
fn fits(schema: &Value, value: &Value) -> bool {
    let list = |key: &str| schema.get(key).and_then(Value::as_array).map(Vec::as_slice);
    let types = match schema.get("type") {
        Some(Value::Array(types)) => types.clone(),
        one => one.into_iter().cloned().collect(),
    };
    let typed = types.is_empty() || types.iter().filter_map(Value::as_str).any(|word| is(word, value));
    let listed = list("enum").is_none_or(|all| all.contains(value));
    typed && listed && fields(schema, value) && items(schema, value)
}

fn fields(schema: &Value, value: &Value) -> bool {
    let Value::Object(fields) = value else { return true };
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let whole = required.filter_map(Value::as_str).all(|name| fields.contains_key(name));
    let open = schema.get("additionalProperties") != Some(&Value::Bool(false));
    let known = |name: &str| schema.get("properties").and_then(|all| all.get(name));
    whole && fields.iter().all(|(name, value)| known(name).map_or(open, |schema| fits(schema, value)))
}

fn items(schema: &Value, value: &Value) -> bool {
    let Value::Array(items) = value else { return true };
    let once = schema.get("uniqueItems") != Some(&Value::Bool(true))
        || items.iter().enumerate().all(|(at, item)| !items[..at].contains(item));
    once && schema.get("items").is_none_or(|schema| items.iter().all(|item| fits(schema, item)))
}

fn is(word: &str, value: &Value) -> bool {
    match word {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        // JSON Schema: a number without a fraction is an integer, however it is written.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "string" => value.is_string(),
        "array" => value.is_array(),
        _ => word == "object" && value.is_object(),
    }
}
