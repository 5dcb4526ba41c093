//! What a kill or a power cut leaves on disk.

use crate::support::{GROUP, apply, copy, durably, open_log, open_state, record, rows, text};
use bytes::Bytes;
use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};
use switchward_store::{DataDir, GroupLog, LogOptions, Meta, SegmentLog, StateStore, StoreError};

const PAGE: usize = 4096;

fn find(journal: &Path, needle: &[u8]) -> usize {
    let bytes = fs::read(journal).unwrap();
    bytes.windows(needle.len()).position(|window| window == needle).unwrap()
}

/// The position of the head of the first batch in a segment of the log.
const FIRST_BATCH: usize = 32;
const BATCH_HEAD: usize = 24;

/// The newest segment of a log.
pub(crate) fn segment(path: &Path) -> PathBuf {
    let segments = fs::read_dir(path.join("log")).unwrap().map(|entry| entry.unwrap().path());
    segments.max().expect("the log has a segment")
}

/// The offsets of a segment's batches, and of the end of the last one.
pub(crate) fn batches(segment: &Path) -> Vec<usize> {
    let bytes = fs::read(segment).unwrap();
    let mut starts = vec![FIRST_BATCH];
    let mut at = FIRST_BATCH;
    while bytes[at..].iter().take(4).any(|byte| *byte != 0) {
        let body = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap());
        at += BATCH_HEAD + usize::try_from(body).unwrap();
        starts.push(at);
    }
    starts
}

/// What is known to have been synced of a log.
const SYNCED: &str = "LOG_SYNCED";

/// The first batch that a log must have.
const BEGIN: &str = "LOG_BEGIN";

/// What such a file holds with this number.
fn mark(number: u64) -> String {
    let line = format!("{number:016x}\n");
    format!("{line}{:016x}\n", xxhash_rust::xxh3::xxh3_64(line.as_bytes()))
}

/// A log of three batches in one segment, the last of which is not known to have been synced: so a power cut leaves it.
fn three_batches(path: &Path) {
    let log = open_log(path);
    let mut synced = Vec::new();
    for (index, byte) in [(1, b'a'), (2, b'b'), (3, b'c')] {
        synced = fs::read(path.join(SYNCED)).unwrap();
        durably(|done| log.append(GROUP, vec![record(index, vec![byte; 4 * PAGE])], done)).unwrap();
    }
    drop(log);
    fs::write(path.join(SYNCED), synced).unwrap();
}

/// Copies a data folder and writes `bytes` zeros at the offset `at` of the newest segment of its log.
fn with_hole(whole: &Path, torn: &Path, at: usize, bytes: usize) {
    copy(whole, torn);
    let segment = File::options().write(true).open(segment(torn)).unwrap();
    segment.write_all_at(&vec![0; bytes], at as u64).unwrap();
}

fn try_open(path: &Path) -> Result<SegmentLog, StoreError> {
    let options = LogOptions { on_fatal: Box::new(|_| {}), sync_fault: None };
    SegmentLog::open(&DataDir::open(path).unwrap(), options)
}

#[test]
fn a_last_batch_that_was_torn_anywhere_is_cut_off() {
    let root = tempfile::tempdir().unwrap();
    let whole = root.path().join("whole");
    three_batches(&whole);
    let starts = batches(&segment(&whole));
    let [_, _, last, end] = starts[..] else { panic!("{starts:?}") };
    // The magic, the length, the checksum, the head of the record, its bytes, its end, all of it.
    let holes = [(0, 4), (4, 4), (16, 8), (24, 29), (PAGE, PAGE), (end - last - 1, 1), (0, end - last)];
    for (number, (offset, bytes)) in holes.into_iter().enumerate() {
        let torn = root.path().join(number.to_string());
        with_hole(&whole, &torn, last + offset, bytes);
        let log = try_open(&torn).unwrap();
        assert_eq!(log.first_last(GROUP).unwrap(), Some((1, 2)), "hole {number}");
        durably(|done| log.append(GROUP, vec![record(3, "again")], done)).unwrap();
        drop(log);
        let log = open_log(&torn);
        assert_eq!(log.last(GROUP).unwrap(), Some(record(3, "again")), "hole {number}");
        assert_eq!(log.first_last(GROUP).unwrap(), Some((1, 3)));
    }
}

