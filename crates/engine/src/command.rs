//! Commands: requests to change something, each with its actor.

mod catalogue;
mod conversation;
mod effects;
mod gates;
mod make;
mod policies;
mod quotas;
mod removal;
mod republish;
mod role;
mod settings;
mod start;
mod work;

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Bucket, Digest, Micros, SessionId, TenantId, Time};

pub use catalogue::{
    ActivateVersion, ChangeEndpoint, ChangeWebhookSource, CreateKey, CreateTenant, DeleteAssistant, Deploy,
    EnsureTenancy, InstallMachine, InstallTenancy, PutAssistant, PutDirectory, Reseal, RetireVersion,
    RevokeKey, UpdateTenant,
};
pub use conversation::{EndTurn, Once, PostMessage, Queued, RecordData, RecordEvent, RecordReply, SwitchRun};
pub use effects::{AckEffect, DeferEffect, DismissEffect, FailEffect, RecordBounce, RetryEffect};
pub use gates::{AnswerGate, DecideGate, DiscussGate, EnterPageCode, PageProof, SendPageCode};
pub use policies::{AttachPolicy, RemoveTenantPolicy, SetTenantPolicy};
pub use quotas::{PutQuotas, Quota, Quotas};
pub use removal::{DeleteTenant, Expiring, HoldEffects, PutRetention, Remove, RemoveStep};
pub use republish::{PublishedEvent, Republish};
pub use role::Role;
pub use settings::{DefaultEffect, DefaultSetIn, LinkAuth, Settings};
pub use start::Start;
pub use work::{CompleteWork, ExtendLease, FailWork, LeaseWork, ReleaseWork};

use crate::Args;
use crate::key::ledger_home;
use crate::policy::{LedgerRule, LimitCheck};

/// A request, and everything that is known of its actor.
#[derive(Debug, Clone)]
pub struct Command {
    /// From the credential, never from the request's body.
    pub tenant: TenantId,
    /// What it is about.
    pub scope: Scope,
    /// Makes a repetition find the first reply.
    pub request: Option<RequestId>,
    /// The sequence that the caller saw last; another one is refused with SEQUENCE_CONFLICT.
    pub expected_sequence: Option<u64>,
    /// Who requests it.
    pub actor: Actor,
    /// The tenant's switches as they are now.
    pub settings: Settings,
    /// The trace that it belongs to (`traceparent`), kept with what it causes.
    pub trace: Option<String>,
    /// The request.
    pub body: Body,
}

/// What a command is about: whose rows it may change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum Scope {
    /// One session.
    #[n(0)]
    Session(#[n(0)] SessionId),
    /// The ledgers of one process, by its name.
    #[n(1)]
    Ledger(#[n(0)] String),
    /// Tenants, keys and definitions.
    #[n(2)]
    Catalogue,
    /// The shard that the command is sent to.
    #[n(3)]
    Shard,
}

impl Scope {
    /// The bucket that its rows live in; `None` for the catalogue and for a shard as a whole.
    #[must_use]
    pub fn bucket(&self, tenant: TenantId) -> Option<Bucket> {
        match self {
            Self::Session(session) => Some(session.bucket()),
            Self::Ledger(process) => Some(ledger_home(tenant, process).0),
            Self::Catalogue | Self::Shard => None,
        }
    }
}

/// A request id, and the digest of the body that came with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId {
    /// 1 to 128 characters.
    pub id: String,
    /// Of the request as the caller sent it.
    pub body: Digest,
}

impl RequestId {
    /// The part of a key that stands for the id.
    #[must_use]
    pub fn hash(&self) -> [u8; 16] {
        let digest = Digest::of(self.id.as_bytes());
        let mut hash = [0u8; 16];
        hash.copy_from_slice(&digest.0[..16]);
        hash
    }
}

/// Who does something.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Actor {
    /// The person or program; two keys of one subject are one.
    #[n(0)]
    pub subject: String,
    /// What the credential allows.
    #[n(1)]
    pub role: Role,
}

impl Actor {
    /// The server itself.
    #[must_use]
    pub fn server() -> Self {
        Self { subject: "server".into(), role: Role::Server }
    }
}

