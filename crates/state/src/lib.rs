//! What the engine stores and what its parts send each other: rows, keys, ids, commands, events and replies, each with
//! its codec, and `apply_decision`, which applies a decision's events to rows. The rows that a batch has changed so far are
//! kept elsewhere, behind [`WriteRows`].
//!
//! One folder for each aggregate: sessions, runs, approvals, work, deliveries, policies and the catalogue. The `engine`
//! has the same folders and decides. Nothing is judged here: values are copied out of events.
//!
//! This crate must never know: how a command is decided, formats, a clock, IO, threads, Raft, how rows are stored.
//! State is [`Row`]s by [`Key`]; a key cannot be made without a tenant.

#[macro_use]
mod is_planted;

mod actor;
mod admission;
mod apply;
pub mod approval;
pub mod catalogue;
mod command;
mod command_from;
mod command_traits;
mod decision;
pub mod delivery;
mod event;
mod event_from;
mod form_error;
mod history;
mod index;
mod key;
pub mod level;
pub mod limits;
mod loaded;
mod make;
mod mark;
mod memory;
mod open;
mod open_item;
mod outbox_scope;
#[cfg(feature = "planted")]
pub mod planted;
pub mod policy;
mod public_event;
mod rejection;
mod reply;
mod request_id;
mod row;
mod row_kind;
mod row_memory;
mod rows;
pub mod run;
mod scope;
pub mod seal;
pub mod session;
mod shared_machine;
mod site;
mod size;
mod view;
mod wire;
pub mod work;

pub use actor::Actor;
pub use admission::AdmissionClass;
pub use apply::{apply, apply_decision, finish, level as level_of_rows, stamp};
pub use command::{Body, Command};
pub use command_traits::{ChangedTenant, CommandTraits, Shown};
pub use decision::{Decision, TurnRecord};
pub use event::Event;
pub use form_error::FormError;
pub use history::{Answered, History, StoredHistory};
pub use index::{Due, IndexKey, index_keys, may_be_indexed};
pub use key::{Key, KeyBytes, Kind, REMOVED_KINDS};
pub use level::{Level, Levels};
pub use loaded::Loaded;
pub use mark::mark;
pub use open::{ItemHead, Open};
pub use open_item::{ItemKind, ItemType, ListedItem, OpenItem};
pub use outbox_scope::{NO_SESSION, OutboxScope};
pub use public_event::{PublicEvent, PublicValue};
pub use rejection::{Reason, Rejection};
pub use reply::Reply;
pub use request_id::RequestId;
pub use row::{Request, Row, machine_bytes};
pub use row_kind::RowKind;
pub use rows::{Changes, ReadRows, SharedRow, WriteRows};
pub use scope::{Scope, ScopeKind};
pub use shared_machine::SharedMachine;
pub use site::Site;
pub use view::{View, ViewError, tenant_numbered};
pub use wire::{all_known, framed, framed_about, unframed};
