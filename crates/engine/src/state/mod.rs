//! The rows that the engine's state is made of. Every one is a stored form.

mod catalogue;
mod children;
mod data;
mod endpoint;
mod event_source;
mod gate;
mod item;
mod ledger;
mod outbox;
mod pending;
mod person;
mod policy;
mod quorum;
mod removal;
pub(crate) mod row;
mod run;
mod session;
mod settings;
mod tenancy;
mod tenant_change;
mod usage;
mod via;
mod webhook_source;

pub use catalogue::{ApiKey, Assistant, Definition, Retired, SourceFile, Tenant, Version};
pub use children::{Parent, Pinned, Slot};
pub use data::{Data, Json};
pub use endpoint::{Endpoint, EndpointHealth};
pub use event_source::{EventBinding, EventSource};
pub use gate::{
    Asked, AskedCall, Bounced, Call, Closed, Gate, Grant, Open, PageCodes, Part, Reminding, Resolution,
};
pub use item::{About, Body as OpenItemBody, Lease, OpenItem, Owed, Why};
pub(crate) use ledger::LimitLeft;
pub use ledger::{LedgerRow, Reservation, Spent};
pub use outbox::{Attempt, Dead, Effect, EffectBody, Fate, MailHead, Outbox, Purpose};
pub use pending::PendingInput;
pub(crate) use person::mailbox;
pub use policy::{PinnedPolicy, TenantPolicy};
pub(crate) use quorum::Tally;
pub use quorum::{Quorum, Vote, Voting};
pub use removal::{KeptDecision, Removal, Removed, Removing, Retention, RetentionRule};
pub(crate) use row::machine_bytes;
pub use row::{Answered, History, Request, Row, RowError};
pub use run::{Choice, Due, Held, Judged, Loop, Run, Unknown};
pub(crate) use session::FIRST_ID;
pub use session::{Assisted, Attached, Early, MailDay, Meters, Remembered, Reminders, Said, Session};
pub use settings::{GateSettings, Setting, Settled, Source};
pub(crate) use settings::{OF_DEFINITION, OF_OWNER};
pub use tenancy::{Deletion, Directory, DirectoryEntry, Tenancy, TenantOutbox};
pub use tenant_change::{ChangedPart, TenantChange};
pub(crate) use tenant_change::{between, changed};
pub use usage::Usage;
pub use via::Via;
pub use webhook_source::{Correlation, SourceSecret, TextSource, WebhookSource};
