//! Says which commands are late, compared with how quick the disk is.

use std::time::Duration;

use crate::limits::{LATE, LATE_WRITES};

/// How long it takes to write a decision when the disk is quick.
#[derive(Default)]
pub(super) struct Quick(Duration);

impl Quick {
    /// Notes how long it took to write a decision. The shortest time counts, and fades over the next writes.
    pub(super) fn wrote(&mut self, took: Duration) {
        let quick = self.0 + self.0 / 64;
        self.0 = if quick.is_zero() { took } else { took.min(quick) };
    }

    /// Returns true if a command that was answered after this time was late.
    pub(super) fn is_late(&self, after: Duration) -> bool {
        after > LATE + LATE_WRITES * self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_slow_disk_is_nobodys_fault() {
        let mut quick = Quick::default();
        for took in [20, 10, 30] {
            quick.wrote(took * MS);
        }
        assert!(!quick.is_late(LATE_WRITES * 10 * MS), "it is not late after the time of a few writes");
        assert!(quick.is_late(LATE + LATE_WRITES * 11 * MS));
        for _ in 0..500 {
            quick.wrote(30 * MS);
        }
        assert_eq!(quick.0, 30 * MS, "the estimate follows a slower disk");
    }
}
