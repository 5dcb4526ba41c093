//! The corpus of `tests/fuzz`, run without libFuzzer: nothing in it makes a target panic, and each target reads further
//! than its first refusal.

#![expect(clippy::unwrap_used, reason = "a test fails if it cannot continue")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use switchward_fuzz::{TARGETS, run};

/// Bytes of the whole corpus: people read it, too.
const CORPUS_BYTES_MAX: u64 = 300 * 1024;
/// A file whose name begins so is accepted by its target; every other one is refused.
const ACCEPTED: &str = "good-";
/// Cuts and changes of each file.
const CUTS: usize = 16;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz")
}

/// The names in a folder, in order.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Every file of a target's corpus, with its name.
fn files(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = folder().join("corpus").join(target);
    names(&folder).into_iter().map(|name| (name.clone(), fs::read(folder.join(name)).unwrap())).collect()
}

#[test]
fn every_target_has_a_program_and_a_corpus_and_there_are_no_others() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let programs = targets.iter().map(|name| format!("{name}.rs")).collect::<BTreeSet<_>>();
    assert_eq!(names(&folder().join("targets")), programs);
    assert_eq!(names(&folder().join("corpus")), targets);
}

#[test]
fn the_corpus_is_small() {
    let all = TARGETS.iter().flat_map(|(name, _)| files(name));
    let bytes: usize = all.map(|(_, bytes)| bytes.len()).sum();
    assert!(u64::try_from(bytes).unwrap() <= CORPUS_BYTES_MAX, "{bytes} bytes");
}

#[test]
fn every_file_is_accepted_or_refused_as_its_name_says() {
    for (target, _) in TARGETS {
        let files = files(target);
        let good = files.iter().filter(|(name, _)| name.starts_with(ACCEPTED)).count();
        assert!(good > 0 && good < files.len(), "{target} has {good} good files of {}", files.len());
        let wrong = |(name, bytes): &&(String, Vec<u8>)| run(target, bytes) != name.starts_with(ACCEPTED);
        let wrong: Vec<&str> = files.iter().filter(wrong).map(|(name, _)| name.as_str()).collect();
        assert!(wrong.is_empty(), "{target}: {wrong:?}");
    }
}

#[test]
fn files_that_are_cut_off_or_changed_break_nothing() {
    for (target, _) in TARGETS {
        for (_, bytes) in files(target) {
            for part in 0..CUTS {
                let at = bytes.len() * part / CUTS;
                run(target, &bytes[..at]);
                let mut changed = bytes.clone();
                if let Some(byte) = changed.get_mut(at) {
                    *byte ^= 1 << (part % 8);
                }
                run(target, &changed);
            }
        }
    }
}
