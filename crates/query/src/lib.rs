//! Typed reads of rows. Outside the core, this is the only crate that names rows, their keys and the views that hold them; the
//! repository check `queries` holds the crates above to that.
//!
//! - [`Evaluate`] is a query with typed fields and a typed answer. It is evaluated on the rows that this server has of one
//!   shard, which a [`Reader`] gets. [`Ask`] says which shard that is.
//! - [`List`] is a list that every shard keeps as an index; [`Scan`] reads one shard's part of it.
//! - [`Query`] is each of them in the form in which a server without the rows can send it to one that has them.
//! - [`outgoing`] has the reads of the delivery role, which never leave the server.
//!
//! This crate must never know: gRPC, what a caller may see, how a shard gets its rows.
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
pub mod limits;
mod list;
pub mod outgoing;
mod policy;
mod session;
mod tenant;
mod work;

pub use approval::{
    ApprovalQuery, CheckMailToken, FindLinkedGate, GateShown, GetGate, LinkedGate, ListGates, Origin,
    ShowGate,
};
pub use ask::{Ask, AskStale, Evaluate, Reader, Sent, Source};
pub use catalogue::{
    CatalogueQuery, DefinitionUse, FindUses, GetAssistant, GetDefinition, GetMachine, GetSourceVersion,
    GetVersion, ListAssistants, ListDefinitions, PinDefinitions, Pinning, UseKind, Uses,
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
pub use list::{Bounds, Compared, Entry, List, Rows, Scan};
pub use policy::{CheckLedger, ExplainCall, PolicyQuery};
pub use session::{
    CheckRemoved, CheckReplyToken, GetAnswered, GetSession, ListPinned, ListSessions, SessionQuery,
    SessionShown, ShowSession, TimeTerm,
};
pub use tenant::{
    GetApiKey, GetMailKeys, GetMailRetention, GetShardTenant, GetTenant, GetTenantNumbered, GetTenantRecord,
    HasTenant, ListApiKeys, ListTenantNames, ListTenants, ListTenantsHeld, TenantQuery,
};
pub use work::{FiredTimers, GetFirstTimer, GetWork, ListReady, Ready, WorkQuery};
