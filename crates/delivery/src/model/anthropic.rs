//! The Messages API, answered by a forced tool call.

use serde_json::{Value, json};
use switchward_state::delivery::ModelProblem;

use super::{Prompt, not_as_asked};
use crate::{DeliveryReason, Failed};

const VERSION: &str = "2023-06-01";
const TOOL: &str = "answer";

pub(super) fn headers(key: &str) -> Vec<(String, String)> {
    let headers = [("x-api-key", key), ("anthropic-version", VERSION)];
    headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

pub(super) fn body(prompt: &Prompt) -> Value {
    json!({
        "model": prompt.model,
        "max_tokens": prompt.max_output_tokens,
        "system": prompt.system,
        "messages": [{ "role": "user", "content": prompt.user }],
        "tools": [{
            "name": TOOL,
            "description": "Gives the answer. It is used exactly once.",
            "input_schema": prompt.schema,
        }],
        "tool_choice": { "type": "tool", "name": TOOL, "disable_parallel_tool_use": true },
    })
}

/// Returns the input of the only tool call.
pub(super) fn answer(mut message: Value) -> Result<Value, Failed> {
    match message.get("stop_reason").and_then(Value::as_str) {
        Some("max_tokens") => {
            return Err(Failed::new(DeliveryReason::ModelAnswerCut, ModelProblem::AnswerCut));
        }
        Some("refusal") => {
            return Err(Failed::new(DeliveryReason::ModelRefused, ModelProblem::Declined));
        }
        Some(_) => {}
        None => return Err(not_as_asked()),
    }
    let Some(Value::Array(content)) = message.get_mut("content").map(Value::take) else {
        return Err(not_as_asked());
    };
    let is = |part: &Value, key: &str, word: &str| part.get(key).and_then(Value::as_str) == Some(word);
    let mut uses = content.into_iter().filter(|part| is(part, "type", "tool_use"));
    match (uses.next(), uses.next()) {
        (Some(mut part), None) if is(&part, "name", TOOL) => {
            part.get_mut("input").map(Value::take).ok_or_else(not_as_asked)
        }
        _ => Err(not_as_asked()),
    }
}
