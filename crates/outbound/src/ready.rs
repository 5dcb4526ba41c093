//! Which work is ready and may go out now. Destinations take turns, so that one without capacity does not block another, and
//! each gets only a part of the free capacity, so that receivers that hang leave capacity for others.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use switchward_bus::Stream;
use switchward_engine::holds_effects;
use switchward_machine::WorkKind;
use switchward_shard::StateView;
use switchward_state::{IndexKey, Key, OpenItem, Row, View as _, ViewError};

use super::capacity::{Capacities, Capacity, part};
use super::destinations::behind;
use super::relay::{Name, Out, stream_of};

/// Destinations that one round visits; the next round begins behind them.
const DESTINATIONS_MAX: usize = 4_096;
/// The free capacity must exceed this many times what a tenant's destination has in flight: alone it gets one eighth of all.
const DESTINATION_PART: usize = 7;
/// The index entry behind which the next round begins.
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
    view: &StateView,
    kinds: &[WorkKind],
    out: &mut Out,
) -> Result<BTreeMap<Stream, Vec<(Name, String)>>, ViewError> {
    let (mut capacities, mut found) = (capacities(kinds, out), BTreeMap::new());
    let all = IndexKey::delivery_jobs();
    let (mut after, mut before) = (out.turn.clone().unwrap_or_else(|| all.clone()), behind(&all));
    let mut wrapped = out.turn.is_none();
    for _ in 0..DESTINATIONS_MAX {
        if capacities.values().all(Capacity::is_full) {
            break;
        }
        if let Some(entry) = view.first_between(&after, &before)? {
            take(view, &entry, kinds, &mut capacities, &mut found)?;
            after = IndexKey::behind_destination(&entry);
        } else if std::mem::replace(&mut wrapped, true) {
            break;
        } else {
            (after, before) = (all.clone(), out.turn.clone().unwrap_or_default());
        }
    }
    out.turn = Some(after);
    Ok(found)
}

/// Takes as much of this entry's destination as there is capacity for.
fn take(
    view: &StateView,
    entry: &Key,
    kinds: &[WorkKind],
    capacities: &mut Capacities,
    found: &mut BTreeMap<Stream, Vec<(Name, String)>>,
) -> Result<(), ViewError> {
    let Some(kind) = IndexKey::job_kind(entry).filter(|kind| kinds.contains(kind)) else {
        return Ok(());
    };
    if IndexKey::tenant_of_queued(entry).map_or(Ok(false), |tenant| holds_effects(view, tenant))? {
        return Ok(());
    }
    let (stream, _) = stream_of(kind);
    let (Some(capacity), found) = (capacities.get_mut(&stream), found.entry(stream).or_default()) else {
        return Ok(());
    };
    let mut broken = None;
    view.scan(&IndexKey::destination(entry), None, &mut |entry, _| {
        let (Some(name), Some(due)) = (IndexKey::job_of(entry), IndexKey::queued_of(entry)) else {
            return ControlFlow::Continue(());
        };
        match view.row(&due.key) {
            Ok(row) => {
                let Some(destination) = row.as_deref().and_then(destination_of) else {
                    return ControlFlow::Continue(());
                };
                if !capacity.has_for(name.0, &destination) {
                    return ControlFlow::Break(());
                }
                capacity.take(name.0, &destination);
                found.push((name, destination));
                ControlFlow::Continue(())
            }
            Err(error) => {
                broken = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    broken.map_or(Ok(()), Err)
}

/// The destination of work.
fn destination_of(row: &Row) -> Option<String> {
    let Row::OpenItem(OpenItem::Work(work)) = row else { return None };
    Some(work.body.owed.destination())
}
