//! Which work is ready and may go out now. Destinations take turns, so that one without capacity does not block another, and
//! each gets only a part of the free capacity, so that receivers that hang leave capacity for others.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use switchward_bus::Stream;
use switchward_machine::WorkKind;
use switchward_query::outgoing::{Queue, ShardView, WorkName};
use switchward_state::ViewError;

use super::capacity::{Capacities, Capacity, part};
use super::relay::{Out, stream_of};

/// Destinations that one round visits; the next round begins behind them.
const DESTINATIONS_MAX: usize = 4_096;
/// The free capacity must exceed this many times what a tenant's destination has in flight: alone it gets one eighth of all.
const DESTINATION_PART: usize = 7;
/// The end of the queue behind which the next round begins; `None` before the first.
pub(super) type Turn = Option<Vec<u8>>;

/// The capacities of the streams that work of these kinds goes out by, less what is in flight.
fn capacities(kinds: &[WorkKind], out: &Out) -> Capacities {
    let streams = kinds.iter().map(|kind| stream_of(*kind));
    let mut capacities: Capacities = streams
        .map(|(stream, most)| (stream, Capacity::new(part(most, out.shards), DESTINATION_PART)))
        .collect();
    for ((tenant, ..), sent) in &out.sent {
        if let Some(capacity) = capacities.get_mut(&sent.stream) {
            capacity.take(*tenant, &sent.destination);
        }
    }
    capacities
}

/// Returns unleased work that there is capacity for, with its destination, by stream; the oldest of each destination first.
///
/// # Errors
/// A row cannot be read.
pub(super) fn ready(
    view: &ShardView,
    kinds: &[WorkKind],
    out: &mut Out,
) -> Result<BTreeMap<Stream, Vec<(WorkName, String)>>, ViewError> {
    let (mut capacities, mut found) = (capacities(kinds, out), BTreeMap::new());
    let (mut after, mut before) = (out.turn.clone(), None);
    let mut wrapped = out.turn.is_none();
    for _ in 0..DESTINATIONS_MAX {
        if capacities.values().all(Capacity::is_full) {
            break;
        }
        if let Some(queue) = view.work_queue(after.as_deref(), before.as_deref())? {
            take(view, &queue, kinds, &mut capacities, &mut found)?;
            after = Some(queue.end());
        } else if std::mem::replace(&mut wrapped, true) {
            break;
        } else {
            (after, before) = (None, out.turn.clone());
        }
    }
    out.turn = after;
    Ok(found)
}

/// Takes as much of a queue as there is capacity for.
fn take(
    view: &ShardView,
    queue: &Queue,
    kinds: &[WorkKind],
    capacities: &mut Capacities,
    found: &mut BTreeMap<Stream, Vec<(WorkName, String)>>,
) -> Result<(), ViewError> {
    let Some(kind) = queue.work_kind().filter(|kind| kinds.contains(kind)) else {
        return Ok(());
    };
    if view.holds(queue)? {
        return Ok(());
    }
    let (stream, _) = stream_of(kind);
    let (Some(capacity), found) = (capacities.get_mut(&stream), found.entry(stream).or_default()) else {
        return Ok(());
    };
    view.each_work(queue, &mut |name, destination| {
        if !capacity.has_for(name.0, &destination) {
            return ControlFlow::Break(());
        }
        capacity.take(name.0, &destination);
        found.push((name, destination));
        ControlFlow::Continue(())
    })
}
