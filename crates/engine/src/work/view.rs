//! What a worker is handed.

use minicbor::{Decode, Encode};
use serde_json::{Map, Value};
use switchward_machine::{Exit, Node, OpenId, SessionId, TenantId, WorkKind};
use switchward_state::run::{Data, Json, object};
use switchward_state::session::Assisted;
use switchward_state::work::{About, Owed, WorkCommand, WorkItem};
use switchward_state::{Body, Command, ItemHead, Key, Loaded, ReadRows, Reply, Scope, View, ViewError};

use crate::loaded::{LoadedRows, WorkRows};
use crate::policy::machine_of;
use crate::run::scope::read_by;
use crate::session::shown::AnsweredSession;
use crate::work::leases::schema_of;

/// Work of a session, with all that a worker needs.
#[derive(Debug, Clone, Encode, Decode)]
pub struct WorkView {
    /// Its number in the session.
    #[n(0)]
    pub id: OpenId,
    /// Where it belongs, and since when it is open.
    #[n(1)]
    pub head: ItemHead,
    /// What a worker must be able to do.
    #[n(2)]
    pub kind: WorkKind,
    /// What the worker is handed, and who has it.
    #[n(3)]
    pub owed: Owed,
    /// The name of its node.
    #[n(4)]
    pub node: String,
    /// Which attempt of the node's body it belongs to, from 1.
    #[n(5)]
    pub attempt: u32,
    /// The definition's version.
    #[n(6)]
    pub version: u32,
    /// The JSON Schema of a result.
    #[n(7)]
    pub schema: Json,
    /// The run's data.
    #[cbor(n(8), with = "object")]
    pub data: Map<String, Value>,
    /// The user's last message.
    #[n(9)]
    pub said: Option<String>,
    /// The assistant that the session is with, if any.
    #[n(10)]
    pub assistant: Option<Assisted>,
    /// The exits that its result can name, in the author's order.
    #[cbor(n(20), skip_if = "Vec::is_empty")]
    pub exits: Vec<NamedExit>,
    /// The model that the definition wants for it; `None` if it names none.
    #[n(21)]
    pub model: Option<String>,
}

/// An exit that a result can name.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NamedExit {
    /// What a result says to choose it.
    #[n(0)]
    pub name: String,
    /// What the author calls it; may be empty.
    #[n(1)]
    pub label: String,
}

impl WorkView {
    /// The name by which a receiver outside can recognise repeats.
    #[must_use]
    pub fn name_outside(&self, session: SessionId) -> String {
        format!("{session}-{}", self.owed.known_as(self.id).0)
    }
}

/// Open work of a session of this tenant; `None` if there is none.
///
/// # Errors
/// A row cannot be read.
pub fn work_view(
    view: &dyn View,
    tenant: TenantId,
    session: SessionId,
    work: OpenId,
) -> Result<Option<WorkView>, ViewError> {
    let found = rows_of(view, tenant, session, work)?;
    Ok(found.map(|rows| view_of(work, &rows)))
}

fn rows_of(
    rows: &dyn ReadRows,
    tenant: TenantId,
    session: SessionId,
    work: OpenId,
) -> Result<Option<WorkRows>, ViewError> {
    let Some(item) = rows.work_at(&Key::item(tenant, session, work))? else { return Ok(None) };
    let run = rows.run(tenant, session, item.head.run)?;
    let machine = machine_of(rows, tenant, &run)?;
    let data = rows.data_at(&Key::data(tenant, session, item.head.run))?;
    let seen = match &run.frame {
        Some(_) => Some(Data { values: read_by(rows, tenant, session, item.head.run)?, ..Data::default() }),
        None => None,
    };
    let said = rows.last_message_at(&Key::last_message(tenant, session))?;
    let session = rows.session(tenant, session)?.map(AnsweredSession::Row);
    Ok(Some(WorkRows { item, run, machine, data, seen, said, session }))
}

fn view_of(work: OpenId, rows: &WorkRows) -> WorkView {
    let WorkItem { kind, owed } = rows.item.body.clone();
    let node = rows.machine.node(rows.item.head.node);
    WorkView {
        id: work,
        kind,
        node: node.map(|node| node.name.clone()).unwrap_or_default(),
        attempt: rows.run.attempt,
        version: rows.run.version,
        schema: Json(schema_of(&rows.machine, &rows.run, &owed)),
        exits: node.filter(|_| owed.about == About::Act).map(named_exits).unwrap_or_default(),
        model: node.and_then(|node| node.model.clone()).or_else(|| rows.machine.model.clone()),
        data: rows.seen.as_ref().or(rows.data.as_deref()).map(|data| data.values.clone()).unwrap_or_default(),
        said: rows.said.as_ref().map(|said| said.text.clone()),
        assistant: rows.session.as_ref().and_then(|session| session.shown().assistant.cloned()),
        head: rows.item.head.clone(),
        owed,
    }
}

/// The exits that the result of a node's work can name.
fn named_exits(node: &Node) -> Vec<NamedExit> {
    let named = |exit: &Exit| Some(NamedExit { name: exit.agent()?.to_owned(), label: exit.label.clone() });
    node.exits.iter().filter_map(named).collect()
}

/// Attaches the rows of work to the reply to its lease, so that its worker's call need not read them.
pub(crate) fn load(rows: &dyn ReadRows, command: &Command, reply: &mut Reply) -> Result<(), ViewError> {
    let (Body::Work(WorkCommand::Lease(_)), Scope::Session(session)) = (&command.body, &command.scope) else {
        return Ok(());
    };
    let Reply::Leased { item, .. } = reply else { return Ok(()) };
    if let Some(found) = rows_of(rows, command.tenant, *session, *item)? {
        LoadedRows::Work(found).attach(reply);
    }
    Ok(())
}

impl WorkView {
    /// Shows leased work with the rows that are attached to the reply; `None` if there are none: the work is void by now.
    #[must_use]
    pub fn of(work: OpenId, loaded: &Loaded) -> Option<Self> {
        match LoadedRows::of(loaded)? {
            LoadedRows::Work(rows) => Some(view_of(work, rows)),
            LoadedRows::Position(_) => None,
        }
    }
}
