//! The engine: `decide` turns commands into events, `evolve` turns events into state.
//!
//! The leader of a shard calls [`decide`] on a batch of [`Command`]s and the state as it stands, and replicates the
//! [`Decision`]; every replica, the leader too, calls [`evolve`] with it and keeps the rows that come back. Nothing
//! is read but the rows of the [`View`] and the time stamped on the batch, so two replicas cannot disagree.
//!
//! This crate must never know: formats, a clock, IO, threads, Raft, how rows are stored.
//! State is [`Row`]s by [`Key`]; a key cannot be made without a tenant.

mod acts;
mod args;
mod attached;
mod audience;
mod budget;
mod callees;
mod command;
mod commands;
mod comments;
mod data;
mod decide;
mod decision;
mod discussion;
mod event;
mod events;
mod evolve;
mod faults;
mod frozen;
mod gates;
mod guards;
mod held;
mod index;
mod intent;
mod key;
pub mod limits;
mod mail_caps;
mod mail_token;
mod messages;
mod moves;
mod outgoing;
mod period;
pub mod policy;
mod public;
mod publish;
mod reach;
mod redact;
mod rejection;
mod remembered;
mod reminders;
mod reply;
mod reply_token;
mod scope;
mod seal;
mod shown;
mod state;
mod tasks;
mod turn;
mod view;
mod views;
mod votes;
mod working;

pub use args::{Args, BadArgs};
pub use attached::pin_policies;
pub use callees::pin_callees;
pub use command::{
    AckEffect, ActivateVersion, Actor, Answer, AnswerGate, AttachPolicy, Authorize, Body, Cancel,
    ChangeEndpoint, ChangeWebhookSource, Command, CompleteWork, Confirm, CreateKey, CreateTenant, DecideGate,
    DefaultEffect, DefaultSetIn, DeferEffect, DeleteAssistant, DeleteTenant, Deploy, DiscussGate,
    DismissEffect, EndTurn, EnsureTenancy, EnterPageCode, Expiring, ExtendLease, FailEffect, FailWork,
    HoldEffects, InstallMachine, InstallTenancy, LeaseWork, LinkAuth, Once, PageProof, Pause, PostMessage,
    PublishedEvent, PutAssistant, PutDirectory, PutQuotas, PutRetention, Queued, Quota, Quotas, RaiseCap,
    RecordBounce, RecordData, RecordEvent, RecordReply, ReleaseWork, Remove, RemoveStep, RemoveTenantPolicy,
    ReportCall, ReportUsage, Republish, RequestId, Reseal, Reserve, Resume, RetireVersion, RetryEffect,
    RevokeKey, Role, Scope, SendPageCode, SetTenantPolicy, Settings, Settle, Start, Sweep, SwitchRun,
    UpdateTenant,
};
pub use commands::exceeded as quota_exceeded;
pub use comments::{Comment, comments};
pub use decide::{Decided, decide, decide_while};
pub use decision::{Decision, Turn as TurnRecord};
pub use event::{
    AssistantFact, EndpointFact, Event, Flow, PageCodeFact, PageCodeStep, PendingFact, PolicyFact,
    RemovalFact, ReplyFact, SenderProof, Speaker, Standing, TenantFact, VersionFact, VoteFact,
    WebhookSourceFact, Writer,
};
pub use evolve::{Changes, evolve};
pub use held::holds_effects;
pub use index::{Due, IndexKey, index_keys, mark, may_be_indexed};
pub use key::{Key, KeyBytes, Kind, REMOVED_KINDS, TENANT_ITSELF, scope_of_effects};
pub use mail_caps::{MailCap, MailCount, MailFull, mail_counts, mail_full};
pub use mail_token::{MAIL_TOKEN_BYTES_MAX, MailKey, MailToken, NoMailToken, SignInPart, Way};
pub use outgoing::{BadMail, Draft, Outgoing};
pub use period::text as time_text;
pub use public::{Machines, PublicEvent, machines_of, public_events};
pub use publish::{Missed, PUBLISHED, missed};
pub use reach::Reach;
pub use redact::{decided, history as redacted, is_redacted};
pub use rejection::{Reason, Rejection};
pub use remembered::is_remembered;
pub use reply::{Authorized, Effect as EffectOfCall, MatchedRule, Remaining, Reply};
pub use reply_token::{NoReplyToken, ReplyToken, ReplyTokens};
pub use seal::{KeyRing, NoRingKey, NotOpened, RingKey, RingKeyId, SEAL_NONCE_BYTES, Sealed, SecretOf};
pub use state::{
    About, Answered, ApiKey, Asked, AskedCall, Assistant, Assisted, Attached, Attempt, Bounced, Call,
    ChangedPart, Choice, Closed, Correlation, Data, Dead, Definition, Deletion, Directory, DirectoryEntry,
    Due as Deferral, Early, Effect, EffectBody, Endpoint, EndpointHealth, EventBinding, EventSource, Fate,
    Gate, GateSettings, Grant, Held, History, Json, Judged, KeptDecision, Lease, LedgerRow, Loop, MailDay,
    MailHead, Meters, Open, OpenItem, OpenItemBody, Outbox, Owed, PageCodes, Parent, Part, PendingInput,
    Pinned, PinnedPolicy, Purpose, Quorum, Remembered, Reminders, Reminding, Removal, Removed, Removing,
    Request, Reservation, Resolution, Retention, RetentionRule, Retired, Row, RowError, Run, Said, Session,
    Setting, Settled, Slot, Source as SettingSource, SourceFile, SourceSecret, Spent, Tenancy, Tenant,
    TenantChange, TenantOutbox, TenantPolicy, TextSource, Unknown, Usage, Version, Via, Vote, Voting,
    WebhookSource, Why,
};
pub use view::{View, ViewError, tenant_numbered};
pub use views::{
    Below, EffectView, GateView, RunView, SessionView, WorkView, effect_view, gate_view, run_views,
    session_view, work_view,
};
pub use working::Held as SharedRow;
