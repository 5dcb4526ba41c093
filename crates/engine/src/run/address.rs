//! Which active run a command is about: the only active leaf, or the one that its address names. A command that several
//! runs fit is refused, so that nothing moves a run that its caller did not mean.

use switchward_machine::{OpenId, RunId, SessionId, TenantId};
use switchward_state::catalogue::Role;
use switchward_state::limits::RUNS_NAMED_MAX;
use switchward_state::run::{ActiveRun, ActiveRuns, Run, RunAddress};
use switchward_state::session::Session;
use switchward_state::work::SERVER_WORKER;
use switchward_state::{Actor, Command, ItemKind, Key, ReadRows, Reason, Rejection, SharedRow, ViewError};

use crate::policy::machine_of;

/// The active runs of a session.
pub(crate) struct Active<'r> {
    rows: &'r dyn ReadRows,
    tenant: TenantId,
    id: SessionId,
    root: RunId,
}

impl<'r> Active<'r> {
    pub(crate) fn of(rows: &'r dyn ReadRows, tenant: TenantId, id: SessionId, session: &Session) -> Self {
        Self { rows, tenant, id, root: session.root }
    }

    /// The run that a command of this session is about. A worker's key names a run only while it holds work of that run.
    pub(crate) fn of_command(
        &self,
        session: &Session,
        command: &Command,
    ) -> Result<Result<RunId, Rejection>, ViewError> {
        let address = command.address.as_ref();
        let found = match self.one(address)? {
            Ok(found) => found,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let Some(address) = address.filter(|_| command.actor.role == Role::Worker) else {
            return Ok(Ok(found));
        };
        let holds = self.holds_work(session, &command.actor, found, address.work)?;
        Ok(if holds { Ok(found) } else { Err(not_held(found)) })
    }

    /// The only active leaf that fits an address; the only one of all if there is no address. A run that waits for others fits
    /// none, even if work of it is open: nobody writes its data or calls for it meanwhile.
    pub(crate) fn one(&self, address: Option<&RunAddress>) -> Result<Result<RunId, Rejection>, ViewError> {
        let any = RunAddress::default();
        let address = address.unwrap_or(&any);
        let named = match (address.work, address.run) {
            (Some(item), _) => match self.rows.work_at(&Key::item(self.tenant, self.id, item))? {
                Some(open) => open.head.run,
                None => return Ok(Err(not_open(item))),
            },
            (None, Some(run)) => run,
            (None, None) => return self.only(address),
        };
        let fits = self.is_leaf(named)? && self.fits(named, address)?;
        Ok(if fits { Ok(named) } else { Err(none_fits()) })
    }

    /// The only active leaf that stands at the node that an address names, if it names one.
    fn only(&self, address: &RunAddress) -> Result<Result<RunId, Rejection>, ViewError> {
        let found = match &address.node {
            None => self.leaves(RUNS_NAMED_MAX + 1)?,
            Some(_) => self.fitting(address)?,
        };
        match found[..] {
            [] => Ok(Err(none_fits())),
            [one] => Ok(Ok(one)),
            _ => self.several(&found).map(Err),
        }
    }

    /// The active leaves, all of them or this many at most.
    pub(crate) fn leaves(&self, most: usize) -> Result<Vec<RunId>, ViewError> {
        self.rows.leaves(self.tenant, self.id, self.root, most)
    }

    /// The active leaves that fit an address, at most one more than a refusal names.
    fn fitting(&self, address: &RunAddress) -> Result<Vec<RunId>, ViewError> {
        let mut found = Vec::new();
        for run in self.leaves(usize::MAX)? {
            if found.len() > RUNS_NAMED_MAX {
                break;
            }
            if self.fits(run, address)? {
                found.push(run);
            }
        }
        Ok(found)
    }

    /// Whether a run has the number and stands at the node that an address names.
    fn fits(&self, run: RunId, address: &RunAddress) -> Result<bool, ViewError> {
        if address.run.is_some_and(|named| named != run) {
            return Ok(false);
        }
        let Some(node) = &address.node else { return Ok(true) };
        let at = self.row(run)?;
        Ok(at.frame.as_ref().is_some_and(|frame| frame.label == *node) || self.state_of(&at)? == *node)
    }

    /// Returns true if a run with this number is active and waits for no other. The number may be anybody's guess.
    fn is_leaf(&self, run: RunId) -> Result<bool, ViewError> {
        let Some(at) = self.rows.run_at(&Key::run(self.tenant, self.id, run))? else { return Ok(false) };
        let waits = !self.rows.children(self.tenant, self.id, run, &at, 1)?.is_empty();
        Ok(!waits && self.is_active(run)?)
    }

    /// Returns true if a run and those that have called it go on, and the session's root is the outermost of them.
    pub(crate) fn is_active(&self, run: RunId) -> Result<bool, ViewError> {
        let mut next = run;
        loop {
            let at = self.row(next)?;
            if at.ending.is_some() {
                return Ok(false);
            }
            match at.parent {
                Some(parent) => next = parent.run,
                None => return Ok(next == self.root),
            }
        }
    }

    /// Whether a key holds work of a run, or this work of it.
    fn holds_work(
        &self,
        session: &Session,
        actor: &Actor,
        run: RunId,
        only: Option<OpenId>,
    ) -> Result<bool, ViewError> {
        for item in session.open_in(run, ItemKind::Work).filter(|item| only.is_none_or(|only| only == *item))
        {
            let work = self.rows.work_at(&Key::item(self.tenant, self.id, item))?;
            let lease = work.as_ref().and_then(|work| work.body.owed.lease.as_ref());
            if lease.is_some_and(|lease| lease.by == actor.subject && lease.worker != SERVER_WORKER) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The refusal of a command that several of these runs fit.
    pub(crate) fn several(&self, runs: &[RunId]) -> Result<Rejection, ViewError> {
        let mut names = Vec::new();
        for run in runs.iter().take(RUNS_NAMED_MAX) {
            let at = self.row(*run)?;
            let state = match &at.frame {
                Some(frame) => frame.label.clone(),
                None => self.state_of(&at)?,
            };
            names.push(format!("run {} at {state:?}", run.0));
        }
        let more = if runs.len() > RUNS_NAMED_MAX { " and more" } else { "" };
        let message = format!(
            "several active runs fit: {}{more}; name one by its run, its state or its work item",
            names.join(", ")
        );
        let numbers: Vec<String> = runs.iter().take(RUNS_NAMED_MAX).map(|run| run.0.to_string()).collect();
        let refusal = Rejection::new(Reason::StateMismatch, message).fact("field", "address");
        Ok(refusal.allowed(numbers.iter().map(String::as_str)))
    }

    /// What is shown of the runs that are active side by side; nothing if one alone is.
    pub(crate) fn shown(&self, most: usize) -> Result<ActiveRuns, ViewError> {
        let leaves = self.leaves(usize::MAX)?;
        if leaves.len() < 2 {
            return Ok(ActiveRuns::default());
        }
        let mut runs = Vec::new();
        for run in leaves.iter().take(most) {
            let at = self.row(*run)?;
            runs.push(ActiveRun {
                run: *run,
                parent: at.parent.map(|parent| parent.run),
                definition: at.definition.clone(),
                version: at.version,
                state: self.state_of(&at)?,
                label: at.frame.as_ref().map(|frame| frame.label.clone()),
            });
        }
        Ok(ActiveRuns { runs, count: u32::try_from(leaves.len()).unwrap_or(u32::MAX) })
    }

    fn row(&self, run: RunId) -> Result<SharedRow<Run>, ViewError> {
        self.rows.run(self.tenant, self.id, run)
    }

    /// The name of the node that a run stands at.
    fn state_of(&self, at: &Run) -> Result<String, ViewError> {
        let machine = machine_of(self.rows, self.tenant, at)?;
        Ok(machine.node(at.node).map(|node| node.name.clone()).unwrap_or_default())
    }
}

/// The refusal of a command whose address or state fits no active run.
pub(crate) fn none_fits() -> Rejection {
    Rejection::new(Reason::StateMismatch, "no active run fits what the request names")
        .fact("field", "address")
}

fn not_open(item: OpenId) -> Rejection {
    let message = format!("work item {} is not open any more, so it names no run", item.0);
    Rejection::new(Reason::LeaseLost, message).fact("field", "address")
}

fn not_held(run: RunId) -> Rejection {
    let message = format!("the key holds no work of run {}; a worker names the run of its own lease", run.0);
    Rejection::new(Reason::LeaseLost, message).fact("field", "address")
}
