//! Commands about sessions, runs, gates and work.

use serde_json::{Map, Value, json};
use switchward_machine::{
    Callee, CalleeKind, Decision, DeliveryReason, Micros, OpenId, SessionId, TenantId, Time,
};
use switchward_state::approval::{
    AnswerGate, ApprovalCommand, CheckedBy, DecideGate, DiscussGate, EnterPageCode, MailCheck, MailKey,
    MailToken, OriginProof, OriginReason, PageProof, Quorum, RecordReply, Reminders, ReplyEvidence,
    SendPageCode, TokenUse,
};
use switchward_state::catalogue::LinkAuth;
use switchward_state::delivery::ExchangeProblem;
use switchward_state::policy::PinnedPolicy;
use switchward_state::run::{Answer, EndTurn, Once, Pinned, RecordData, RecordEvent, RunCommand};
use switchward_state::session::{
    Assisted, Cancel, CancelComment, Expiring, Pause, PostMessage, Queued, Remove, RemoveStep, Removing,
    Resume, SessionCommand, Start, Sweep, SwitchRun,
};
use switchward_state::work::{
    CompleteWork, ExtendLease, FailWork, LeaseWork, ReleaseWork, WorkCommand, WorkFailure,
};
use switchward_state::{Body, Key};
use switchward_testkit::start_of;

use super::digest;
use super::policy::limits;

const SESSION: SessionId = SessionId([7; 16]);

fn key() -> Key {
    Key::session(TenantId(1), SESSION)
}

