use crate::support::{GROUP, durably, open_log, receipt, record};
use bytes::Bytes;
use std::{
    io,
    ops::Range,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    thread,
};
use switchward_store::{DataDir, GroupId, GroupLog, LogOptions, Meta, SegmentLog, StoreError, limits};

/// The disk space of a record beyond its bytes.
const HEAD: u64 = 29;

fn indexes(log: &SegmentLog, range: Range<u64>, max_bytes: usize) -> Vec<u64> {
    log.read(GROUP, range, max_bytes).unwrap().iter().map(|record| record.index).collect()
}

fn append(log: &SegmentLog, indexes: Range<u64>) {
    let records = indexes.map(|index| record(index, format!("record {index:04}"))).collect();
    durably(|done| log.append(GROUP, records, done)).unwrap();
}

#[test]
fn what_was_acknowledged_is_there_after_reopening() {
    let root = tempfile::tempdir().unwrap();
    let log = open_log(root.path());
    append(&log, 5..15);
    durably(|done| log.append(GroupId(u64::MAX), vec![record(1, "other group")], done)).unwrap();
    durably(|done| log.put_meta(GROUP, Meta::Vote, Bytes::from_static(b"term 3"), done)).unwrap();
    durably(|done| log.truncate_after(GROUP, Some(12), done)).unwrap();
    durably(|done| log.append(GROUP, vec![record(13, "rewritten")], done)).unwrap();
    durably(|done| log.purge_to(GROUP, 6, Bytes::from_static(b"at 6"), done)).unwrap();
    let before = (log.read(GROUP, 0..99, usize::MAX).unwrap(), log.bytes(GROUP));
    drop(log);

    let log = open_log(root.path());
    assert_eq!((log.read(GROUP, 0..99, usize::MAX).unwrap(), log.bytes(GROUP)), before);
    assert_eq!(log.first_last(GROUP).unwrap(), Some((7, 13)));
    assert_eq!(log.last(GROUP).unwrap(), Some(record(13, "rewritten")));
    assert_eq!(log.meta(GROUP, Meta::Vote).unwrap().unwrap(), "term 3");
    assert_eq!(log.meta(GROUP, Meta::Purged).unwrap().unwrap(), "at 6");
    assert_eq!(log.meta(GROUP, Meta::Committed).unwrap(), None);
    assert_eq!(log.last(GroupId(u64::MAX)).unwrap(), Some(record(1, "other group")));
    assert_eq!(log.bytes(GROUP), 6 * (11 + HEAD) + 9 + HEAD);
}

#[test]
fn truncation_and_purge_have_bounds() {
    let root = tempfile::tempdir().unwrap();
    let log = open_log(root.path());
    assert_eq!((log.first_last(GROUP).unwrap(), log.last(GROUP).unwrap()), (None, None));
    append(&log, 3..9);
    durably(|done| log.truncate_after(GROUP, Some(8), done)).unwrap();
    durably(|done| log.purge_to(GROUP, 2, Bytes::new(), done)).unwrap();
    assert_eq!(log.first_last(GROUP).unwrap(), Some((3, 8)), "nothing was in the range");
    durably(|done| log.truncate_after(GROUP, None, done)).unwrap();
    assert_eq!((log.first_last(GROUP).unwrap(), log.bytes(GROUP)), (None, 0));
    append(&log, 3..5);
    durably(|done| log.purge_to(GROUP, 70, Bytes::from_static(b"at 70"), done)).unwrap();
    assert_eq!(log.first_last(GROUP).unwrap(), None);
    append(&log, 71..73);
    drop(log);
    assert_eq!(open_log(root.path()).first_last(GROUP).unwrap(), Some((71, 72)));
}