#[test]
fn damage_before_the_last_batch_is_reported_with_its_position() {
    let root = tempfile::tempdir().unwrap();
    let whole = root.path().join("whole");
    three_batches(&whole);
    let starts = batches(&segment(&whole));
    for (batch, start) in starts.iter().enumerate().take(2) {
        for (number, (offset, bytes)) in
            [(0, 4), (4, 2), (8, 1), (16, 8), (PAGE, PAGE)].into_iter().enumerate()
        {
            let torn = root.path().join(format!("{batch}-{number}"));
            with_hole(&whole, &torn, start + offset, bytes);
            let Err(error) = try_open(&torn) else { panic!("it opened with hole {number} in batch {batch}") };
            let StoreError::Damaged { what: "log", detail } = &error else { panic!("{error}") };
            let prefix = format!("the batch at byte {start} of ");
            assert!(detail.starts_with(&prefix) && detail.contains(".log"), "{detail}");
        }
    }
    let torn = root.path().join("head");
    with_hole(&whole, &torn, 10, 8);
    let error = try_open(&torn).err().expect("the head is broken").to_string();
    assert!(error.contains("the header of ") && error.contains(".log is broken"), "{error}");
}

/// Each start begins another segment, so a log of three starts has three.
fn three_segments(path: &Path) -> Vec<PathBuf> {
    for index in 1..=3 {
        let log = open_log(path);
        durably(|done| log.append(GROUP, vec![record(index, format!("of start {index}"))], done)).unwrap();
    }
    let mut segments: Vec<_> =
        fs::read_dir(path.join("log")).unwrap().map(|entry| entry.unwrap().path()).collect();
    segments.sort();
    segments
}

#[test]
fn a_segment_that_lost_its_end_or_is_gone_is_reported() {
    for damage in ["its end", "all"] {
        let root = tempfile::tempdir().unwrap();
        let segments = three_segments(root.path());
        assert_eq!(segments.len(), 3);
        match damage {
            "all" => fs::remove_file(&segments[1]).unwrap(),
            _ => File::options().write(true).open(&segments[1]).unwrap().set_len(FIRST_BATCH as u64).unwrap(),
        }
        let Err(error) = try_open(root.path()) else { panic!("it opened without {damage}") };
        let missing = ["batches before it are missing", "it is missing, and other batches follow it"];
        assert!(missing.iter().any(|why| error.to_string().contains(why)), "{error}");
    }
}

#[test]
fn a_log_without_one_of_its_segments_is_refused_whichever_it_is() {
    let missing = [
        "its first segment is missing, with the batches 1 to 1",
        "batches before it are missing",
        "batch 3 is missing, which was synced",
    ];
    for (number, missing) in missing.into_iter().enumerate() {
        let root = tempfile::tempdir().unwrap();
        let segments = three_segments(root.path());
        fs::remove_file(&segments[number]).unwrap();
        // After a power cut this record may be an old one. It is needed only if the end of the log is lost.
        if number < 2 {
            fs::write(root.path().join(SYNCED), mark(0)).unwrap();
        }
        for _ in 0..2 {
            let error = try_open(root.path()).err().expect("a segment is missing").to_string();
            assert!(error.contains(missing) && !error.contains('\n'), "{error}");
        }
    }
}

/// Before a segment is removed, the log records with which batch it begins then. The process may end before and
/// after each step.
#[test]
fn a_log_opens_wherever_the_removal_of_its_segments_has_ended_and_not_if_more_are_gone() {
    let root = tempfile::tempdir().unwrap();
    let (whole, purged) = (root.path().join("whole"), root.path().join("purged"));
    let segments = three_segments(&whole);
    copy(&whole, &purged);
    let log = open_log(&purged);
    durably(|done| log.purge_to(GROUP, 3, Bytes::from_static(b"at 3"), done)).unwrap();
    drop(log);
    let is_purged = |path: &Path| {
        let begin = fs::read_to_string(path.join(BEGIN)).unwrap();
        begin == mark(4) && fs::read_dir(path.join("log")).unwrap().count() == 1
    };
    assert!(is_purged(&purged));
    // Each segment has one batch, with the same number.
    for (oldest, begin) in (1..=4).flat_map(|oldest| (0..=4).map(move |begin| (oldest, begin))) {
        let image = root.path().join(format!("{oldest}-{begin}"));
        copy(&purged, &image);
        for segment in &segments[oldest - 1..] {
            fs::copy(segment, image.join("log").join(segment.file_name().unwrap())).unwrap();
        }
        fs::write(image.join(BEGIN), mark(begin)).unwrap();
        let opens = begin.max(1) >= oldest as u64;
        match try_open(&image) {
            Ok(log) => {
                assert!(opens, "it begins with batch {oldest} instead of {begin}");
                assert_eq!(log.first_last(GROUP).unwrap(), None);
                assert_eq!(log.meta(GROUP, Meta::Purged).unwrap().unwrap(), "at 3");
                drop(log);
                assert!(is_purged(&image), "{oldest}, {begin}");
            }
            Err(error) => {
                assert!(!opens, "{oldest}, {begin}: {error}");
                assert!(error.to_string().contains("its first segment is missing"), "{error}");
            }
        }
    }
}

