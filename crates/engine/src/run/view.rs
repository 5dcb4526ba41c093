//! What a caller is shown of the runs of a session.

use minicbor::{Decode, Encode};
use switchward_machine::{RunId, Status, TenantId};
use switchward_state::limits::RUNS_SHOWN_MAX;
use switchward_state::{ReadRows, View, ViewError};

use crate::policy::machine_of;
use crate::session::view::SessionView;

/// A run of a session, as its list shows it. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RunView {
    /// Its number in the session, from 1.
    #[n(0)]
    pub id: RunId,
    /// What it is a run of.
    #[n(1)]
    pub definition: String,
    /// The number of the definition's version, from 1.
    #[n(2)]
    pub version: u32,
    /// What it is doing.
    #[n(3)]
    pub status: Status,
    /// The node that it stands at, or ended in; empty if it has not begun.
    #[n(4)]
    pub at: String,
    /// The run that has called it.
    #[n(5)]
    pub parent: Option<RunId>,
    /// Its name as one of several children of its parent's machine, such as `check.legal`.
    #[n(6)]
    pub label: Option<String>,
}

/// The runs of a session, oldest first; of more than [`RUNS_SHOWN_MAX`], the newest.
///
/// # Errors
/// A row cannot be read.
pub fn run_views(view: &dyn View, tenant: TenantId, of: &SessionView) -> Result<Vec<RunView>, ViewError> {
    let rows: &dyn ReadRows = view;
    let mut runs = Vec::new();
    let first = of.session.runs.saturating_sub(RUNS_SHOWN_MAX) + 1;
    for number in first..=of.session.runs {
        let run = RunId(number);
        let row = rows.run(tenant, of.id, run)?;
        let status = match &row.ending {
            Some(ending) => ending.outcome.status(),
            None if of.session.queue.contains(&run) => Status::Queued,
            None => of.session.status,
        };
        let machine = machine_of(rows, tenant, &row)?;
        let node = machine.node(row.node).filter(|_| row.entry > 0);
        runs.push(RunView {
            id: run,
            definition: row.definition.clone(),
            version: row.version,
            status,
            at: node.map(|node| node.name.clone()).unwrap_or_default(),
            parent: row.parent.map(|parent| parent.run),
            label: row.frame.as_ref().map(|frame| frame.label.clone()),
        });
    }
    Ok(runs)
}
