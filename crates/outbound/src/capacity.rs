//! How much may be in flight at one time. The shards of a server share the concurrency of its delivery worker, so all that
//! is in flight can be started at once. No tenant and no destination gets more than a part of a shard's free capacity: the
//! more of them hang, the less each of them holds, and a new one still finds capacity.

use std::collections::BTreeMap;

use switchward_bus::Stream;
use switchward_machine::TenantId;

/// The free capacity must exceed this many times what a tenant has in flight: alone it gets one half of all.
const TENANT_PART: usize = 1;

/// Returns the share of one shard if all of them share `all`.
pub(super) fn part(all: usize, shards: usize) -> usize {
    (all / shards.max(1)).max(1)
}

/// The capacities of a shard, by stream.
pub(super) type Capacities = BTreeMap<Stream, Capacity>;

/// What may still go out by one stream.
pub(super) struct Capacity {
    free: usize,
    destination_part: usize,
    tenants: BTreeMap<TenantId, usize>,
    destinations: BTreeMap<TenantId, BTreeMap<String, usize>>,
}

impl Capacity {
    /// Creates a limiter with `most` permits. A destination may take another one only while the free permits exceed
    /// `destination_part` times its in-flight count.
    pub(super) fn new(most: usize, destination_part: usize) -> Self {
        Self { free: most, destination_part, tenants: BTreeMap::new(), destinations: BTreeMap::new() }
    }

    /// Takes a permit for a tenant and a destination.
    pub(super) fn take(&mut self, tenant: TenantId, destination: &str) {
        self.free = self.free.saturating_sub(1);
        *self.tenants.entry(tenant).or_default() += 1;
        *self.destinations.entry(tenant).or_default().entry(destination.to_owned()).or_default() += 1;
    }

    /// Returns how much of a tenant is in flight to a destination.
    pub(super) fn out(&self, tenant: TenantId, destination: &str) -> usize {
        self.destinations
            .get(&tenant)
            .and_then(|destinations| destinations.get(destination))
            .copied()
            .unwrap_or_default()
    }

    /// Returns true if one more of a tenant may go to a destination. An empty destination is limited by tenant only.
    pub(super) fn has_for(&self, tenant: TenantId, destination: &str) -> bool {
        let of_tenant = self.tenants.get(&tenant).copied().unwrap_or_default();
        self.free > of_tenant * TENANT_PART
            && (destination.is_empty() || self.free > self.out(tenant, destination) * self.destination_part)
    }

    /// Returns true if no permit is free.
    pub(super) fn is_full(&self) -> bool {
        self.free == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 128;
    const PART: usize = 7;

    /// Takes permits in turn until nobody may take one, returns none, and reports how many each has.
    fn hang(capacity: &mut Capacity, who: &[(TenantId, &str)]) -> Vec<usize> {
        while who.iter().any(|(tenant, destination)| capacity.has_for(*tenant, destination)) {
            for (tenant, destination) in who {
                if capacity.has_for(*tenant, destination) {
                    capacity.take(*tenant, destination);
                }
            }
        }
        who.iter().map(|(tenant, destination)| capacity.out(*tenant, destination)).collect()
    }

    #[test]
    fn one_destination_alone_gets_a_part_of_all() {
        assert_eq!(hang(&mut Capacity::new(MOST, PART), &[(TenantId(1), "a")]), [MOST / 8]);
        let destinations: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let destinations: Vec<(TenantId, &str)> =
            destinations.iter().map(|destination| (TenantId(1), destination.as_str())).collect();
        assert_eq!(hang(&mut Capacity::new(MOST, PART), &destinations).iter().sum::<usize>(), MOST / 2);
        assert_eq!(hang(&mut Capacity::new(MOST, PART), &[(TenantId(1), "")]), [MOST / 2], "questions");
    }

    /// However many tenants and destinations hang, up to half of the capacity, one more finds capacity.
    #[test]
    fn a_new_tenant_finds_capacity_beside_all_that_hang() {
        for count in 1..MOST as u32 / 2 {
            let mut capacity = Capacity::new(MOST, PART);
            let hanging: Vec<_> = (0..count).map(|number| (TenantId(number), "hangs")).collect();
            let each = hang(&mut capacity, &hanging);
            assert!(each.iter().max() <= each.iter().min().map(|least| least + 1).as_ref(), "{each:?}");
            assert!(capacity.has_for(TenantId(u32::MAX), "works"), "beside {count}: {each:?}");
        }
    }

    #[test]
    fn all_shards_together_have_no_more_out_than_a_worker_does_at_one_time() {
        for shards in 1..=64 {
            let all = part(256, shards) * shards;
            assert!((192..=256).contains(&all), "{shards} shards: {all}");
        }
        assert_eq!((part(3, 4), part(3, 0)), (1, 3));
    }

    /// However small a shard's capacity is, everybody gets a permit in turn.
    #[test]
    fn the_smallest_capacity_is_one() {
        let mut capacity = Capacity::new(1, PART);
        assert!(capacity.has_for(TenantId(1), "a"));
        capacity.take(TenantId(1), "a");
        assert!(capacity.is_full() && !capacity.has_for(TenantId(2), "b"));
    }
}
