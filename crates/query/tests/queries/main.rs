//! Queries as one server sends them to another.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod answers;
mod draw;
mod golden;
mod kinds;
mod parts;
mod random;

use draw::Draw;
use std::collections::BTreeSet;
use switchward_query::Query;

/// Random queries of each run of the test.
const QUERIES: u64 = 3_000;

/// Each query has its own seed, which a failure names. `QUERY_TEST_SEED` runs one.
#[test]
fn a_random_query_of_every_kind_is_read_back_as_it_was() {
    let one = std::env::var("QUERY_TEST_SEED").ok().map(|seed| seed.parse().unwrap());
    let seeds = one.map_or(0..QUERIES, |seed: u64| seed..seed + 1);
    let mut seen = BTreeSet::new();
    for seed in seeds {
        let query = random::query(&mut Draw::new(seed));
        let bytes = minicbor::to_vec(&query).unwrap();
        assert_eq!(minicbor::len(&query), bytes.len(), "seed {seed}");
        let read: Query =
            minicbor::decode(&bytes).unwrap_or_else(|error| panic!("seed {seed}: {error}: {query:?}"));
        assert_eq!(read, query, "seed {seed}");
        assert_eq!(minicbor::to_vec(&read).unwrap(), bytes, "seed {seed}");
        seen.insert(kinds::number(&query));
    }
    if one.is_none() {
        assert_eq!(seen, kinds::all(), "every kind is drawn");
    }
}
