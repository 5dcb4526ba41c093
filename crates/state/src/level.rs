//! Feature levels: what servers of different versions may write while they are in one cluster.
//!
//! The cluster has a level, in its map. What came in after that level is not written and not sent, so that every server
//! reads all that there is. A level only adds kinds and fields; it never takes one away or gives it another meaning.
//!
//! To add a kind or a field to a form that is stored or sent, after a release:
//!
//! 1. If [`HIGHEST`] is that of the last release, raise it by one. The feature `second-level` goes with the first time.
//! 2. Add an [`Addition`] with that level to [`ADDITIONS`]. A field must be optional.
//! 3. Where it is written, ask [`Level::writes`]; the engine has the level in its stamp.
//! 4. Refuse it below its level in [`Decision::check_level`](crate::Decision::check_level), if it is in the log.
//!
//! [`LOWEST`] may be raised when the code that writes earlier forms goes; a server then joins no cluster below it.

use minicbor::{CborLen, Decode, Encode};
use std::fmt;

/// The lowest level at which this program can write.
pub const LOWEST: Level = Level(1);
/// The highest level that this program knows.
#[cfg(not(feature = "second-level"))]
pub const HIGHEST: Level = Level(1);
/// The highest level that a build of `make roll` knows: beside the real levels, that of [`SAMPLE`].
#[cfg(feature = "second-level")]
pub const HIGHEST: Level = Level(2);

/// The kinds and fields that came in after level 1, in the order of their levels. Everything else is of level 1.
pub const ADDITIONS: &[Addition] = &[
    #[cfg(feature = "level-two")]
    SAMPLE,
];

/// A field that exists for tests alone: a decision has it from level 2 on.
#[cfg(feature = "level-two")]
pub const SAMPLE: Addition = Addition { name: "Decision.sample", level: Level(2) };

/// A feature level, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct Level(#[n(0)] pub u32);

impl Level {
    /// The level of all that was there from the beginning.
    pub const FIRST: Self = Self(1);

    /// Returns true if something that came in later may be written at this level.
    #[must_use]
    pub const fn writes(self, addition: &Addition) -> bool {
        addition.level.0 <= self.0
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A kind or a field that came in after level 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addition {
    /// Its type, and its variant or field.
    pub name: &'static str,
    /// The first level at which it is written.
    pub level: Level,
}

/// The levels of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Levels {
    /// The lowest level at which it can write.
    #[n(0)]
    pub lowest: Level,
    /// The highest level that it knows.
    #[n(1)]
    pub highest: Level,
}

impl Levels {
    /// The levels of this program.
    pub const OF_PROGRAM: Self = Self { lowest: LOWEST, highest: HIGHEST };

    /// Checks that a server with these levels can take part in a cluster of this level.
    ///
    /// # Errors
    /// It cannot; one line says why.
    pub fn check(self, level: Level) -> Result<(), String> {
        if level > self.highest {
            let highest = self.highest;
            let message = format!(
                "the cluster writes feature level {level}, and the server knows levels up to {highest}: run a newer version"
            );
            return Err(message);
        }
        if level < self.lowest {
            let lowest = self.lowest;
            let message = format!(
                "the cluster writes feature level {level}, and the server writes level {lowest} or higher: raise the \
                 cluster's level first"
            );
            return Err(message);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_the_program_knows_all_of_it() {
        assert!(ADDITIONS.is_sorted_by_key(|addition| addition.level));
        let names: std::collections::BTreeSet<_> = ADDITIONS.iter().map(|addition| addition.name).collect();
        assert_eq!(names.len(), ADDITIONS.len());
        for addition in ADDITIONS.iter().filter(|addition| addition.name != "Decision.sample") {
            assert!(addition.level > Level::FIRST && addition.level <= HIGHEST, "{addition:?}");
        }
    }

    #[test]
    fn nothing_is_written_below_its_level() {
        let addition = Addition { name: "Row.later", level: Level(3) };
        assert_eq!([1, 2, 3, 4].map(|level| Level(level).writes(&addition)), [false, false, true, true]);
    }

    #[test]
    fn a_server_takes_part_only_at_a_level_of_its_range() {
        let levels = Levels { lowest: Level(2), highest: Level(3) };
        assert_eq!([2, 3].map(|level| levels.check(Level(level))), [Ok(()), Ok(())]);
        let refused = [1, 4].map(|level| levels.check(Level(level)).unwrap_err());
        assert!(refused[0].contains("writes level 2 or higher"), "{}", refused[0]);
        assert!(refused[1].contains("knows levels up to 3"), "{}", refused[1]);
        assert_eq!(Levels::OF_PROGRAM.check(HIGHEST), Ok(()));
    }
}
