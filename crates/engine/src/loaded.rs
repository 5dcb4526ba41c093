//! Rows that complete a reply: with them its caller is answered without another read.
//!
//! The server that executes a command attaches them. A leader sends them along with a reply to another server, which has
//! the machines of their runs itself; of a session it sends what is shown.

use minicbor::{Decode, Encode};
use std::sync::Arc;
use switchward_machine::{Digest, Machine, TenantId};
use switchward_state::run::{Data, Run};
use switchward_state::session::{LastMessage, ReplyToken};
use switchward_state::work::WorkItem;
use switchward_state::{
    FormError, Loaded, Open, ReadRows, Reply, SharedRow, View, ViewError, framed, unframed,
};

use crate::session::shown::AnsweredSession;

/// The rows that are attached to a reply.
#[derive(Debug, Clone)]
pub(crate) enum LoadedRows {
    /// Those that show where a session stands.
    Position(PositionRows),
    /// Those that a worker is handed.
    Work(WorkRows),
}

impl LoadedRows {
    /// Puts the rows beside a reply, whose caller then needs no other ones.
    pub(crate) fn attach(self, reply: &mut Reply) {
        reply.load(Loaded(Some(Arc::new(self))));
    }

    /// The rows that are attached; `None` if there are none.
    pub(crate) fn of(loaded: &Loaded) -> Option<&Self> {
        loaded.0.as_ref()?.downcast_ref()
    }

    /// The same, given away: without a copy unless somebody else has the reply, too.
    pub(crate) fn taken(loaded: Loaded) -> Option<Self> {
        loaded.0?.downcast::<Self>().ok().map(Arc::unwrap_or_clone)
    }
}

/// What a position needs to be shown.
#[derive(Debug, Clone)]
pub(crate) struct PositionRows {
    /// The session, for what never changes of it.
    pub(crate) session: AnsweredSession,
    /// The root run's machine.
    pub(crate) root: InstalledMachine,
    /// The leaf's machine, if it is not the root run.
    pub(crate) leaf: Option<InstalledMachine>,
    /// The text of the leaf's node with the session's reply tokens, if it has some.
    pub(crate) text: Option<String>,
    /// What somebody outside needs to send an event to the session.
    pub(crate) reply_token: Option<ReplyToken>,
}

/// A machine with the name that it is installed under.
#[derive(Debug, Clone)]
pub(crate) struct InstalledMachine {
    /// Its digest, which names it in its tenant.
    pub(crate) digest: Digest,
    /// What runs of it do.
    pub(crate) machine: Arc<Machine>,
}

impl InstalledMachine {
    /// The machine of this digest; `None` if it is not installed.
    ///
    /// # Errors
    /// A row cannot be read.
    pub(crate) fn of(
        rows: &dyn ReadRows,
        tenant: TenantId,
        digest: Digest,
    ) -> Result<Option<Self>, ViewError> {
        let found = rows.machine(tenant, digest)?;
        Ok(found.map(|machine| Self { digest, machine }))
    }
}

/// The rows of open work.
#[derive(Debug, Clone)]
pub(crate) struct WorkRows {
    /// What is to be done, and since when it is open.
    pub(crate) item: SharedRow<Open<WorkItem>>,
    /// The run that it belongs to.
    pub(crate) run: SharedRow<Run>,
    /// The run's machine.
    pub(crate) machine: Arc<Machine>,
    /// The run's data; `None` if it has none.
    pub(crate) data: Option<SharedRow<Data>>,
    /// All that the run reads, if it is one of several children and reads its parent's data, too.
    pub(crate) seen: Option<Data>,
    /// The user's last message; `None` if there is none.
    pub(crate) said: Option<SharedRow<LastMessage>>,
    /// The session that it is of; `None` if that is gone.
    pub(crate) session: Option<AnsweredSession>,
}

/// Sent form of [`LoadedRows`]. Machines are named by their digests.
#[derive(Encode, Decode)]
enum LoadedForm {
    #[n(0)]
    Position {
        #[n(0)]
        session: AnsweredSession,
        #[n(1)]
        root: Digest,
        #[n(2)]
        leaf: Option<Digest>,
        #[n(3)]
        text: Option<String>,
        #[n(4)]
        reply_token: Option<ReplyToken>,
    },
    #[n(1)]
    Work {
        #[n(0)]
        item: SharedRow<Open<WorkItem>>,
        #[n(1)]
        run: SharedRow<Run>,
        #[n(2)]
        data: Option<SharedRow<Data>>,
        #[n(3)]
        said: Option<SharedRow<LastMessage>>,
        #[n(4)]
        session: Option<AnsweredSession>,
        #[n(5)]
        seen: Option<Data>,
    },
}

/// The version of the sent form; its first byte.
const FORM: u8 = 1;

/// The form in which the rows of a reply are sent between servers: a form byte, then fields by number. `None` if there
/// are none.
#[must_use]
pub fn encode_loaded(loaded: &Loaded) -> Option<Vec<u8>> {
    let form = match LoadedRows::of(loaded)?.clone() {
        LoadedRows::Position(PositionRows { session, root, leaf, text, reply_token }) => {
            let (root, leaf) = (root.digest, leaf.map(|leaf| leaf.digest));
            LoadedForm::Position { session, root, leaf, text, reply_token }
        }
        LoadedRows::Work(WorkRows { item, run, machine: _, data, seen, said, session }) => {
            LoadedForm::Work { item, run, data, said, session, seen }
        }
    };
    Some(framed(FORM, &form))
}

/// Rows as they came from another server, without their machines.
pub struct SentRows(LoadedForm);

impl SentRows {
    /// Reads what [`encode_loaded`] wrote.
    ///
    /// # Errors
    /// Another form, or bytes that are no rows.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormError> {
        unframed(FORM, bytes, "reply row").map(Self).map_err(FormError)
    }

    /// Completes the rows with the machines that are installed here; `None` if one is not.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn complete(&self, view: &dyn View, tenant: TenantId) -> Result<Option<Loaded>, ViewError> {
        let rows: &dyn ReadRows = view;
        let found = match &self.0 {
            LoadedForm::Position { session, root, leaf, text, reply_token } => {
                let Some(root) = InstalledMachine::of(rows, tenant, *root)? else { return Ok(None) };
                let leaf = match leaf.map(|leaf| InstalledMachine::of(rows, tenant, leaf)).transpose()? {
                    Some(None) => return Ok(None),
                    found => found.flatten(),
                };
                let (session, text, reply_token) = (session.clone(), text.clone(), reply_token.clone());
                LoadedRows::Position(PositionRows { session, root, leaf, text, reply_token })
            }
            LoadedForm::Work { item, run, data, said, session, seen } => {
                let Some(machine) = rows.machine(tenant, run.machine)? else { return Ok(None) };
                let (item, run, data) = (item.clone(), run.clone(), data.clone());
                let (seen, said, session) = (seen.clone(), said.clone(), session.clone());
                LoadedRows::Work(WorkRows { item, run, machine, data, seen, said, session })
            }
        };
        Ok(Some(Loaded(Some(Arc::new(found)))))
    }
}