#[test]
fn bytes_of_a_caller_never_pass_for_a_batch() {
    let root = tempfile::tempdir().unwrap();
    let whole = root.path().join("whole");
    three_batches(&whole);
    let bytes = fs::read(segment(&whole)).unwrap();
    let starts = batches(&segment(&whole));
    let log = open_log(&whole);
    let synced = fs::read(whole.join(SYNCED)).unwrap();
    let forged = bytes[starts[1]..starts[2]].to_vec();
    durably(|done| log.append(GROUP, vec![record(4, [vec![7; PAGE], forged].concat())], done)).unwrap();
    drop(log);
    fs::write(whole.join(SYNCED), synced).unwrap();
    let torn = root.path().join("torn");
    with_hole(&whole, &torn, FIRST_BATCH, 4);
    assert_eq!(try_open(&torn).unwrap().first_last(GROUP).unwrap(), Some((1, 3)), "it is torn, not damaged");
}

/// A state of four flushes, each with a row of several pages, and what it looked like after each.
fn flushed(path: &Path) -> Vec<Look> {
    let state = open_state(path);
    let mut looks = vec![(None, Vec::new())];
    for (entry, name) in (0_u8..).zip(["a", "b", "c", "d"]) {
        let (row, long) = (text(&format!("of entry {entry}")), text(&name.repeat(4 * PAGE)));
        apply(&state, [("row", row), (&format!("long {name}"), long)], vec![entry]);
        state.begin_flush().unwrap().run().unwrap();
        looks.push((state.applied(), rows(&state)));
    }
    drop(state);
    // Without its preallocated space, which would have to be copied.
    let journal = path.join("state/0.jnl");
    let used = fs::read(&journal).unwrap().iter().rposition(|byte| *byte != 0).unwrap() + 1;
    File::options().write(true).open(&journal).unwrap().set_len(used as u64).unwrap();
    looks
}

type Look = (Option<Bytes>, Vec<(String, String)>);

/// Makes a hole in a journal: this many zero bytes, from an offset inside the value that repeats this byte.
fn punch(journal: &Path, byte: u8, offset: isize, bytes: usize) {
    let value = isize::try_from(find(journal, &[byte; 2 * PAGE])).unwrap();
    let at = u64::try_from(value + offset).unwrap();
    File::options().write(true).open(journal).unwrap().write_all_at(&vec![0; bytes], at).unwrap();
}

/// Flushes are written without a sync, so a power cut may leave a hole in any of them, inside a value or anywhere
/// else: what is left is the state before it, and whatever follows can be written again.
#[test]
fn a_state_that_was_torn_anywhere_is_an_earlier_one() {
    let root = tempfile::tempdir().unwrap();
    let looks = flushed(&root.path().join("whole"));
    // Inside a value; from the length of a value on, from that of its key on, from its tag on; the tag alone, the
    // length of the key alone; from somewhere in the entry before.
    let inside = PAGE as isize;
    let holes =
        [(inside, PAGE), (-13, PAGE), (-19, PAGE), (-30, PAGE), (-30, 1), (-19, 2), (-40, PAGE), (-47, 20)];
    for (number, (offset, bytes)) in holes.into_iter().enumerate() {
        for (batch, byte) in (1..).zip(*b"abcd") {
            let torn = root.path().join(format!("torn-{number}-{batch}"));
            copy(&root.path().join("whole"), &torn);
            punch(&torn.join("state/0.jnl"), byte, offset, bytes);
            let state = open_state(&torn);
            assert_eq!((state.applied(), rows(&state)), looks[batch - 1], "hole {number} in flush {batch}");
            apply(&state, [("row", text("again"))], "again");
            state.begin_flush().unwrap().run().unwrap();
            let look = (state.applied(), rows(&state));
            drop(state);
            let state = open_state(&torn);
            assert_eq!((state.applied(), rows(&state)), look);
        }
    }
}

