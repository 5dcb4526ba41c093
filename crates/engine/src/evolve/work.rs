//! Who has work, and what judges have said.

use switchward_machine::{OpenId, RunId};

use super::Site;
use super::flow::input_taken;
use crate::state::{About, Choice, Lease, Owed, ThingBody, Unknown};
use crate::working::Working;
use crate::{Flow, Key, ViewError};

#[expect(clippy::wildcard_enum_match_arm, reason = "the other facts are sorted out before")]
pub(super) fn apply(rows: &mut Working<'_>, site: &Site<'_>, flow: &Flow) -> Result<(), ViewError> {
    let id = site.session()?;
    match flow {
        Flow::WorkLeased { thing, worker, until, again } => {
            let owed = owed(rows, site, *thing)?;
            owed.fence += u64::from(!again);
            owed.lease = Some(Lease { worker: worker.clone(), until: *until });
        }
        Flow::WorkReleased { thing, lapsed } => {
            let owed = owed(rows, site, *thing)?;
            owed.lease = None;
            owed.lapsed += u32::from(*lapsed);
        }
        Flow::WorkDone { thing, run, unknown, .. } => {
            outcome(rows, site, (*run, *thing), *unknown)?;
            input_taken(rows, site, *run, *thing)?;
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
    (run, thing): (RunId, OpenId),
    unknown: bool,
) -> Result<(), ViewError> {
    let (id, row) = (site.session()?, rows.thing_at(&Key::thing(site.tenant, site.session()?, thing))?);
    let Some(ThingBody::Work { owed, .. }) = row.as_deref().map(|thing| &thing.body) else { return Ok(()) };
    let (key, of_body) = (owed.known_as(thing), owed.about == About::Act);
    let at = rows.run_at_mut(&Key::run(site.tenant, id, run))?;
    if unknown && of_body {
        at.unknown = Some(Unknown { key, of: at.name_of(&owed.input.0) });
    } else {
        at.unknown.take_if(|known| known.key == key);
    }
    Ok(())
}

/// Open work, to change.
fn owed<'r>(rows: &'r mut Working<'_>, site: &Site<'_>, thing: OpenId) -> Result<&'r mut Owed, ViewError> {
    match &mut rows.thing_at_mut(&Key::thing(site.tenant, site.session()?, thing))?.body {
        ThingBody::Work { owed, .. } => Ok(owed),
        ThingBody::Wait { .. } | ThingBody::Timer { .. } => Err(ViewError(format!("{thing:?} is no work"))),
    }
}
