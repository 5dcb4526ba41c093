//! The cost of a command within its tenant's turn, before it is known how long it takes.

use switchward_engine::Body;
use switchward_engine::limits::EFFECT_BYTES;

use crate::limits::{COST_BYTES, TURN_COST};

/// The cost of a command within its tenant's turn: one, and more if it carries much. No command costs more than a
/// turn gives, so every turn serves at least one.
pub(super) fn cost(body: &Body) -> usize {
    (1 + carried(body) / COST_BYTES).min(TURN_COST)
}

/// The approximate size of what a command carries, bytes.
pub(super) fn carried(body: &Body) -> usize {
    match body {
        Body::Start(start) => start.input.len() + start.message.as_ref().map_or(0, String::len),
        Body::Answer(answer) => answer.note.len(),
        Body::PostMessage(post) => post.text.len(),
        Body::EndTurn(end) => end.text.len(),
        Body::RecordData(record) => record.values.iter().map(|(key, value)| key.len() + weigh(value)).sum(),
        Body::RecordEvent(event) => event.data.iter().map(|(key, value)| key.len() + weigh(value)).sum(),
        Body::CompleteWork(complete) => weigh(&complete.result),
        Body::AnswerGate(answer) => weigh(&answer.answer),
        Body::FailWork(fail) => fail.message.len(),
        Body::FailEffect(fail) => fail.message.len(),
        Body::DeferEffect(defer) => defer.message.len(),
        Body::RecordBounce(bounce) => bounce.message.len(),
        Body::PutDirectory(put) => put.directory.bytes(),
        Body::RecordReply(reply) => reply.text.len(),
        Body::Republish(republish) => (republish.events.len() + republish.retry.len()) * EFFECT_BYTES,
        Body::Authorize(call) => call.args.json().len(),
        Body::PutAssistant(put) => {
            put.instructions.len() + put.workflows.iter().map(String::len).sum::<usize>()
        }
        Body::Deploy(deploy) => deploy.files.iter().map(|(_, bytes)| bytes.len()).sum(),
        Body::ReportCall(_)
        | Body::ReportUsage(_)
        | Body::DecideGate(_)
        | Body::DiscussGate(_)
        | Body::SendPageCode(_)
        | Body::EnterPageCode(_)
        | Body::RaiseCap(_)
        | Body::Pause(_)
        | Body::Resume(_)
        | Body::Cancel(_)
        | Body::AckEffect(_)
        | Body::RetryEffect(_)
        | Body::DismissEffect(_)
        | Body::Sweep(_)
        | Body::Reserve(_)
        | Body::Confirm(_)
        | Body::Settle(_)
        | Body::InstallMachine(_)
        | Body::CreateTenant(_)
        | Body::UpdateTenant(_)
        | Body::PutQuotas(_)
        | Body::CreateKey(_)
        | Body::RevokeKey(_)
        | Body::ActivateVersion(_)
        | Body::RetireVersion(_)
        | Body::DeleteAssistant(_)
        | Body::EnsureTenancy(_)
        | Body::InstallTenancy(_)
        | Body::WebhookSource(_)
        | Body::AttachPolicy(_)
        | Body::SetTenantPolicy(_)
        | Body::RemoveTenantPolicy(_)
        | Body::Endpoint(_)
        | Body::Remove(_)
        | Body::RemoveStep(_)
        | Body::PutRetention(_)
        | Body::HoldEffects(_)
        | Body::Reseal(_)
        | Body::DeleteTenant(_)
        | Body::SignalCompletion
        | Body::SwitchRun(_)
        | Body::LeaseWork(_)
        | Body::ExtendLease(_)
        | Body::ReleaseWork(_)
        | Body::RetryNode => 0,
    }
}

/// The approximate size of a value's text, bytes; its nesting is limited where it comes in.
fn weigh(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::String(text) => text.len(),
        serde_json::Value::Array(items) => items.iter().map(weigh).sum(),
        serde_json::Value::Object(fields) => fields.iter().map(|(key, value)| key.len() + weigh(value)).sum(),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => 8,
    }
}
