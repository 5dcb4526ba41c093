//! A record for tests of states, in which the keys alone matter.

use super::Record;

/// A row without content.
#[derive(Clone)]
pub(super) struct Empty;

impl Record for Empty {
    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(_: &[u8]) -> Result<Self, String> {
        Ok(Self)
    }

    fn weight(&self) -> usize {
        0
    }

    fn cache(&self) -> bool {
        true
    }
}
