//! Bugs that the simulation of servers must find. Only builds with the feature `planted` contain them, which no build of the
//! product has.

use std::cell::Cell;

/// A bug that a simulation plants, one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A peer is accepted whose folder is not the one that its number had before.
    OtherFolderAccepted,
    /// A peer is accepted whose folder is an earlier copy.
    OlderFolderAccepted,
}

thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Plants a bug on this thread, instead of the one before.
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

/// Returns true if this bug is planted on this thread.
pub(crate) fn is(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}
