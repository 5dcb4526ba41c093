//! What happens to open items.

use switchward_machine::{OpenId, RunId};

use crate::run::Unknown;
use crate::work::{About, Lease, OpenItemBody, Owed, WorkEvent};
use crate::{ItemHead, Key, ListedItem, OpenItem, Row, Site, ViewError, WriteRows};

/// Applies an event about an open item.
pub(crate) fn apply(rows: &mut dyn WriteRows, site: &Site<'_>, event: &WorkEvent) -> Result<(), ViewError> {
    match event {
        WorkEvent::Opened { item, run, body, trace } => {
            let listed = ListedItem { item: *item, run: *run, kind: body.kind() };
            opened(rows, site, listed, body.clone(), trace.clone())?;
        }
        WorkEvent::Closed { item, run } => input_taken(rows, site, *run, *item)?,
        WorkEvent::Leased { item, worker, until, again, by } => {
            let owed = owed(rows, site, *item)?;
            owed.fence += u64::from(!again);
            owed.lease = Some(Lease { worker: worker.clone(), until: *until, by: by.clone() });
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
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    listed: ListedItem,
    body: OpenItemBody,
    trace: Option<String>,
) -> Result<(), ViewError> {
    let ItemHead { run, node, entry, at, .. } = open(rows, site, listed)?;
    let head = ItemHead { run, node, entry, at, trace };
    rows.put(Key::item(site.tenant, site.session()?, listed.item), Row::OpenItem(OpenItem::new(head, body)));
    Ok(())
}

/// Lists an item that is open from now on, of the node that its run stands in; gives the head of its row.
pub(crate) fn open(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    listed: ListedItem,
) -> Result<ItemHead, ViewError> {
    let session = rows.session_at_mut(&site.session_key()?)?;
    session.next_id = listed.item.0 + 1;
    session.items.push(listed);
    let at = rows.run(site.tenant, site.session()?, listed.run)?;
    Ok(ItemHead { run: listed.run, node: at.node, entry: at.entry, at: site.at, trace: None })
}

/// Forgets an item that was open. Input from outside has come for it, and it is closed.
pub(crate) fn input_taken(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    run: RunId,
    item: OpenId,
) -> Result<(), ViewError> {
    rows.run_at_mut(&Key::run(site.tenant, site.session()?, run))?.drained = 0;
    close(rows, site, item)
}

/// An item is open no longer: its row and its line in the session's list are gone.
pub(crate) fn close(rows: &mut dyn WriteRows, site: &Site<'_>, item: OpenId) -> Result<(), ViewError> {
    rows.session_at_mut(&site.session_key()?)?.items.retain(|listed| listed.item != item);
    rows.delete(Key::item(site.tenant, site.session()?, item));
    Ok(())
}

/// Remembers work whose outcome nobody knows, for the next attempt at it; what is known is forgotten.
fn outcome(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    run: RunId,
    item: OpenId,
    unknown: bool,
) -> Result<(), ViewError> {
    let (id, row) = (site.session()?, rows.work_at(&Key::item(site.tenant, site.session()?, item))?);
    let Some(owed) = row.as_deref().map(|work| &work.body.owed) else { return Ok(()) };
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
fn owed<'r>(rows: &'r mut dyn WriteRows, site: &Site<'_>, item: OpenId) -> Result<&'r mut Owed, ViewError> {
    Ok(&mut rows.work_at_mut(&Key::item(site.tenant, site.session()?, item))?.body.owed)
}
