//! Which work is ready and may go out now: one place after the other in turn, so that what has no room stands before nothing
//! that has, and of each no more than a part of what is free, so that whose receivers hang leave room for others.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use switchward_bus::Stream;
use switchward_engine::{IndexKey, Key, Row, Thing, ThingBody, View as _, ViewError};
use switchward_machine::{TenantId, WorkKind};
use switchward_shard::StateView;

use super::lanes::behind;
use super::relay::{Name, Out, stream_of};

/// Places that one look visits; the next begins behind them.
const LANES_MAX: usize = 4_096;
/// What is free must be more than this many times what a place of a tenant has out: alone it comes to one eighth of all.
const PLACE_PART: usize = 7;
/// The same of all places of a tenant: alone it comes to one half.
const TENANT_PART: usize = 1;

/// Behind which entry of the index the next look begins.
pub(super) type Turn = Option<Vec<u8>>;

/// What may still go out by one stream. What a tenant or a place may have gets less the less is free: the more of them hang,
/// the less each of them keeps, and who comes new still finds room.
struct Room {
    free: usize,
    tenants: BTreeMap<TenantId, usize>,
    places: BTreeMap<(TenantId, String), usize>,
}

impl Room {
    fn new(most: usize) -> Self {
        Self { free: most, tenants: BTreeMap::new(), places: BTreeMap::new() }
    }

    fn take(&mut self, tenant: TenantId, place: &str) {
        self.free = self.free.saturating_sub(1);
        *self.tenants.entry(tenant).or_default() += 1;
        *self.places.entry((tenant, place.to_owned())).or_default() += 1;
    }

    fn has_for(&self, tenant: TenantId, place: &str) -> bool {
        let small = |out: Option<&usize>, part: usize| out.is_none_or(|out| out * part < self.free);
        // Questions all go to the model of the operator.
        self.free > 0
            && small(self.tenants.get(&tenant), TENANT_PART)
            && (place.is_empty() || small(self.places.get(&(tenant, place.to_owned())), PLACE_PART))
    }
}

/// The rooms of the streams that work of these kinds goes out by, less what is out.
fn rooms(kinds: &[WorkKind], out: &Out) -> BTreeMap<Stream, Room> {
    let streams = kinds.iter().map(|kind| stream_of(*kind));
    let mut rooms: BTreeMap<Stream, Room> = streams.map(|(stream, most)| (stream, Room::new(most))).collect();
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
        if rooms.values().all(|room| room.free == 0) {
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
    rooms: &mut BTreeMap<Stream, Room>,
    found: &mut BTreeMap<Stream, Vec<(Name, String)>>,
) -> Result<(), ViewError> {
    let Some(kind) = IndexKey::kind_of_errand(entry).filter(|kind| kinds.contains(kind)) else {
        return Ok(());
    };
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
