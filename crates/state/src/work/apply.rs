//! What happens to open items.

use switchward_machine::{OpenId, RunId};

use crate::run::Unknown;
use crate::work::{About, Lease, OpenItem, OpenItemBody, Owed, WorkEvent};
use crate::{Key, Row, Site, ViewError, Working};

/// Applies an event about an open item.
pub(crate) fn apply(rows: &mut Working<'_>, site: &Site<'_>, event: &WorkEvent) -> Result<(), ViewError> {
    match event {
        WorkEvent::Opened { item, run, body, trace } => opened(rows, site, *item, *run, body, trace)?,
        WorkEvent::Closed { item, run } => input_taken(rows, site, *run, *item)?,
        WorkEvent::Leased { item, worker, until, again } => {
            let owed = owed(rows, site, *item)?;
            owed.fence += u64::from(!again);
            owed.lease = Some(Lease { worker: worker.clone(), until: *until });
        }
        WorkEvent::Released { item, lapsed } => {
            let owed = owed(rows, site, *item)?;
            owed.lease = None;
            owed.lapsed += u32::from(*lapsed);
        }
        WorkEvent::Done { item, run, unknown, .. } => {
            outcome(rows, site, *run, *item, *unknown)?;
            input_taken(rows, site, *run, *item)?;
        }
    }
    Ok(())
}

/// Work, a wait or a timer is open, of the node that the run stands in.
fn opened(
    rows: &mut Working<'_>,
    site: &Site<'_>,
    item: OpenId,
    run: RunId,
    body: &OpenItemBody,
    trace: &Option<String>,
) -> Result<(), ViewError> {
    let id = site.session()?;
    rows.session_at_mut(&site.session_key()?)?.next_id = item.0 + 1;
    let at = rows.run_at_mut(&Key::run(site.tenant, id, run))?;
    at.items.push(item);
    let (body, trace) = (body.clone(), trace.clone());
    let row = OpenItem { run, node: at.node, entry: at.entry, at: site.at, body, trace };
    rows.put(Key::item(site.tenant, id, item), Row::OpenItem(row));
    Ok(())
}

/// Forgets an item that was open. Input from outside has come for it, and it is closed.
pub(crate) fn input_taken(
    rows: &mut Working<'_>,
    site: &Site<'_>,
    run: RunId,
    item: OpenId,
) -> Result<(), ViewError> {
    rows.run_at_mut(&Key::run(site.tenant, site.session()?, run))?.drained = 0;
    close(rows, site, run, item)
}

pub(crate) fn close(
    rows: &mut Working<'_>,
    site: &Site<'_>,
    run: RunId,
    item: OpenId,
) -> Result<(), ViewError> {
    let id = site.session()?;
    rows.run_at_mut(&Key::run(site.tenant, id, run))?.items.retain(|known| *known != item);
    rows.delete(Key::item(site.tenant, id, item));
    Ok(())
}

/// Remembers work whose outcome nobody knows, for the next attempt at it; what is known is forgotten.
fn outcome(
    rows: &mut Working<'_>,
    site: &Site<'_>,
    run: RunId,
    item: OpenId,
    unknown: bool,
) -> Result<(), ViewError> {
    let (id, row) = (site.session()?, rows.item_at(&Key::item(site.tenant, site.session()?, item))?);
    let Some(OpenItemBody::Work { owed, .. }) = row.as_deref().map(|item| &item.body) else { return Ok(()) };
    let (key, of_body) = (owed.known_as(item), owed.about == About::Act);
    let at = rows.run_at_mut(&Key::run(site.tenant, id, run))?;
    if unknown && of_body {
        at.unknown = Some(Unknown { key, of: at.name_of(&owed.input.0) });
    } else {
        at.unknown.take_if(|known| known.key == key);
    }
    Ok(())
}

/// Open work, to change.
fn owed<'r>(rows: &'r mut Working<'_>, site: &Site<'_>, item: OpenId) -> Result<&'r mut Owed, ViewError> {
    match &mut rows.item_at_mut(&Key::item(site.tenant, site.session()?, item))?.body {
        OpenItemBody::Work { owed, .. } => Ok(owed),
        OpenItemBody::Wait { .. } | OpenItemBody::Timer { .. } => {
            Err(ViewError(format!("{item:?} is no work")))
        }
    }
}
