//! The Chat Completions API, answered in a JSON Schema.

use serde_json::{Value, json};
use switchward_state::delivery::ModelProblem;

use super::{Prompt, not_as_asked};
use crate::{DeliveryReason, Failed};

pub(super) fn headers(key: &str) -> Vec<(String, String)> {
    vec![("authorization".to_owned(), format!("Bearer {key}"))]
}

pub(super) fn body(prompt: &Prompt) -> Value {
    json!({
        "model": prompt.model,
        "max_completion_tokens": prompt.max_output_tokens,
        "messages": [
            { "role": "system", "content": prompt.system },
            { "role": "user", "content": prompt.user },
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": { "name": "answer", "strict": prompt.strict, "schema": prompt.schema },
        },
    })
}

/// Returns the JSON of the first choice.
pub(super) fn answer(completion: &Value) -> Result<Value, Failed> {
    let refused = || Failed::new(DeliveryReason::ModelRefused, ModelProblem::Declined);
    let choice = completion.get("choices").and_then(|choices| choices.get(0)).ok_or_else(not_as_asked)?;
    match choice.get("finish_reason").and_then(Value::as_str) {
        Some("length") => {
            return Err(Failed::new(DeliveryReason::ModelAnswerCut, ModelProblem::AnswerCut));
        }
        Some("content_filter") => return Err(refused()),
        Some(_) => {}
        None => return Err(not_as_asked()),
    }
    let message = choice.get("message").ok_or_else(not_as_asked)?;
    if message.get("refusal").and_then(Value::as_str).is_some_and(|words| !words.is_empty()) {
        return Err(refused());
    }
    let content = message.get("content").and_then(Value::as_str).ok_or_else(not_as_asked)?;
    serde_json::from_str(content).map_err(|_| not_as_asked())
}
