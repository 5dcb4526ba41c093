//! The kinds of queries, by their numbers.

use std::collections::BTreeSet;
use switchward_query::Query;

/// The number of a query's aggregate, and its own number there.
pub(crate) fn number(query: &Query) -> (u8, u8) {
    let bytes = minicbor::to_vec(query).unwrap();
    (bytes[1], bytes[4])
}

/// The numbers of all kinds. A kind that does not exist is known by the decoder's error.
pub(crate) fn all() -> BTreeSet<(u8, u8)> {
    let numbers = (0..24).flat_map(|aggregate| (0..24).map(move |number| (aggregate, number)));
    numbers.filter(|(aggregate, number)| exists(*aggregate, *number)).collect()
}

fn exists(aggregate: u8, number: u8) -> bool {
    let bytes = [0x82, aggregate, 0x81, 0x82, number, 0x81, 0xf6];
    minicbor::decode::<Query>(&bytes).err().is_none_or(|error| !error.is_unknown_variant())
}
