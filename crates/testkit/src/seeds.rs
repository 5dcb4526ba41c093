//! Runs of many seeds: which are played, on how many threads, and what they have counted.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

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

/// The number of threads that run at one time on this machine, as far as this process may use its cores.
#[must_use]
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Calls `work` with each seed, on this number of threads, until a call returns false: those that were begun before go on.
/// Each thread has a value that `own` makes, for what threads should not share: cores that count the references of one
/// allocation wait for each other.
pub fn each_seed<S>(
    seeds: impl Iterator<Item = u64> + Send,
    threads: usize,
    own: impl Fn() -> S + Sync,
    work: impl Fn(&S, u64) -> bool + Sync,
) {
    let (seeds, ended) = (Mutex::new(seeds), AtomicBool::new(false));
    let next = || if ended.load(Ordering::Relaxed) { None } else { seeds.lock().unwrap().next() };
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                let own = own();
                while let Some(seed) = next() {
                    if !work(&own, seed) {
                        ended.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
}

/// Plays a seed; a panic is an error, so that it ends this seed and no others.
///
/// # Errors
/// As what is played, or the panic's message.
pub fn caught<T>(plays: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(plays)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(format!("a panic: {}", text.unwrap_or_default()))
    })
}

/// Fails if runs of seeds have failed, and says how the first of them is played again by a target of make that plays the
/// seeds of a variable.
///
/// # Panics
/// If there is such a seed.
#[track_caller]
pub fn none_failed(mut failed: Vec<u64>, variable: &str, target: &str) {
    failed.sort_unstable();
    if let Some(first) = failed.first() {
        let again = format!("{variable}={first}..{} make {target}", first + 1);
        panic!("these seeds fail: {failed:?}; the first of them is played again by `{again}`");
    }
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
    use std::path::Path;
    use std::process::Command;

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

    #[test]
    fn a_panic_ends_its_seed_with_what_it_said() {
        assert_eq!(caught(|| Ok(7)), Ok(7));
        let what = "luck";
        assert_eq!(caught(|| -> Result<u8, String> { panic!("no {what}") }), Err("a panic: no luck".into()));
    }

    #[test]
    fn each_seed_is_played_once_and_each_thread_has_its_own() {
        let (played, made) = (Mutex::new(Vec::new()), Mutex::new(0));
        let own = || *made.lock().unwrap() += 1;
        each_seed(3..103, 4, own, |(), seed| {
            played.lock().unwrap().push(seed);
            true
        });
        let mut played = played.into_inner().unwrap();
        played.sort_unstable();
        assert_eq!(played, (3..103).collect::<Vec<u64>>());
        assert_eq!(made.into_inner().unwrap(), 4);
    }

    #[test]
    fn no_seed_is_begun_after_one_that_ends_the_run() {
        let played = Mutex::new(Vec::new());
        each_seed(
            0..100,
            1,
            || (),
            |(), seed| {
                played.lock().unwrap().push(seed);
                seed < 5
            },
        );
        assert_eq!(played.into_inner().unwrap(), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    #[should_panic(
        expected = "these seeds fail: [4, 9]; the first of them is played again by `SEEDS=4..5 make it`"
    )]
    fn the_first_seed_that_fails_is_named() {
        none_failed(Vec::new(), "SEEDS", "it");
        none_failed(vec![9, 4], "SEEDS", "it");
    }

    /// Has `seeds.sh` play these seeds with a test that counts `runs`, and add them up in a file. Returns whether it went well,
    /// and what it said.
    fn script(counts: &Path, seeds: &str, runs: u64) -> (bool, String) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scripts/seeds.sh");
        let mut command = Command::new("sh");
        command.arg(script).args([
            "TRIED",
            "0..1",
            "printf",
            "counted\\t%s\\t%s\\truns\\n",
            seeds,
            &runs.to_string(),
        ]);
        let ended = command.env("TRIED_SEEDS", seeds).env("TRIED_COUNTS", counts).output().unwrap();
        (ended.status.success(), String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned())
    }

    #[test]
    fn the_script_counts_no_seed_twice_and_none_that_was_not_played() {
        let folder = tempfile::tempdir().unwrap();
        let counts = folder.path().join("counts");
        let said = |seeds, runs| script(&counts, seeds, runs);
        assert!(said("0..10", 10).0);
        for (seeds, runs, why) in
            [("9..12", 3, "overlap 0..10"), ("10..20", 4, "6 seeds of 10..20 were not played")]
        {
            let (went_well, text) = said(seeds, runs);
            assert!(!went_well && text.contains(why), "{text}");
        }
        let (went_well, text) = said("10..20", 10);
        assert!(went_well && text.contains("20  runs"), "{text}");
        let whole = std::fs::read_to_string(&counts).unwrap();
        assert_eq!(whole, "counted\t0..10\t10\truns\ncounted\t10..20\t10\truns\n");
        // What a run leaves that is killed while it writes, or a disk that was full.
        for broken in [
            &whole[..whole.len() - 1],
            &whole[..whole.len() - 7],
            format!("{whole}counted\t20..30\n").as_str(),
        ] {
            std::fs::write(&counts, broken).unwrap();
            let (went_well, text) = said("20..30", 10);
            assert!(!went_well && text.contains("is not whole"), "{text}");
        }
    }
}