#[test]
fn ends_and_stretches_are_measured_in_records_and_bytes() {
    const EACH: u64 = 11 + HEAD;
    let root = tempfile::tempdir().unwrap();
    let log = open_log(root.path());
    assert_eq!((log.stretch(GROUP, 0..9), log.tail_within(GROUP, 9, 999)), ((0, 0), 0));
    append(&log, 3..9);
    assert_eq!(log.stretch(GROUP, 0..99), (6, 6 * EACH));
    assert_eq!(log.stretch(GROUP, 4..6), (2, 2 * EACH));
    for nothing in [0..3, 9..99, 5..5, Range { start: 7, end: 4 }] {
        assert_eq!(log.stretch(GROUP, nothing), (0, 0));
    }
    assert_eq!(log.tail_within(GROUP, 4, u64::MAX), 4);
    assert_eq!(log.tail_within(GROUP, 99, u64::MAX), 6);
    assert_eq!((log.tail_within(GROUP, 99, 3 * EACH), log.tail_within(GROUP, 99, 3 * EACH - 1)), (3, 2));
    assert_eq!((log.tail_within(GROUP, 99, EACH - 1), log.tail_within(GROUP, 0, u64::MAX)), (0, 0));
}

#[test]
fn reads_stop_at_a_number_of_bytes_but_give_one_record() {
    let root = tempfile::tempdir().unwrap();
    let log = open_log(root.path());
    append(&log, 1..9);
    assert_eq!(indexes(&log, 3..6, usize::MAX), [3, 4, 5]);
    assert_eq!(indexes(&log, 3..9, 22), [3, 4], "a record has eleven bytes");
    assert_eq!(indexes(&log, 3..9, 0), [3]);
    assert_eq!(indexes(&log, 8..99, usize::MAX), [8]);
    assert!(indexes(&log, 9..99, usize::MAX).is_empty());
    let backwards = Range { start: 5, end: 2 };
    assert!(indexes(&log, backwards, usize::MAX).is_empty());
}

#[test]
fn records_behind_the_tail_are_read_from_disk() {
    let root = tempfile::tempdir().unwrap();
    let log = open_log(root.path());
    let size = limits::LOG_TAIL_BYTES_MAX / 4;
    for index in 1..=10_u8 {
        durably(|done| log.append(GROUP, vec![record(index.into(), vec![index; size])], done)).unwrap();
    }
    let check = |log: &SegmentLog| {
        let all = log.read(GROUP, 1..11, usize::MAX).unwrap();
        assert!(all.iter().zip(1_u8..=10).all(|(record, index)| record.bytes == vec![index; size]));
        assert_eq!(all.len(), 10);
        assert_eq!(indexes(log, 5..11, 4 * size), [5, 6, 7, 8], "partly from disk, partly from memory");
        assert_eq!(indexes(log, 1..11, size), [1]);
    };
    check(&log);
    drop(log);
    let log = open_log(root.path());
    check(&log);
    durably(|done| log.truncate_after(GROUP, Some(2), done)).unwrap();
    assert_eq!(log.last(GROUP).unwrap(), Some(record(2, vec![2; size])), "the tail is empty now");
    durably(|done| log.append(GROUP, vec![record(3, "new")], done)).unwrap();
    assert_eq!(log.read(GROUP, 2..9, usize::MAX).unwrap()[1], record(3, "new"));
}

#[test]
fn a_gap_is_refused_and_nothing_is_lost() {
    let root = tempfile::tempdir().unwrap();
    let log = open_log(root.path());
    append(&log, 1..4);
    let error = durably(|done| log.append(GROUP, vec![record(4, ""), record(6, "")], done)).unwrap_err();
    assert_eq!(error.to_string(), "log record 6 of group 7 cannot follow record 4");
    append(&log, 4..5);
    assert_eq!(log.first_last(GROUP).unwrap(), Some((1, 4)));
}

