//! What a command does to the shard's load; decides which commands are admitted when capacity is short.

use switchward_engine::Body;

/// A command's class for admission control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdmissionClass {
    /// Starts or continues work on a session and may wait: a caller's step.
    Begins,
    /// Ends work that is under way, or is the server's own.
    Ends,
    /// Neither.
    Neither,
}

impl AdmissionClass {
    /// Returns the class of a command.
    pub(crate) fn of(body: &Body) -> Self {
        match body {
            Body::Start(_)
            | Body::Answer(_)
            | Body::PostMessage(_)
            | Body::EndTurn(_)
            | Body::RecordData(_)
            | Body::SignalCompletion
            | Body::RetryNode
            | Body::SwitchRun(_)
            | Body::Authorize(_)
            | Body::Resume(_)
            | Body::RetryEffect(_) => Self::Begins,
            Body::ReportCall(_)
            | Body::RecordEvent(_)
            | Body::RecordReply(_)
            | Body::ReportUsage(_)
            | Body::ExtendLease(_)
            | Body::CompleteWork(_)
            | Body::FailWork(_)
            | Body::ReleaseWork(_)
            | Body::DecideGate(_)
            | Body::DiscussGate(_)
            | Body::AnswerGate(_)
            | Body::SendPageCode(_)
            | Body::EnterPageCode(_)
            | Body::Cancel(_)
            | Body::AckEffect(_)
            | Body::FailEffect(_)
            | Body::DeferEffect(_)
            | Body::RecordBounce(_)
            | Body::Sweep(_)
            | Body::Confirm(_)
            | Body::Settle(_)
            | Body::RevokeKey(_) => Self::Ends,
            Body::LeaseWork(_)
            | Body::RaiseCap(_)
            | Body::Pause(_)
            | Body::DismissEffect(_)
            | Body::Reserve(_)
            | Body::InstallMachine(_)
            | Body::CreateTenant(_)
            | Body::UpdateTenant(_)
            | Body::PutQuotas(_)
            | Body::CreateKey(_)
            | Body::Deploy(_)
            | Body::ActivateVersion(_)
            | Body::RetireVersion(_)
            | Body::PutAssistant(_)
            | Body::DeleteAssistant(_)
            | Body::WebhookSource(_)
            | Body::AttachPolicy(_)
            | Body::SetTenantPolicy(_)
            | Body::RemoveTenantPolicy(_)
            | Body::Endpoint(_)
            | Body::Republish(_)
            | Body::EnsureTenancy(_)
            | Body::PutDirectory(_)
            | Body::PutRetention(_)
            | Body::HoldEffects(_)
            | Body::Reseal(_)
            | Body::DeleteTenant(_)
            | Body::Remove(_)
            | Body::RemoveStep(_)
            | Body::InstallTenancy(_) => Self::Neither,
        }
    }
}

/// Returns true if a command makes the stored data grow. Commands that end something are written even on a full disk:
/// decisions, acknowledgements, work given back, rights taken away, and what those need from other shards.
pub(crate) fn grows(body: &Body) -> bool {
    match body {
        Body::Start(_)
        | Body::Answer(_)
        | Body::PostMessage(_)
        | Body::EndTurn(_)
        | Body::RecordData(_)
        | Body::SignalCompletion
        | Body::RetryNode
        | Body::SwitchRun(_)
        | Body::Authorize(_)
        | Body::Resume(_)
        | Body::RetryEffect(_)
        | Body::RecordEvent(_)
        | Body::ReportCall(_)
        | Body::ReportUsage(_)
        | Body::CompleteWork(_)
        | Body::LeaseWork(_)
        | Body::Sweep(_)
        | Body::InstallMachine(_)
        | Body::CreateTenant(_)
        | Body::CreateKey(_)
        | Body::Deploy(_)
        | Body::ActivateVersion(_)
        | Body::RetireVersion(_)
        | Body::PutAssistant(_)
        | Body::WebhookSource(_)
        | Body::Endpoint(_)
        | Body::Republish(_)
        // Rows to delete are first written to the log and to tables that are merged later.
        | Body::RemoveStep(_)
        | Body::PutDirectory(_) => true,
        Body::RecordReply(_)
        | Body::ExtendLease(_)
        | Body::FailWork(_)
        | Body::ReleaseWork(_)
        | Body::DecideGate(_)
        | Body::DiscussGate(_)
        | Body::AnswerGate(_)
        | Body::SendPageCode(_)
        | Body::EnterPageCode(_)
        | Body::Cancel(_)
        | Body::Pause(_)
        | Body::AckEffect(_)
        | Body::FailEffect(_)
        | Body::DeferEffect(_)
        | Body::DismissEffect(_)
        | Body::RecordBounce(_)
        | Body::Confirm(_)
        | Body::Settle(_)
        | Body::Reserve(_)
        | Body::RaiseCap(_)
        | Body::RevokeKey(_)
        | Body::UpdateTenant(_)
        | Body::PutQuotas(_)
        | Body::AttachPolicy(_)
        | Body::SetTenantPolicy(_)
        | Body::RemoveTenantPolicy(_)
        | Body::DeleteAssistant(_)
        | Body::EnsureTenancy(_)
        | Body::Remove(_)
        | Body::PutRetention(_)
        | Body::HoldEffects(_)
        | Body::Reseal(_)
        | Body::DeleteTenant(_)
        | Body::InstallTenancy(_) => false,
    }
}

/// Returns true if a command is refused while its tenant is at its quota of bytes: a caller's step, or data brought
/// in from outside. Commands that end something are admitted, so that the tenant can free space: decisions, replies,
/// results of work that a worker holds, cancels and removals.
pub(crate) fn fills(body: &Body) -> bool {
    AdmissionClass::of(body) == AdmissionClass::Begins
        || matches!(body, Body::RecordEvent(_) | Body::ReportUsage(_))
}
