//! Every read of the gateway, as a query with typed fields and a typed answer.
//!
//! Only this folder names rows, their keys and the views that hold them: the services ask, and convert what they are
//! answered to messages. A query is evaluated here on rows of this server; each can be encoded ([`Query`]), so that a
//! server without these rows can ask one that has them.
//!
//! Chosen: one type for each query, with the type of its answer, and an enum of these types for what is sent. Rejected: one
//! enum of queries and one of answers for callers too, who would have to expect every kind of answer.

mod approval;
mod ask;
mod catalogue;
mod delivery;
mod every;
mod export;
mod history;
mod list;
mod policy;
mod session;
mod tenant;
mod work;

pub use approval::{
    ApprovalQuery, CheckMailToken, FindLinkedGate, GateShown, GetGate, LinkedGate, ListGates, Origin,
    ShowGate,
};
pub use ask::{Ask, Evaluate, Sent, Source};
pub use catalogue::{
    CatalogueQuery, GetAssistant, GetDefinition, GetMachine, GetSourceVersion, GetVersion, ListAssistants,
    ListDefinitions, PinDefinitions, Pinning,
};
pub use delivery::{
    DeliveryQuery, EffectShown, FindWebhookSource, GetEffect, GetMissed, GetWebhookSource, ListChanged,
    ListEffects, ListWebhookSources,
};
pub use every::Query;
pub use export::{
    ExportPart, ExportQuery, GetExportPart, GetNextSession, GetRemains, GetStarter, ListTenantChanges,
    NumberedChange, Remains,
};
pub use history::{GetHistory, GetHistoryBefore, GetMachines, HistoryFrom, HistoryRow};
pub use list::{Bounds, Compared, List, Rows};
pub use policy::{CheckLedger, ExplainCall, PolicyQuery};
pub use session::{
    CheckRemoved, CheckReplyToken, GetAnswered, GetSession, ListSessions, SessionQuery, SessionShown,
    ShowSession, TimeTerm,
};
pub use tenant::{
    GetApiKey, GetMailKeys, GetMailRetention, GetShardTenant, GetTenant, GetTenantNumbered, GetTenantRecord,
    HasTenant, ListApiKeys, ListTenantNames, ListTenants, TenantQuery,
};
pub use work::{FiredTimers, GetFirstTimer, GetWork, ListReady, Ready, WorkQuery};

pub(crate) use ask::Reader;
pub(crate) use list::{Entry, Scan};
