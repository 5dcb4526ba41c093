//! How operations have ended for their callers, and whether enough of them were of use.

use std::fmt;

/// The operations of a round that must succeed, of 100. With fewer the round shows nothing.
const SUCCEEDED_MIN: u64 = 80;

/// How an operation has ended for its caller. It is one operation with all of its attempts, which are made until it is answered or
/// its time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It was answered. That a register is at another sequence is an answer, and so is that a call is not allowed.
    Succeeded,
    /// It was refused as long as it was tried, by servers or because none was there; or its answer is wrong.
    Failed,
    /// It may have been done, or may be done later.
    Unknown,
}

/// How often operations have ended in each of these ways.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Endings {
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) unknown: u64,
}

impl Endings {
    /// Counts one.
    pub(crate) fn add(&mut self, ending: Ending) {
        match ending {
            Ending::Succeeded => self.succeeded += 1,
            Ending::Failed => self.failed += 1,
            Ending::Unknown => self.unknown += 1,
        }
    }

    fn all(self) -> u64 {
        self.succeeded + self.failed + self.unknown
    }

    /// Returns true if there were any, and enough have succeeded.
    pub(crate) fn show_something(self) -> bool {
        self.all() > 0 && self.succeeded * 100 >= self.all() * SUCCEEDED_MIN
    }
}

impl fmt::Display for Endings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { succeeded, failed, unknown } = self;
        write!(f, "{succeeded} of {} operations succeeded ({failed} failed, {unknown} unknown)", self.all())
    }
}

#[test]
fn only_operations_that_succeeded_count_as_such() {
    let endings = |succeeded, failed, unknown| Endings { succeeded, failed, unknown };
    for (endings, enough) in [
        (endings(0, 0, 0), false),
        (endings(1, 0, 0), true),
        (endings(80, 20, 0), true),
        (endings(80, 0, 20), true),
        (endings(79, 21, 0), false),
        (endings(79, 0, 21), false),
        (endings(799, 200, 1), false),
        (endings(0, 1_000, 0), false),
    ] {
        assert_eq!(endings.show_something(), enough, "{endings}");
    }
    let mut sum = Endings::default();
    for ending in [Ending::Succeeded, Ending::Failed, Ending::Unknown, Ending::Failed] {
        sum.add(ending);
    }
    assert_eq!(sum, endings(1, 2, 1));
    assert_eq!(sum.to_string(), "1 of 4 operations succeeded (2 failed, 1 unknown)");
}