pub(crate) fn token() -> MailToken {
    MailKey([3; 32]).token(TokenUse::Page, TenantId(1), SESSION, OpenId(5), 1, "kim@example.com")
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn start() -> Start {
    let queued = |definition: &str| Queued { definition: definition.into(), version: 2, machine: digest(2) };
    Start {
        key: Some("order-1".into()),
        labels: vec![("team".into(), "web".into())],
        input: br#"{"a":1}"#.to_vec(),
        queue: vec![queued("next")],
        contact: Some("sam@example.com".into()),
        workflows: vec![queued("order")],
        assistant: Some(Assisted { name: "desk".into(), instructions: "Be brief.".into() }),
        message: Some("Hello".into()),
        callees: vec![Pinned {
            callee: Callee { name: "child".into(), version: None, kind: CalleeKind::Definition },
            version: 1,
            machine: digest(3),
        }],
        reply_tenant: Some("acme".into()),
        audience: vec!["lead@example.com".into()],
        reminders: Some(Reminders { every_ms: 3_600_000, max: 2 }),
        quorum: Some(Quorum::AtLeast(2)),
        escalation: vec!["boss@example.com".into()],
        any_approver_address: true,
        policies: vec![PinnedPolicy { of: "order".into(), name: "p".into(), version: 1, machine: digest(4) }],
        ..start_of("order", 2, digest(1), "agent")
    }
}

fn sessions() -> Vec<SessionCommand> {
    let (comment, keys, ended_by) = ("why".to_owned(), vec![key()], Time(9));
    let expiring = Expiring { session: SESSION, keys: keys.clone(), sequence: 4 };
    vec![
        SessionCommand::Start(start()),
        SessionCommand::PostMessage(PostMessage { text: "Hello".into() }),
        SessionCommand::SwitchRun(SwitchRun { workflow: "order".into() }),
        SessionCommand::Pause(Pause { comment: comment.clone() }),
        SessionCommand::Resume(Resume { comment: comment.clone() }),
        SessionCommand::Cancel(Cancel::written(comment)),
        SessionCommand::Cancel(Cancel { comment: CancelComment::RemovedAfterBackup }),
        SessionCommand::Sweep(Sweep { key: key() }),
        SessionCommand::Remove(Remove { how: Removing::Erased, ended_by: Some(ended_by) }),
        SessionCommand::RemoveStep(RemoveStep::Rows { session: SESSION, keys: keys.clone(), last: Some(3) }),
        SessionCommand::RemoveStep(RemoveStep::Expire { sessions: vec![expiring], ended_by }),
        SessionCommand::RemoveStep(RemoveStep::Forget { keys: keys.clone(), ended_by }),
        SessionCommand::RemoveStep(RemoveStep::OfTenant { keys }),
        SessionCommand::RemoveStep(RemoveStep::TenantGone),
    ]
}

fn runs() -> Vec<RunCommand> {
    let token = MailKey([3; 32]).reply_token("acme", SESSION, switchward_machine::RunId(1), 2);
    vec![
        RunCommand::Answer(Answer { state: Some("gate".into()), answer: "yes".into(), note: "n".into() }),
        RunCommand::EndTurn(EndTurn { text: "done".into() }),
        RunCommand::RecordData(RecordData { values: object(json!({"usd": 3.5, "who": null})) }),
        RunCommand::SignalCompletion,
        RunCommand::RetryNode,
        RunCommand::RecordEvent(RecordEvent {
            key: "paid".into(),
            data: object(json!({"usd": [1, {"a": true}]})),
            state: Some("wait".into()),
            model: true,
            token: Some(token),
            webhook: Some("shop".into()),
            once: Some(Once { message: [6; 16], known_ms: 60_000 }),
        }),
    ]
}

fn approvals() -> Vec<ApprovalCommand> {
    let (gate, comment, shown) = (OpenId(5), "fine".to_owned(), Some(digest(8)));
    let proof = Some(PageProof { token: token(), by: LinkAuth::Code });
    let decide = DecideGate {
        gate,
        decision: Decision::Approve,
        comment: comment.clone(),
        shown,
        limits: Some(limits()),
        proof: proof.clone(),
    };
    let reply = RecordReply {
        from: "kim@example.com".into(),
        subject: "Re: Approve?".into(),
        text: "approve\n> Approve?".into(),
        authenticated: true,
        signed: true,
        pages_only: false,
        brought_by: Some("ops".into()),
        vouched: false,
        model: true,
        token: Some(token()),
        evidence: Some(ReplyEvidence {
            proof: OriginProof::Signed,
            by: CheckedBy::Server,
            dkim: MailCheck::Pass,
            spf: MailCheck::None,
            dmarc: MailCheck::None,
            hidden_text: true,
            reasons: vec![OriginReason::PolicyPassed],
        }),
        limits: Some(limits()),
    };
    vec![
        ApprovalCommand::RecordReply(reply),
        ApprovalCommand::DecideGate(decide),
        ApprovalCommand::DiscussGate(DiscussGate {
            gate,
            comment: comment.clone(),
            shown,
            proof: proof.clone(),
        }),
        ApprovalCommand::AnswerGate(AnswerGate {
            gate,
            answer: json!({"rating": 4}),
            comment: comment.clone(),
            shown,
            proof: proof.clone(),
        }),
        ApprovalCommand::SendPageCode(SendPageCode { token: token() }),
        ApprovalCommand::EnterPageCode(EnterPageCode { token: token(), code: "123 456".into() }),
        ApprovalCommand::AssignGate {
            gate,
            from: Some("kim@example.com".into()),
            to: "dana".into(),
            comment,
            shown,
            proof,
        },
    ]
}

fn works() -> Vec<WorkCommand> {
    let (item, fence, cost, tokens) = (OpenId(6), 2, Micros(1_500), 70);
    let result = json!({"text": "ok"});
    let failure = WorkFailure::Reported { text: "the model does not answer".to_owned() };
    let attempt = WorkFailure::Attempt {
        reason: DeliveryReason::ReceiverRefused,
        detail: ExchangeProblem::ReceiverStatus { status: 503 }.into(),
    };
    let fail = |failure| WorkCommand::Fail(FailWork { item, fence, failure, cost, tokens, unknown: true });
    vec![
        WorkCommand::Lease(LeaseWork { item, worker: "w-1".into(), lease_ms: 30_000 }),
        WorkCommand::Extend(ExtendLease { item, fence, lease_ms: 30_000 }),
        WorkCommand::Complete(CompleteWork { item, fence, result: result.clone(), cost, tokens, next: None }),
        WorkCommand::Complete(CompleteWork { item, fence, result, cost, tokens, next: Some("done".into()) }),
        fail(failure),
        fail(attempt),
        fail(WorkFailure::TooLarge),
        WorkCommand::Release(ReleaseWork { item, fence }),
    ]
}

pub(crate) fn commands() -> Vec<Body> {
    let mut all: Vec<Body> = sessions().into_iter().map(Body::Session).collect();
    all.extend(runs().into_iter().map(Body::Run));
    all.extend(approvals().into_iter().map(Body::Approval));
    all.extend(works().into_iter().map(Body::Work));
    all
}