/// The requests.
#[derive(Debug, Clone)]
pub enum Body {
    /// Begin a session.
    Start(Start),
    /// Answer a checkpoint.
    Answer(Answer),
    /// The user says something.
    PostMessage(PostMessage),
    /// The agent's turn is over.
    EndTurn(EndTurn),
    /// The agent records data.
    RecordData(RecordData),
    /// The agent says that its work here is done.
    SignalCompletion,
    /// The agent asks for another attempt.
    RetryNode,
    /// An event comes from outside.
    RecordEvent(RecordEvent),
    /// A reply comes by mail.
    RecordReply(RecordReply),
    /// The conversation turns to another workflow.
    SwitchRun(SwitchRun),
    /// A worker takes work.
    LeaseWork(LeaseWork),
    /// A worker is still at it.
    ExtendLease(ExtendLease),
    /// A worker is done.
    CompleteWork(CompleteWork),
    /// A worker gives up.
    FailWork(FailWork),
    /// A worker hands work back.
    ReleaseWork(ReleaseWork),
    /// May the agent call this?
    Authorize(Authorize),
    /// A call was made.
    ReportCall(ReportCall),
    /// Money or tokens were used.
    ReportUsage(ReportUsage),
    /// A person decides.
    DecideGate(DecideGate),
    /// A person says something about a decision, and does not make it.
    DiscussGate(DiscussGate),
    /// A participant answers their part of a task.
    AnswerGate(AnswerGate),
    /// A code is mailed to the person whose decision page it is.
    SendPageCode(SendPageCode),
    /// Somebody enters the code that was mailed to them.
    EnterPageCode(EnterPageCode),
    /// A cap is set again.
    RaiseCap(RaiseCap),
    /// Stop in place.
    Pause(Pause),
    /// Go on.
    Resume(Resume),
    /// Stop for good.
    Cancel(Cancel),
    /// An effect has arrived.
    AckEffect(AckEffect),
    /// An effect cannot be delivered.
    FailEffect(FailEffect),
    /// An effect is tried again later.
    DeferEffect(DeferEffect),
    /// A mail has come back.
    RecordBounce(RecordBounce),
    /// A dead letter is sent again.
    RetryEffect(RetryEffect),
    /// A dead letter is given up.
    DismissEffect(DismissEffect),
    /// Something may have lapsed.
    Sweep(Sweep),
    /// Count a call before it is decided.
    Reserve(Reserve),
    /// The call was permitted.
    Confirm(Confirm),
    /// The call was reported, or will not be.
    Settle(Settle),
    /// Make a machine known to a shard.
    InstallMachine(InstallMachine),
    /// A new tenant.
    CreateTenant(CreateTenant),
    /// Other switches.
    UpdateTenant(UpdateTenant),
    /// Other quotas.
    PutQuotas(PutQuotas),
    /// A new API key.
    CreateKey(CreateKey),
    /// An API key is void.
    RevokeKey(RevokeKey),
    /// A definition is published.
    Deploy(Deploy),
    /// Another version is used from now on.
    ActivateVersion(ActivateVersion),
    /// A policy document starts or stops to hold for a definition's new sessions.
    AttachPolicy(AttachPolicy),
    /// A policy document holds for all sessions of the tenant from now on.
    SetTenantPolicy(SetTenantPolicy),
    /// It stops to hold.
    RemoveTenantPolicy(RemoveTenantPolicy),
    /// No session starts with a version any more.
    RetireVersion(RetireVersion),
    /// An assistant is created or replaced.
    PutAssistant(PutAssistant),
    /// An assistant is deleted.
    DeleteAssistant(DeleteAssistant),
    /// A source of webhooks is created, changed or deleted.
    WebhookSource(ChangeWebhookSource),
    /// A tenant that had no mail tokens has them from now on.
    EnsureTenancy(EnsureTenancy),
    /// Who is who in a tenant.
    PutDirectory(PutDirectory),
    /// What a shard must know of a tenant.
    InstallTenancy(InstallTenancy),
    /// An endpoint of a tenant changes.
    Endpoint(ChangeEndpoint),
    /// An endpoint gets the events that it has missed.
    Republish(Republish),
    /// The data of a session is removed.
    Remove(Remove),
    /// A step of that.
    RemoveStep(RemoveStep),
    /// How long what has ended is kept.
    PutRetention(PutRetention),
    /// Nothing of a tenant goes out any more, or what waits goes out again.
    HoldEffects(HoldEffects),
    /// A tenant is deleted, with all that it has.
    DeleteTenant(DeleteTenant),
    /// Secrets of a tenant are sealed under another key.
    Reseal(Reseal),
}

