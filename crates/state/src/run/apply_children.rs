//! Runs below a run, and their slots in it.

use switchward_machine::RunId;

use crate::run::{Parent, Run, RunEvent, Slot, fresh, remember};
use crate::{Key, ReadRows, Row, Site, ViewError, WriteRows};

#[expect(clippy::wildcard_enum_match_arm, reason = "the other facts are sorted out before")]
pub(crate) fn apply(rows: &mut dyn WriteRows, site: &Site<'_>, event: &RunEvent) -> Result<(), ViewError> {
    let id = site.session()?;
    let run_key = |run: RunId| Key::run(site.tenant, id, run);
    match event {
        RunEvent::CalleesPinned { callees } => {
            rows.session_at_mut(&site.session_key()?)?.callees.clone_from(callees);
        }
        RunEvent::ChildrenPlanned { run, count } => {
            let at = rows.run_at_mut(&run_key(*run))?;
            at.slots = *count;
            let entry = at.entry;
            for index in 0..*count {
                rows.put(Key::slot(site.tenant, id, *run, entry, index), Row::Slot(Slot::Empty));
            }
        }
        RunEvent::ChildCreated { run, machine, definition, version, parent, frame } => {
            rows.session_at_mut(&site.session_key()?)?.runs += 1;
            let fresh = fresh(site.at, *machine, definition.clone(), *version);
            let drained = drained(rows, site, parent.run)?;
            let (parent, frame) = (*parent, frame.clone());
            rows.put(run_key(*run), Row::Run(Run { parent: Some(parent), drained, frame, ..fresh }));
            rows.put(slot_key(site, parent)?, Row::Slot(Slot::Runs(*run)));
        }
        RunEvent::ChildEnded { run, index, child, outcome } => {
            // What was entered since the last input from outside is counted over all of them; that of children side by side
            // is their own, and less than their parent's only after an input.
            let drained = drained(rows, site, *child)?;
            // Whom the child has written to may answer to its parent.
            let of_child = rows.run(site.tenant, id, *child)?;
            let (mailed, recipients) = (of_child.mailed.clone(), of_child.recipients.clone());
            let at = rows.run_at_mut(&run_key(*run))?;
            at.drained = if at.slots > 1 { at.drained.min(drained) } else { drained };
            mailed.iter().for_each(|to| remember(&mut at.mailed, to));
            recipients.iter().for_each(|to| remember(&mut at.recipients, to));
            let parent = Parent { run: *run, entry: at.entry, index: *index };
            rows.put(slot_key(site, parent)?, Row::Slot(Slot::Ended { run: *child, outcome: *outcome }));
        }
        RunEvent::ChildrenJoined { run } => {
            let at = rows.run_at_mut(&run_key(*run))?;
            let (entry, slots) = (at.entry, std::mem::take(&mut at.slots));
            for index in 0..slots {
                rows.delete(Key::slot(site.tenant, id, *run, entry, index));
            }
        }
        _ => {}
    }
    Ok(())
}

fn slot_key(site: &Site<'_>, parent: Parent) -> Result<Key, ViewError> {
    Ok(Key::slot(site.tenant, site.session()?, parent.run, parent.entry, parent.index))
}

/// How many nodes a run has entered since the last input from outside.
fn drained(rows: &dyn ReadRows, site: &Site<'_>, run: RunId) -> Result<u32, ViewError> {
    Ok(rows.run(site.tenant, site.session()?, run)?.drained)
}