/// The batches of a newer journal are useless without those of an older one.
#[test]
fn damage_to_an_older_journal_of_a_state_is_reported_if_it_was_synced_and_ends_the_state_otherwise() {
    // Inside a value, and the tag before one.
    for (offset, bytes) in [(PAGE as isize, PAGE), (-30, 1)] {
        for is_synced in [true, false] {
            let root = tempfile::tempdir().unwrap();
            let looks = flushed(root.path());
            if is_synced {
                open_state(root.path()).persist().unwrap();
            }
            let [older, newer] = ["0.jnl", "1.jnl"].map(|name| root.path().join("state").join(name));
            fs::copy(&older, &newer).unwrap();
            punch(&older, b'b', offset, bytes);
            if !is_synced {
                let state = open_state(root.path());
                assert_eq!((state.applied(), rows(&state)), looks[1]);
                assert!(!newer.exists());
                continue;
            }
            let opened = StateStore::open(&DataDir::open(root.path()).unwrap());
            let Err(error) = opened else { panic!("it opened") };
            let StoreError::Damaged { what: "journal", detail } = &error else { panic!("{error}") };
            assert!(detail.contains("the batch at byte") && detail.contains("state/0.jnl"), "{detail}");
        }
    }
}

#[test]
fn a_segment_that_was_hardly_made_is_made_again() {
    for head in [0, 1, FIRST_BATCH] {
        let root = tempfile::tempdir().unwrap();
        three_segments(root.path());
        let newest = segment(root.path());
        let bytes = fs::read(&newest).unwrap();
        let next = newest.with_file_name("0000000000000004.log");
        fs::write(&next, [&bytes[..head], &vec![0; 3 * PAGE]].concat()).unwrap();
        let log = open_log(root.path());
        durably(|done| log.append(GROUP, vec![record(4, "fourth")], done)).unwrap();
        drop(log);
        assert_eq!(open_log(root.path()).first_last(GROUP).unwrap(), Some((1, 4)));
    }
}

#[test]
fn a_first_batch_that_was_torn_takes_nothing_of_older_segments_with_it() {
    let root = tempfile::tempdir().unwrap();
    let (path, torn) = (root.path().join("whole"), root.path().join("torn"));
    let log = open_log(&path);
    durably(|done| log.append(GROUP, vec![record(1, "purged")], done)).unwrap();
    durably(|done| log.put_meta(GROUP, Meta::Vote, Bytes::from_static(b"term 1"), done)).unwrap();
    durably(|done| log.purge_to(GROUP, 1, Bytes::from_static(b"at 1"), done)).unwrap();
    drop(log);
    copy(&path, &torn);
    let log = open_log(&path);
    durably(|done| log.append(GROUP, vec![record(2, "lost")], done)).unwrap();
    let newest = segment(&path);
    let mut bytes = fs::read(&newest).unwrap();
    bytes[FIRST_BATCH + 4] = 0;
    fs::write(torn.join("log").join(newest.file_name().unwrap()), bytes).unwrap();
    for _ in 0..2 {
        let log = try_open(&torn).unwrap();
        assert_eq!(log.meta(GROUP, Meta::Vote).unwrap().unwrap(), "term 1");
        assert_eq!(log.meta(GROUP, Meta::Purged).unwrap().unwrap(), "at 1");
        assert_eq!(log.first_last(GROUP).unwrap(), None);
    }
}

#[test]
fn a_file_that_is_no_segment_is_reported() {
    let root = tempfile::tempdir().unwrap();
    drop(open_log(root.path()));
    fs::write(root.path().join("log/0.jnl"), "").unwrap();
    let error = try_open(root.path()).err().expect("the file is not a segment").to_string();
    assert!(error.contains("log/0.jnl is not a segment"), "{error}");
}

/// Wherever the journal is cut, the rows are those of the entry that the applied blob names: never half of a
/// flush.
#[test]
fn a_flush_is_on_disk_whole_or_not_at_all() {
    let root = tempfile::tempdir().unwrap();
    let whole = root.path().join("whole");
    let state = open_state(&whole);
    let mut expected = vec![(None, Vec::new())];
    for entry in 0..4 {
        let five = (0..5).map(|row| (format!("row {row}"), text(&format!("of entry {entry}"))));
        apply(&state, five.chain([(format!("row {entry}"), None)]), vec![entry]);
        state.begin_flush().unwrap().run().unwrap();
        expected.push((Some(vec![entry].into()), rows(&state)));
    }
    let journal = fs::read(whole.join("state/0.jnl")).unwrap();
    let used = journal.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let mut seen = Vec::new();
    for cut in (0..=used).step_by(used / 24).chain([used]) {
        let torn = root.path().join(format!("torn at {cut}"));
        copy(&whole, &torn);
        let journal = File::options().write(true).open(torn.join("state/0.jnl")).unwrap();
        journal.set_len(cut as u64).unwrap();
        journal.set_len(64 << 20).unwrap();
        let state = open_state(&torn);
        let found = (state.applied(), rows(&state));
        seen.push(expected.iter().position(|whole| *whole == found).expect("a whole flush"));
    }
    seen.dedup();
    assert_eq!(seen, [0, 1, 2, 3, 4], "every prefix of the flushes was met");
}
