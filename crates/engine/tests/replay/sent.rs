//! What is read of the rows of a random run is the same after another server has decoded it.

use minicbor::{Decode, Encode};
use switchward_engine::policy::explain;
use switchward_engine::{
    Republished, comments, effect_view, gate_view, machines_of_runs, missed, run_views, session_view,
    work_view,
};
use switchward_machine::{OpenId, RunId, SessionId, TenantId, Time};
use switchward_state::catalogue::Settings;
use switchward_state::delivery::Endpoint;
use switchward_state::policy::{Args, Authorize};
use switchward_state::{Due, Key, OpenItem, Row, ViewError};
use switchward_testkit::{CAPABILITIES, Rows};

/// Reads all that can be read of every session, and returns how many values that were.
///
/// # Errors
/// A value is another one after it was encoded and decoded.
pub(crate) fn views(rows: &Rows, now: Time) -> Result<usize, String> {
    let mut checked = Checked { rows, now, count: 0 };
    for (key, row) in rows.iter() {
        let Some(id) = key.session_of() else { continue };
        checked.row(id, key, row)?;
    }
    Ok(checked.count)
}

struct Checked<'r> {
    rows: &'r Rows,
    now: Time,
    count: usize,
}

impl Checked<'_> {
    fn row(&mut self, id: SessionId, key: &Key, row: &Row) -> Result<(), String> {
        let tenant = key.tenant_of();
        let number = key.rest().get(16..24).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        match (row, number) {
            (Row::Session(_), _) => self.session(tenant, id),
            (Row::OpenItem(OpenItem::Gate(_)) | Row::Closed(_), Some(gate)) => {
                self.same("a gate", gate_view(self.rows, tenant, id, OpenId(gate)))?;
                self.same("comments", comments(self.rows, tenant, id, OpenId(gate)))
            }
            (Row::OpenItem(_), Some(item)) => {
                self.same("work", work_view(self.rows, tenant, id, OpenId(item)))
            }
            (Row::Outbox(_), Some(number)) => {
                self.same("an effect", effect_view(self.rows, tenant, id, number))
            }
            _ => Ok(()),
        }
    }

    fn session(&mut self, tenant: TenantId, id: SessionId) -> Result<(), String> {
        let found = session_view(self.rows, tenant, id).map_err(|error| error.to_string())?;
        let Some(view) = found else { return Ok(()) };
        self.same("runs", run_views(self.rows, tenant, &view))?;
        let runs = (1..=view.session.runs).map(RunId);
        self.same("machines", machines_of_runs(self.rows, tenant, id, runs))?;
        self.same("a session", Ok(view))?;
        let endpoint = Endpoint {
            id: "all".into(),
            url: "https://example.com/hook".into(),
            secrets: Vec::new(),
            filters: Vec::new(),
            disabled: None,
            created: Time(0),
            health: None,
        };
        self.same("what was missed", missed(self.rows, tenant, id, &endpoint, Time(0), 0, Republished::All))?;
        for capability in CAPABILITIES {
            let call = Authorize {
                capability: capability.into(),
                args: Args::parse(b"{}").unwrap(),
                estimate: None,
                call_id: "c".into(),
                limits: None,
                mail: None,
            };
            let explained = explain(self.rows, tenant, id, Settings::default(), None, &call, self.now);
            self.same("an explanation", explained)?;
        }
        self.same("a timer", Ok(Due { at: self.now, key: Key::session(tenant, id) }))
    }

    fn same<T>(&mut self, what: &str, value: Result<T, ViewError>) -> Result<(), String>
    where
        T: Encode<()> + for<'b> Decode<'b, ()>,
    {
        let bytes = minicbor::to_vec(value.map_err(|error| error.to_string())?).unwrap();
        let back: T = minicbor::decode(&bytes).map_err(|error| format!("{what}: {error}"))?;
        self.count += 1;
        let same = minicbor::to_vec(back).unwrap() == bytes;
        if same { Ok(()) } else { Err(format!("{what} is another one when it is read back")) }
    }
}
