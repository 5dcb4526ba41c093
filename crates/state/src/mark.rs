//! A short form of names in the keys of an index.

use switchward_machine::Digest;

/// Stands for a definition in the order in which what has ended is kept.
#[must_use]
pub fn mark(definition: &str) -> [u8; 8] {
    let digest = Digest::of(definition.as_bytes());
    let mut hash = [0u8; 8];
    hash.copy_from_slice(&digest.0[..8]);
    hash
}
