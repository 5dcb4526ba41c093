//! Runs of many seeds: which are played, and what they have counted.

use std::collections::BTreeMap;
use std::ops::Range;

/// The seeds that an environment variable names, as in `0..200`; `None` if it is absent or empty.
///
/// # Panics
/// If it is no such range.
#[must_use]
pub fn named_seeds(variable: &str) -> Option<Range<u64>> {
    let text = std::env::var(variable).ok().filter(|text| !text.is_empty())?;
    let range = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    Some(range.unwrap_or_else(|| panic!("{variable} is {text:?}, and not a range such as 0..200")))
}

/// Counts of what happened, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<String, u64>);

impl Counts {
    /// Counts one.
    pub fn add(&mut self, kind: &str) {
        self.add_many(kind, 1);
    }

    /// Counts several.
    pub fn add_many(&mut self, kind: &str, more: u64) {
        match self.0.get_mut(kind) {
            Some(count) => *count += more,
            None => drop(self.0.insert(kind.to_owned(), more)),
        }
    }

    /// Adds those of another run.
    pub fn add_all(&mut self, other: &Self) {
        other.iter().for_each(|(kind, count)| self.add_many(kind, count));
    }

    /// How often a kind occurred.
    #[must_use]
    pub fn of(&self, kind: &str) -> u64 {
        self.0.get(kind).copied().unwrap_or(0)
    }

    /// All kinds, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(kind, count)| (kind.as_str(), *count))
    }

    /// A line for each kind, by which `tests/scripts/seeds.sh` adds up several runs. `seeds` are those that were played.
    #[must_use]
    pub fn lines(&self, seeds: &Range<u64>) -> String {
        let line = |(kind, count)| format!("counted\t{}..{}\t{count}\t{kind}\n", seeds.start, seeds.end);
        self.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_and_printed_with_their_seeds() {
        let (mut sum, mut more) = (Counts::default(), Counts::default());
        sum.add("kill");
        more.add_many("kill", 2);
        more.add("cut");
        sum.add_all(&more);
        assert_eq!([sum.of("kill"), sum.of("cut"), sum.of("none")], [3, 1, 0]);
        assert_eq!(sum.lines(&(4..9)), "counted\t4..9\t1\tcut\ncounted\t4..9\t3\tkill\n");
    }

    #[test]
    fn a_variable_that_is_absent_names_no_seeds() {
        assert_eq!(named_seeds("SEEDS_THAT_NOBODY_NAMES"), None);
    }
}
