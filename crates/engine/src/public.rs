//! Events as readers see them: a public type, and what a reader needs of it. Each aggregate says what is shown of its own.

pub(crate) mod event;

use switchward_machine::{RunId, SessionId, TenantId};
use switchward_state::delivery::PublishedType;
use switchward_state::{Event, Key, PublicEvent, ReadRows, SharedMachine, View, ViewError};

pub use event::{Machines, RunMachine};

use self::event::RUN_FIELD;

use crate::policy::machine_of;
use crate::{approval, delivery, policy, run, session, work};

/// Returns the type under which endpoints can receive an event of a session; `None` if they cannot.
pub(crate) fn published_type(event: &PublicEvent) -> Option<PublishedType> {
    PublishedType::from_word(event.kind).filter(|kind| kind.is_of_session())
}

/// The machines of the runs that these events of a session are about.
///
/// # Errors
/// A row cannot be read.
pub fn machines_of<'e>(
    view: &dyn View,
    tenant: TenantId,
    session: SessionId,
    events: impl IntoIterator<Item = &'e Event>,
) -> Result<Machines, ViewError> {
    machines_in(view, tenant, session, events)
}

/// The machines of these runs of a session, without those that do not exist.
///
/// # Errors
/// A row cannot be read.
pub fn machines_of_runs(
    view: &dyn View,
    tenant: TenantId,
    session: SessionId,
    runs: impl IntoIterator<Item = RunId>,
) -> Result<Machines, ViewError> {
    machines_of_each(view, tenant, session, runs)
}

/// The same of rows that a turn works on.
pub(crate) fn machines_in<'e>(
    rows: &dyn ReadRows,
    tenant: TenantId,
    session: SessionId,
    events: impl IntoIterator<Item = &'e Event>,
) -> Result<Machines, ViewError> {
    machines_of_each(rows, tenant, session, events.into_iter().filter_map(Event::run))
}

fn machines_of_each(
    rows: &dyn ReadRows,
    tenant: TenantId,
    session: SessionId,
    runs: impl IntoIterator<Item = RunId>,
) -> Result<Machines, ViewError> {
    let mut machines = Machines::default();
    for run in runs {
        if machines.0.contains_key(&run) {
            continue;
        }
        if let Some(row) = rows.run_at(&Key::run(tenant, session, run))? {
            let machine = SharedMachine(machine_of(rows, tenant, &row)?);
            machines.0.insert(run, RunMachine { machine, child: row.parent.is_some() });
        }
    }
    Ok(machines)
}

/// What a reader is shown of each of these events, in order; internal events are left out. What happens in a child
/// carries the child's number.
pub fn public_events<'a>(
    events: &'a [Event],
    machines: &'a Machines,
) -> impl Iterator<Item = (usize, PublicEvent)> + 'a {
    events.iter().enumerate().filter_map(|(at, event)| {
        let public = public_of(event, machines)?;
        let child = event.run().filter(|run| machines.is_child(*run));
        let named = public.fields.iter().any(|(name, _)| *name == RUN_FIELD);
        Some((
            at,
            match child.filter(|_| !named) {
                Some(run) => public.with(RUN_FIELD, run.0),
                None => public,
            },
        ))
    })
}

fn public_of(event: &Event, machines: &Machines) -> Option<PublicEvent> {
    match event {
        Event::Session(event) => session::public::public(event),
        Event::Run(event) => run::public::public(event, machines),
        Event::Approval(event) => approval::public::public(event),
        Event::Work(event) => work::public::public(event),
        Event::Delivery(event) => delivery::public::public(event),
        Event::Policy(event) => policy::public::public(event),
        Event::Catalogue(_) => None,
    }
}
