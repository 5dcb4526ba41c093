//! The feature level at which this server writes a group's entries, and what it can read.

use std::sync::atomic::{AtomicU32, Ordering};
use switchward_state::{Decision, Level, Levels};

/// The level of a group on this server.
#[derive(Debug)]
pub(crate) struct WriteLevel {
    levels: Levels,
    now: AtomicU32,
}

impl WriteLevel {
    /// The level of a server that does not know its cluster's yet: the lowest at which it can write.
    pub(crate) fn of_member(levels: Levels) -> Self {
        Self { levels, now: AtomicU32::new(levels.lowest.0) }
    }

    /// The level of a server alone, which nobody else must be able to read: the highest that it knows.
    pub(crate) fn of_server_alone(levels: Levels) -> Self {
        Self { levels, now: AtomicU32::new(levels.highest.0) }
    }

    /// Returns the level at which this server writes: nothing that came in after it.
    pub(crate) fn get(&self) -> Level {
        Level(self.now.load(Ordering::Acquire))
    }

    /// Follows the level of the cluster, up to what this server knows. It never falls.
    pub(crate) fn follow(&self, level: Level) {
        let _before = self.now.fetch_max(level.min(self.levels.highest).0, Ordering::AcqRel);
    }

    /// The levels of this server.
    pub(crate) fn levels(&self) -> Levels {
        self.levels
    }
}

/// Checks that a server with these levels can read an entry: it must not acknowledge what it cannot apply.
///
/// # Errors
/// The entry is of a higher level; one line says so. Bytes that are no decision are left to those who decode them.
pub(crate) fn check_entry(levels: Levels, index: u64, decision: &[u8]) -> Result<(), String> {
    match Decision::level_of(decision) {
        Some(level) if level > levels.highest => Err(too_high(&format!("entry {index}"), level, levels)),
        Some(_) | None => Ok(()),
    }
}

/// Checks that a server with these levels can read rows of this level.
///
/// # Errors
/// It cannot; one line says so.
pub(crate) fn check_rows(levels: Levels, level: Level) -> Result<(), String> {
    if level > levels.highest { Err(too_high("the state", level, levels)) } else { Ok(()) }
}

fn too_high(what: &str, level: Level, levels: Levels) -> String {
    let highest = levels.highest;
    format!(
        "{what} is of feature level {level}, and this server knows levels up to {highest}: run a newer version"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_machine::Time;

    const LEVELS: Levels = Levels { lowest: Level(2), highest: Level(3) };

    #[test]
    fn a_member_follows_its_cluster_and_never_back() {
        let level = WriteLevel::of_member(LEVELS);
        assert_eq!(level.get(), Level(2));
        for (followed, expected) in [(3, 3), (2, 3), (4, 3)] {
            level.follow(Level(followed));
            assert_eq!(level.get(), Level(expected));
        }
        assert_eq!(WriteLevel::of_server_alone(LEVELS).get(), Level(3));
    }

    #[test]
    fn an_entry_of_a_higher_level_is_refused() {
        let entry = |level| Decision::new(Level(level), Time(1), Vec::new()).encode();
        for level in [1, 2, 3] {
            assert_eq!(check_entry(LEVELS, 7, &entry(level)), Ok(()));
        }
        let refused = check_entry(LEVELS, 7, &entry(4)).unwrap_err();
        let expected =
            "entry 7 is of feature level 4, and this server knows levels up to 3: run a newer version";
        assert_eq!(refused, expected);
        assert_eq!(check_entry(LEVELS, 7, b"no decision"), Ok(()));
        assert!(check_rows(LEVELS, Level(4)).is_err() && check_rows(LEVELS, Level(3)).is_ok());
    }
}