/// A log in the middle of its first sync, which ends when the test lets it.
fn log_in_sync(root: &Path) -> (SegmentLog, mpsc::Sender<()>) {
    let (enter, entered) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let released = Mutex::new(released);
    let sync_fault = Arc::new(move |nth| {
        if nth == 1 {
            enter.send(()).unwrap();
            released.lock().unwrap().recv().unwrap();
        }
        None
    });
    let options = LogOptions { on_fatal: Box::new(|_| {}), sync_fault: Some(sync_fault) };
    let log = SegmentLog::open(&DataDir::open(root).unwrap(), options).unwrap();
    log.append(GroupId(0), vec![record(1, "first")], Box::new(|result| result.unwrap()));
    entered.recv().unwrap();
    (log, release)
}

#[test]
fn writes_that_wait_for_a_sync_share_the_next_one() {
    let root = tempfile::tempdir().unwrap();
    let (log, release) = log_in_sync(root.path());
    let (done, others) = mpsc::channel();
    thread::scope(|scope| {
        for group in 1..=64 {
            let (log, done) = (&log, done.clone());
            scope.spawn(move || {
                for index in 1..=10 {
                    let done = done.clone();
                    let done = Box::new(move |result| done.send(result).unwrap());
                    log.append(GroupId(group), vec![record(index, "entry")], done);
                }
                assert_eq!(
                    log.first_last(GroupId(group)).unwrap(),
                    Some((1, 10)),
                    "readable before it is durable"
                );
            });
        }
    });
    assert!(others.try_recv().is_err(), "nothing is acknowledged before its sync");
    release.send(()).unwrap();
    for _ in 0..640 {
        others.recv().unwrap().unwrap();
    }
    let stats = log.stats();
    assert_eq!(stats.syncs.load(Relaxed), 2);
    assert_eq!(stats.records.load(Relaxed), 641);
    assert_eq!(stats.bytes.load(Relaxed), 641 * (HEAD + 5) + 2 * 24);
}

#[test]
fn writes_of_one_batch_keep_their_order() {
    let root = tempfile::tempdir().unwrap();
    let (log, release) = log_in_sync(root.path());
    let ignore = || Box::new(|_| {});
    log.append(GROUP, vec![record(1, "a"), record(2, "b"), record(3, "c")], ignore());
    log.truncate_after(GROUP, Some(1), ignore());
    log.append(GROUP, vec![record(2, "B")], ignore());
    log.put_meta(GROUP, Meta::Vote, Bytes::from_static(b"one"), ignore());
    let (done, last) = receipt();
    log.put_meta(GROUP, Meta::Vote, Bytes::from_static(b"two"), done);
    release.send(()).unwrap();
    last.recv().unwrap().unwrap();
    drop(log);
    let log = open_log(root.path());
    assert_eq!(log.read(GROUP, 0..9, usize::MAX).unwrap(), [record(1, "a"), record(2, "B")]);
    assert_eq!(log.meta(GROUP, Meta::Vote).unwrap().unwrap(), "two");
}

#[test]
fn a_failed_sync_poisons_the_log() {
    let root = tempfile::tempdir().unwrap();
    let fatal = Arc::new(AtomicUsize::new(0));
    let options = LogOptions {
        on_fatal: Box::new({
            let fatal = fatal.clone();
            move |error| {
                assert!(matches!(error, StoreError::Io { action: "sync the log", .. }));
                fatal.fetch_add(1, Relaxed);
            }
        }),
        sync_fault: Some(Arc::new(|nth| (nth == 2).then(|| io::Error::other("the disk failed")))),
    };
    let log = SegmentLog::open(&DataDir::open(root.path()).unwrap(), options).unwrap();
    append(&log, 1..2);
    for index in 2..6 {
        let error = durably(|done| log.append(GROUP, vec![record(index, "lost")], done)).unwrap_err();
        assert!(error.to_string().starts_with("failed to sync the log "), "{error}");
    }
    assert!(durably(|done| log.put_meta(GROUP, Meta::Vote, Bytes::new(), done)).is_err());
    assert_eq!(fatal.load(Relaxed), 1);
    assert_eq!(log.stats().syncs.load(Relaxed), 2, "a failed sync is not tried again");
    assert_eq!(log.stats().records.load(Relaxed), 1);
}
