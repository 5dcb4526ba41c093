//! A list of flaws that does not grow without end.

use crate::flaw::{Flaw, FlawKind};
use crate::limits::FLAWS_MAX;

/// The flaws of one schema, while it is read.
#[derive(Debug, Default)]
pub(crate) struct Flaws(Vec<Flaw>);

impl Flaws {
    /// Adds one, unless there are enough.
    pub(crate) fn add(&mut self, pointer: impl Into<String>, kind: FlawKind, message: impl Into<String>) {
        if self.0.len() < FLAWS_MAX {
            self.0.push(Flaw { pointer: pointer.into(), kind, message: message.into() });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each once, in the order of pointers.
    pub(crate) fn sorted(mut self) -> Vec<Flaw> {
        self.0.sort();
        self.0.dedup();
        self.0
    }
}
