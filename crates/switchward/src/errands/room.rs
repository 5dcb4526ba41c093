//! How much may be out at one time. All that is out at once can be begun at once: the shards of a server share what its desk
//! does at one time, and of what a shard has no tenant and no place gets more than a part of what is free. The more of them
//! hang, the less each of them keeps, and who comes new still finds room.

use std::collections::BTreeMap;

use switchward_bus::Stream;
use switchward_machine::TenantId;

/// What is free must be more than this many times what a tenant has out: alone it comes to one half of all.
const TENANT_PART: usize = 1;

/// What each of so many may have out of what all of them may.
pub(super) fn part(all: usize, shards: usize) -> usize {
    (all / shards.max(1)).max(1)
}

/// The rooms of a shard by the streams that lead out of it.
pub(super) type Rooms = BTreeMap<Stream, Room>;

/// What may still go out by one stream.
pub(super) struct Room {
    free: usize,
    place_part: usize,
    tenants: BTreeMap<TenantId, usize>,
    places: BTreeMap<TenantId, BTreeMap<String, usize>>,
}

impl Room {
    /// Room for so much, of which what is free must be more than so many times what one place has out.
    pub(super) fn new(most: usize, place_part: usize) -> Self {
        Self { free: most, place_part, tenants: BTreeMap::new(), places: BTreeMap::new() }
    }

    /// Something of this tenant is out to this place.
    pub(super) fn take(&mut self, tenant: TenantId, place: &str) {
        self.free = self.free.saturating_sub(1);
        *self.tenants.entry(tenant).or_default() += 1;
        *self.places.entry(tenant).or_default().entry(place.to_owned()).or_default() += 1;
    }

    /// How much of a tenant is out to a place.
    pub(super) fn out(&self, tenant: TenantId, place: &str) -> usize {
        self.places.get(&tenant).and_then(|places| places.get(place)).copied().unwrap_or_default()
    }

    /// Whether one more of a tenant may go to a place. What names none goes where all of it goes, whosever it is.
    pub(super) fn has_for(&self, tenant: TenantId, place: &str) -> bool {
        let of_tenant = self.tenants.get(&tenant).copied().unwrap_or_default();
        self.free > of_tenant * TENANT_PART
            && (place.is_empty() || self.free > self.out(tenant, place) * self.place_part)
    }

    /// Whether nothing more goes out.
    pub(super) fn is_full(&self) -> bool {
        self.free == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 128;
    const PART: usize = 7;

    /// Each takes what it may in turn, and nothing comes back; how much each has then.
    fn hang(room: &mut Room, who: &[(TenantId, &str)]) -> Vec<usize> {
        while who.iter().any(|(tenant, place)| room.has_for(*tenant, place)) {
            for (tenant, place) in who {
                if room.has_for(*tenant, place) {
                    room.take(*tenant, place);
                }
            }
        }
        who.iter().map(|(tenant, place)| room.out(*tenant, place)).collect()
    }

    #[test]
    fn whoever_is_alone_has_a_part_of_all() {
        assert_eq!(hang(&mut Room::new(MOST, PART), &[(TenantId(1), "a")]), [MOST / 8]);
        let places: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let places: Vec<(TenantId, &str)> =
            places.iter().map(|place| (TenantId(1), place.as_str())).collect();
        assert_eq!(hang(&mut Room::new(MOST, PART), &places).iter().sum::<usize>(), MOST / 2);
        assert_eq!(hang(&mut Room::new(MOST, PART), &[(TenantId(1), "")]), [MOST / 2], "questions");
    }

    /// However many tenants and places hang, up to as many as there is room for, one more finds room.
    #[test]
    fn who_comes_new_finds_room_beside_all_who_hang() {
        for count in 1..MOST as u32 / 2 {
            let mut room = Room::new(MOST, PART);
            let hanging: Vec<_> = (0..count).map(|number| (TenantId(number), "hangs")).collect();
            let each = hang(&mut room, &hanging);
            assert!(each.iter().max() <= each.iter().min().map(|least| least + 1).as_ref(), "{each:?}");
            assert!(room.has_for(TenantId(u32::MAX), "works"), "beside {count}: {each:?}");
        }
    }

    #[test]
    fn all_shards_together_have_no_more_out_than_a_desk_does_at_one_time() {
        for shards in 1..=64 {
            let all = part(256, shards) * shards;
            assert!((192..=256).contains(&all), "{shards} shards: {all}");
        }
        assert_eq!((part(3, 4), part(3, 0)), (1, 3));
    }

    /// However little a shard has, everybody gets one in turn.
    #[test]
    fn the_smallest_room_is_room_for_one() {
        let mut room = Room::new(1, PART);
        assert!(room.has_for(TenantId(1), "a"));
        room.take(TenantId(1), "a");
        assert!(room.is_full() && !room.has_for(TenantId(2), "b"));
    }
}
