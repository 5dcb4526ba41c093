//! Questions to a language model.

use serde_json::Value;
use switchward_state::delivery::ModelProblem;

use super::CallContext;
use super::bounds::bounded;
use crate::model::{Model, Question};
use crate::{DeliveryReason, Failed};

/// Asks a question. The result meets the result schema.
pub(crate) async fn perform(
    model: Option<&Model>,
    call: &CallContext<'_>,
    question: &Question,
    result_schema: &Value,
) -> Result<Value, Failed> {
    let Some(model) = model else {
        return Err(Failed::new(DeliveryReason::NotConfigured, ModelProblem::NotConfigured));
    };
    let result = model.perform(call.tenant, question, result_schema, call.deadline).await?;
    bounded(&result).map(|()| result)
}
