//! Which work is ready and may go out now: one place after the other in turn, so that what has no room stands before nothing
//! that has, and of each no more than a part of what is free, so that whose receivers hang leave room for others.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use switchward_bus::Stream;
use switchward_engine::{IndexKey, Key, Row, Thing, ThingBody, View as _, ViewError, holds_effects};
use switchward_machine::WorkKind;
use switchward_shard::StateView;

use super::lanes::behind;
use super::relay::{Name, Out, stream_of};
use super::room::{Room, Rooms, part};

/// Places that one look visits; the next begins behind them.
const LANES_MAX: usize = 4_096;
/// What is free must be more than this many times what a place of a tenant has out: alone it comes to one eighth of all.
const PLACE_PART: usize = 7;
/// Behind which entry of the index the next look begins.
pub(super) type Turn = Option<Vec<u8>>;

/// The rooms of the streams that work of these kinds goes out by, less what is out.
fn rooms(kinds: &[WorkKind], out: &Out) -> Rooms {
    let streams = kinds.iter().map(|kind| stream_of(*kind));
    let mut rooms: Rooms =
        streams.map(|(stream, most)| (stream, Room::new(part(most, out.shards), PLACE_PART))).collect();
    for ((tenant, ..), sent) in &out.sent {
        if let Some(room) = rooms.get_mut(&sent.stream) {
            room.take(*tenant, &sent.place);
        }
    }
    rooms
}

/// Work that nobody has and that there is room for, with where it goes, by the streams that it goes out by: of each place
/// the oldest first.
///
/// # Errors
/// A row cannot be read.
pub(super) fn ready(
    view: &StateView,
    kinds: &[WorkKind],
    out: &mut Out,
) -> Result<BTreeMap<Stream, Vec<(Name, String)>>, ViewError> {
    let (mut rooms, mut found) = (rooms(kinds, out), BTreeMap::new());
    let all = IndexKey::errands();
    let (mut after, mut before) = (out.turn.clone().unwrap_or_else(|| all.clone()), behind(&all));
    let mut wrapped = out.turn.is_none();
    for _ in 0..LANES_MAX {
        if rooms.values().all(Room::is_full) {
            break;
        }
        if let Some(entry) = view.first_between(&after, &before)? {
            take(view, &entry, kinds, &mut rooms, &mut found)?;
            after = IndexKey::behind_lane(&entry);
        } else if std::mem::replace(&mut wrapped, true) {
            break;
        } else {
            (after, before) = (all.clone(), out.turn.clone().unwrap_or_default());
        }
    }
    out.turn = Some(after);
    Ok(found)
}

/// Takes as much of the place of this entry as there is room for.
fn take(
    view: &StateView,
    entry: &Key,
    kinds: &[WorkKind],
    rooms: &mut Rooms,
    found: &mut BTreeMap<Stream, Vec<(Name, String)>>,
) -> Result<(), ViewError> {
    let Some(kind) = IndexKey::kind_of_errand(entry).filter(|kind| kinds.contains(kind)) else {
        return Ok(());
    };
    if IndexKey::tenant_of_queued(entry).map_or(Ok(false), |tenant| holds_effects(view, tenant))? {
        return Ok(());
    }
    let (stream, _) = stream_of(kind);
    let (Some(room), found) = (rooms.get_mut(&stream), found.entry(stream).or_default()) else {
        return Ok(());
    };
    let mut broken = None;
    view.scan(&IndexKey::lane(entry), None, &mut |entry, _| {
        let (Some(name), Some(due)) = (IndexKey::errand_of(entry), IndexKey::queued_of(entry)) else {
            return ControlFlow::Continue(());
        };
        match view.row(&due.key) {
            Ok(row) => {
                let Some(place) = row.as_deref().and_then(place_of) else { return ControlFlow::Continue(()) };
                if !room.has_for(name.0, &place) {
                    return ControlFlow::Break(());
                }
                room.take(name.0, &place);
                found.push((name, place));
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

/// Where work goes.
fn place_of(row: &Row) -> Option<String> {
    let Row::Thing(Thing { body: ThingBody::Work { owed, .. }, .. }) = row else { return None };
    Some(owed.place())
}