/// Answer the checkpoint that the session stands at.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The state that the caller believes it stands at.
    pub state: Option<String>,
    /// One of its answers.
    pub answer: String,
    /// Free text for the history.
    pub note: String,
}

/// May the agent call this?
#[derive(Debug, Clone)]
pub struct Authorize {
    /// A path such as `mcp:filesystem:write_file`.
    pub capability: String,
    /// What it would be called with.
    pub args: Args,
    /// What it is believed to cost.
    pub estimate: Option<Micros>,
    /// The caller's name for the call.
    pub call_id: String,
    /// The ledger's answer, if limits apply.
    pub limits: Option<LimitCheck>,
    /// The mail that goes out in the same decision if the call is allowed; the call is then made and reported.
    pub mail: Option<crate::Outgoing>,
}

/// A call was made.
#[derive(Debug, Clone)]
pub struct ReportCall {
    /// The call; without it, the oldest unreported one of the capability.
    pub call_id: Option<String>,
    /// What was called.
    pub capability: Option<String>,
    /// Whether it worked.
    pub success: bool,
    /// What it cost.
    pub cost: Micros,
    /// What it used.
    pub tokens: u64,
}

/// Money or tokens were used, by no call in particular.
#[derive(Debug, Clone)]
pub struct ReportUsage {
    /// Money.
    pub cost: Micros,
    /// Tokens.
    pub tokens: u64,
}

/// A cap is set again.
#[derive(Debug, Clone)]
pub struct RaiseCap {
    /// The parameter: `cost_usd`, `tokens`.
    pub param: String,
    /// Its new value, in the parameter's own unit.
    pub value: u64,
}

/// Stop in place.
#[derive(Debug, Clone)]
pub struct Pause {
    /// Free text for the history.
    pub comment: String,
}

/// Go on.
#[derive(Debug, Clone)]
pub struct Resume {
    /// Free text for the history.
    pub comment: String,
}

/// Stop for good.
#[derive(Debug, Clone)]
pub struct Cancel {
    /// Free text for the history.
    pub comment: String,
}

/// The row behind this key may hold something that has lapsed.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The row.
    pub key: crate::Key,
}

/// Count a call before it is decided.
#[derive(Debug, Clone)]
pub struct Reserve {
    /// The session and call that it is for; stable over retries.
    pub call: Digest,
    /// The rules whose limits are checked.
    pub rules: Vec<LedgerRule>,
    /// Money held until the call is reported.
    pub estimate: Micros,
}

/// The call was permitted.
#[derive(Debug, Clone)]
pub struct Confirm {
    /// As reserved.
    pub call: Digest,
    /// As reserved.
    pub rules: Vec<LedgerRule>,
    /// As reserved.
    pub estimate: Micros,
    /// When it was reserved: the time at which it counts.
    pub at: Time,
}

impl Confirm {
    /// The request id under which a call is counted, so that it is counted once however often it is confirmed.
    #[must_use]
    pub fn request(&self) -> RequestId {
        Self::request_of(self.call)
    }

    /// The same, by the call's name.
    #[must_use]
    pub fn request_of(call: Digest) -> RequestId {
        RequestId { id: format!("confirm:{call}"), body: call }
    }
}

/// The call was reported, or will not be made: its reservation ends.
#[derive(Debug, Clone)]
pub struct Settle {
    /// As reserved; none for a call that never reserved anything.
    pub call: Option<Digest>,
    /// The rules that are charged.
    pub rules: Vec<LedgerRule>,
    /// What it cost, in the period of `at`.
    pub cost: Micros,
    /// When it was reported.
    pub at: Time,
    /// Whether the call was never permitted: then it does not count either.
    pub release: bool,
}
