//! Who has work, and what judges have said.

use switchward_machine::{OpenId, RunId};

use super::Site;
use super::flow::input_taken;
use crate::state::{About, Choice, Lease, OpenItemBody, Owed, Unknown};
use crate::working::Working;
use crate::{Flow, Key, ViewError};

#[expect(clippy::wildcard_enum_match_arm, reason = "the other facts are sorted out before")]
pub(super) fn apply(rows: &mut Working<'_>, site: &Site<'_>, flow: &Flow) -> Result<(), ViewError> {
    let id = site.session()?;
    match flow {
        Flow::WorkLeased { item, worker, until, again } => {
            let owed = owed(rows, site, *item)?;
            owed.fence += u64::from(!again);
            owed.lease = Some(Lease { worker: worker.clone(), until: *until });
        }
        Flow::WorkReleased { item, lapsed } => {
            let owed = owed(rows, site, *item)?;
            owed.lease = None;
            owed.lapsed += u32::from(*lapsed);
        }
        Flow::WorkDone { item, run, unknown, .. } => {
            outcome(rows, site, (*run, *item), *unknown)?;
            input_taken(rows, site, *run, *item)?;
        }
        Flow::ChoicePending { run, event } => {
            let at = rows.run_at_mut(&Key::run(site.tenant, id, *run))?;
            let choice = at.choice.get_or_insert_with(|| Choice { event: *event, judged: Vec::new() });
            // The end of the body asks for more than an event did, and is not forgotten for it.
            choice.event &= *event;
        }
        Flow::ChoiceOver { run } => rows.run_at_mut(&Key::run(site.tenant, id, *run))?.choice = None,
        Flow::Judged { run, judged } => {
            let at = rows.run_at_mut(&Key::run(site.tenant, id, *run))?;
            at.choice.iter_mut().for_each(|choice| choice.judged.push(*judged));
        }
        _ => {}
    }
    Ok(())
}

/// Remembers work whose outcome nobody knows, for the next attempt at it; what is known is forgotten.
fn outcome(
    rows: &mut Working<'_>,
    site: &Site<'_>,
    (run, item): (RunId, OpenId),
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
