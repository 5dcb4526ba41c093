//! Tables whose keys no caller chooses: paths of methods, names of services, numbers of tenants.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table whose keys the server itself gives. So nobody can fill it with what collides, and its hash needs no secret, which
/// would take longer: each call is looked for in such tables several times.
pub(crate) type Known<K, V> = HashMap<K, V, BuildHasherDefault<ShortHasher>>;

/// A multiplier with good upper bits, which [`ShortHasher`] turns down into those that a table takes.
const MULTIPLIER: u64 = 0xf135_7aea_2e62_a9c5;
const TURNS: u32 = 26;

/// Hashes eight bytes at a time.
#[derive(Default)]
pub(crate) struct ShortHasher(u64);

impl ShortHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(MULTIPLIER);
    }
}

impl Hasher for ShortHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.add(u64::from_le_bytes(last));
    }

    fn write_u8(&mut self, byte: u8) {
        self.add(u64::from(byte));
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(TURNS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::hash::BuildHasher as _;
    use switchward_api::ROUTES;
    use switchward_machine::TenantId;

    #[test]
    fn the_methods_have_hashes_of_their_own() {
        let table = Known::<&str, ()>::default();
        let hashes: Vec<u64> = ROUTES.iter().map(|(path, _)| table.hasher().hash_one(path)).collect();
        let all: BTreeSet<&u64> = hashes.iter().collect();
        assert_eq!(all.len(), ROUTES.len());
        // A table chooses by the lowest bits, and compares the highest seven before it compares paths.
        let low: BTreeSet<u64> = hashes.iter().map(|hash| hash & 127).collect();
        let high: BTreeSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
        let few = ROUTES.len().min(128) / 3;
        assert!(low.len() > few && high.len() > few, "{} and {}", low.len(), high.len());
    }

    #[test]
    fn numbers_that_follow_each_other_are_spread() {
        let table = Known::<TenantId, ()>::default();
        let hashes: Vec<u64> = (0..128).map(|number| table.hasher().hash_one(TenantId(number))).collect();
        let low: BTreeSet<u64> = hashes.iter().map(|hash| hash & 127).collect();
        assert!(low.len() > 64, "{}", low.len());
    }
}
