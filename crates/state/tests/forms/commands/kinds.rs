//! The kinds of command. A new one does not compile until it has a name here.

use switchward_state::Body;
use switchward_state::approval::ApprovalCommand as Approval;
use switchward_state::catalogue::CatalogueCommand as Catalogue;
use switchward_state::delivery::{ChangeEndpoint, ChangeWebhookSource, DeliveryCommand as Delivery};
use switchward_state::policy::PolicyCommand as Policy;
use switchward_state::run::RunCommand as Run;
use switchward_state::session::{RemoveStep, SessionCommand as Session};
use switchward_state::work::WorkCommand as Work;

macro_rules! kinds {
    ($($name:literal = $pattern:pat,)*) => {
        /// All kinds of command.
        pub(crate) const KINDS: &[&str] = &[$($name,)*];

        /// The kind of a command.
        pub(crate) fn kind(body: &Body) -> &'static str {
            match body { $($pattern => $name,)* }
        }
    };
}

kinds! {
    "Session.Start" = Body::Session(Session::Start(_)),
    "Session.PostMessage" = Body::Session(Session::PostMessage(_)),
    "Session.SwitchRun" = Body::Session(Session::SwitchRun(_)),
    "Session.Pause" = Body::Session(Session::Pause(_)),
    "Session.Resume" = Body::Session(Session::Resume(_)),
    "Session.Cancel" = Body::Session(Session::Cancel(_)),
    "Session.Sweep" = Body::Session(Session::Sweep(_)),
    "Session.Remove" = Body::Session(Session::Remove(_)),
    "Session.RemoveStep.Rows" = Body::Session(Session::RemoveStep(RemoveStep::Rows { .. })),
    "Session.RemoveStep.Expire" = Body::Session(Session::RemoveStep(RemoveStep::Expire { .. })),
    "Session.RemoveStep.Forget" = Body::Session(Session::RemoveStep(RemoveStep::Forget { .. })),
    "Session.RemoveStep.OfTenant" = Body::Session(Session::RemoveStep(RemoveStep::OfTenant { .. })),
    "Session.RemoveStep.TenantGone" = Body::Session(Session::RemoveStep(RemoveStep::TenantGone)),
    "Run.Answer" = Body::Run(Run::Answer(_)),
    "Run.EndTurn" = Body::Run(Run::EndTurn(_)),
    "Run.RecordData" = Body::Run(Run::RecordData(_)),
    "Run.SignalCompletion" = Body::Run(Run::SignalCompletion),
    "Run.RetryNode" = Body::Run(Run::RetryNode),
    "Run.RecordEvent" = Body::Run(Run::RecordEvent(_)),
    "Approval.RecordReply" = Body::Approval(Approval::RecordReply(_)),
    "Approval.DecideGate" = Body::Approval(Approval::DecideGate(_)),
    "Approval.DiscussGate" = Body::Approval(Approval::DiscussGate(_)),
    "Approval.AnswerGate" = Body::Approval(Approval::AnswerGate(_)),
    "Approval.SendPageCode" = Body::Approval(Approval::SendPageCode(_)),
    "Approval.EnterPageCode" = Body::Approval(Approval::EnterPageCode(_)),
    "Approval.AssignGate" = Body::Approval(Approval::AssignGate { .. }),
    "Work.Lease" = Body::Work(Work::Lease(_)),
    "Work.Extend" = Body::Work(Work::Extend(_)),
    "Work.Complete" = Body::Work(Work::Complete(_)),
    "Work.Fail" = Body::Work(Work::Fail(_)),
    "Work.Release" = Body::Work(Work::Release(_)),
    "Delivery.AckEffect" = Body::Delivery(Delivery::AckEffect(_)),
    "Delivery.FailEffect" = Body::Delivery(Delivery::FailEffect(_)),
    "Delivery.DeferEffect" = Body::Delivery(Delivery::DeferEffect(_)),
    "Delivery.RecordBounce" = Body::Delivery(Delivery::RecordBounce(_)),
    "Delivery.RetryEffect" = Body::Delivery(Delivery::RetryEffect(_)),
    "Delivery.DismissEffect" = Body::Delivery(Delivery::DismissEffect(_)),
    "Delivery.WebhookSource.Create" = Body::Delivery(Delivery::WebhookSource(ChangeWebhookSource::Create { .. })),
    "Delivery.WebhookSource.Correlate" = Body::Delivery(Delivery::WebhookSource(ChangeWebhookSource::Correlate { .. })),
    "Delivery.WebhookSource.Rotate" = Body::Delivery(Delivery::WebhookSource(ChangeWebhookSource::Rotate { .. })),
    "Delivery.WebhookSource.Delete" = Body::Delivery(Delivery::WebhookSource(ChangeWebhookSource::Delete { .. })),
    "Delivery.Endpoint.Put" = Body::Delivery(Delivery::Endpoint(ChangeEndpoint::Put { .. })),
    "Delivery.Endpoint.Rotate" = Body::Delivery(Delivery::Endpoint(ChangeEndpoint::Rotate { .. })),
    "Delivery.Endpoint.Disable" = Body::Delivery(Delivery::Endpoint(ChangeEndpoint::Disable { .. })),
    "Delivery.Endpoint.Delete" = Body::Delivery(Delivery::Endpoint(ChangeEndpoint::Delete { .. })),
    "Delivery.Endpoint.Note" = Body::Delivery(Delivery::Endpoint(ChangeEndpoint::Note { .. })),
    "Delivery.Republish" = Body::Delivery(Delivery::Republish(_)),
    "Delivery.HoldEffects" = Body::Delivery(Delivery::HoldEffects(_)),
    "Policy.Authorize" = Body::Policy(Policy::Authorize(_)),
    "Policy.ReportCall" = Body::Policy(Policy::ReportCall(_)),
    "Policy.ReportUsage" = Body::Policy(Policy::ReportUsage(_)),
    "Policy.RaiseCap" = Body::Policy(Policy::RaiseCap(_)),
    "Policy.Reserve" = Body::Policy(Policy::Reserve(_)),
    "Policy.Confirm" = Body::Policy(Policy::Confirm(_)),
    "Policy.Settle" = Body::Policy(Policy::Settle(_)),
    "Policy.AttachPolicy" = Body::Policy(Policy::AttachPolicy(_)),
    "Policy.SetTenantPolicy" = Body::Policy(Policy::SetTenantPolicy(_)),
    "Policy.RemoveTenantPolicy" = Body::Policy(Policy::RemoveTenantPolicy(_)),
    "Catalogue.InstallMachine" = Body::Catalogue(Catalogue::InstallMachine(_)),
    "Catalogue.CreateTenant" = Body::Catalogue(Catalogue::CreateTenant(_)),
    "Catalogue.UpdateTenant" = Body::Catalogue(Catalogue::UpdateTenant(_)),
    "Catalogue.PutQuotas" = Body::Catalogue(Catalogue::PutQuotas(_)),
    "Catalogue.CreateKey" = Body::Catalogue(Catalogue::CreateKey(_)),
    "Catalogue.RevokeKey" = Body::Catalogue(Catalogue::RevokeKey(_)),
    "Catalogue.Deploy" = Body::Catalogue(Catalogue::Deploy(_)),
    "Catalogue.ActivateVersion" = Body::Catalogue(Catalogue::ActivateVersion(_)),
    "Catalogue.RetireVersion" = Body::Catalogue(Catalogue::RetireVersion(_)),
    "Catalogue.PutAssistant" = Body::Catalogue(Catalogue::PutAssistant(_)),
    "Catalogue.DeleteAssistant" = Body::Catalogue(Catalogue::DeleteAssistant(_)),
    "Catalogue.EnsureTenancy" = Body::Catalogue(Catalogue::EnsureTenancy(_)),
    "Catalogue.PutDirectory" = Body::Catalogue(Catalogue::PutDirectory(_)),
    "Catalogue.InstallTenancy" = Body::Catalogue(Catalogue::InstallTenancy(_)),
    "Catalogue.PutRetention" = Body::Catalogue(Catalogue::PutRetention(_)),
    "Catalogue.Reseal" = Body::Catalogue(Catalogue::Reseal(_)),
    "Catalogue.DeleteTenant" = Body::Catalogue(Catalogue::DeleteTenant(_)),
    "Catalogue.FoundCluster" = Body::Catalogue(Catalogue::FoundCluster(_)),
    "Catalogue.JoinServer" = Body::Catalogue(Catalogue::JoinServer(_)),
    "Catalogue.SetServerState" = Body::Catalogue(Catalogue::SetServerState(_)),
    "Catalogue.RecordTransfers" = Body::Catalogue(Catalogue::RecordTransfers(_)),
    "Catalogue.RaiseLevel" = Body::Catalogue(Catalogue::RaiseLevel(_)),
    "Catalogue.AssignVoters" = Body::Catalogue(Catalogue::AssignVoters(_)),
    "Catalogue.ArchiveDefinition" = Body::Catalogue(Catalogue::ArchiveDefinition(_)),
    "Catalogue.DeleteDefinition" = Body::Catalogue(Catalogue::DeleteDefinition(_)),
}
