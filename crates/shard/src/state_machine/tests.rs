//! What those find who wait for an entry, or for space, or for their turn during a replay.

use std::pin::pin;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::channel;
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use openraft::vote::leader_id_std::CommittedLeaderId;
use parking_lot::Mutex;
use switchward_engine::decide;
use switchward_machine::{TenantId, Time};
use switchward_state::catalogue::{CatalogueCommand, EnsureTenancy};
use switchward_state::{Body, Command, Levels, Scope};
use switchward_store::{DataDir, DiskOptions, GroupId, LogOptions, SegmentLog, Snapshots, StateStore};
use tokio::time::timeout;

use super::*;
use crate::group::{GroupOptions, GroupParts, GroupStart, RaftSettings};
use crate::may_lead::LeadingChange;
use crate::retention::LogRetention;
use crate::shared::PendingDecision;
use crate::snapshot::received;
use crate::types::{Entry, Payload};

/// The state machine of a new group.
fn machine(data: &DataDir) -> StateMachine {
    let options = LogOptions { on_fatal: Box::new(|error| panic!("{error}")), sync_fault: None };
    let options = GroupOptions {
        group: GroupId(0),
        node: 1,
        start: GroupStart::Join,
        log: Arc::new(SegmentLog::open(data, options).unwrap()),
        states: StateStore::open(data).unwrap(),
        snapshots: Snapshots::open(data).unwrap(),
        cache_bytes: 64 * 1024,
        ring: switchward_scenario::ring().clone(),
        raft: RaftSettings::default(),
        retention: LogRetention::default(),
        levels: Levels::OF_PROGRAM,
        leaders: None,
    };
    GroupParts::open(&options).unwrap().machine
}

/// Counts the changes of tenants' records when it is notified first.
struct Notified {
    shared: Arc<Shared>,
    changes: Mutex<Option<u64>>,
}

impl Wake for Notified {
    fn wake(self: Arc<Self>) {
        let mut known = self.changes.lock();
        *known = known.or(Some(self.shared.tenancies.changes()));
    }
}

#[test]
fn who_waits_for_an_entry_counts_the_changes_of_records_that_it_makes() {
    let folder = tempfile::tempdir().unwrap();
    let mut machine = machine(&DataDir::open(folder.path()).unwrap());
    let shared = machine.shared();
    let entry = decided(&shared);
    let notified = Arc::new(Notified { shared: Arc::clone(&shared), changes: Mutex::default() });
    let waker = Waker::from(Arc::clone(&notified));
    let mut applied = shared.applied();
    let mut next = pin!(applied.changed());
    assert!(next.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    machine.decision(&entry, log_id(1)).unwrap();
    assert_eq!(*notified.changes.lock(), Some(1));
}

#[tokio::test(start_paused = true)]
async fn an_installation_waits_for_space_until_the_shard_drains() {
    let folder = tempfile::tempdir().unwrap();
    let full = DiskOptions { min_free_bytes: u64::MAX / 2, reserve_bytes: u64::MAX / 2 };
    let mut machine = machine(&DataDir::open(folder.path()).unwrap().watched(full).unwrap());
    let shared = machine.shared();
    machine.put(Vec::new(), log_id(1), None).unwrap();
    let snapshot = received(shared.state.export(&shared.snapshots).unwrap()).unwrap();
    // Another write has found no space.
    assert!(shared.state.waits_for_space(&io::Error::from(io::ErrorKind::StorageFull)));
    let mut installing = pin!(machine.install_snapshot(&snapshot.meta, snapshot.snapshot));
    // A server that stops hands its groups over first. It would count as failed if a node ended meanwhile.
    shared.may_lead.note(LeadingChange::Stopping, |_| ());
    assert!(timeout(10 * DISK_WAIT, installing.as_mut()).await.is_err(), "it has ended");
    shared.drains.store(true, Ordering::SeqCst);
    let ended = installing.await.unwrap_err();
    assert_eq!(ended.kind(), io::ErrorKind::StorageFull);
}

fn log_id(index: u64) -> LogId {
    LogId { leader_id: CommittedLeaderId::new(1), index }
}

/// The entry of a decision that changes rows.
fn decided(shared: &Shared) -> Vec<u8> {
    let ensure = EnsureTenancy { key: None, any_approver_address: false, link_auth: None };
    let body = Body::Catalogue(CatalogueCommand::EnsureTenancy(ensure));
    let ensure = Command::of_server(TenantId(1), Scope::Catalogue, body);
    decide(&[ensure], &shared.view(), Time(1_750_064_400_000)).unwrap().decision.unwrap().encode()
}

/// Applies an entry on a runtime of one thread while another thread holds what the entry needs, until another task of that
/// runtime ends this.
async fn applied_while_held(entry: fn(&Shared) -> Entry, hold: fn(&Shared, &dyn Fn())) {
    let folder = tempfile::tempdir().unwrap();
    let mut machine = machine(&DataDir::open(folder.path()).unwrap());
    let shared = machine.shared();
    let entry = entry(&shared);
    let ((held, is_held), (end, ended)) = (channel(), channel());
    let holder = thread::spawn(move || {
        hold(&shared, &|| {
            held.send(()).unwrap();
            ended.recv_timeout(Duration::from_secs(10)).expect("the entry holds up the other task");
        });
    });
    is_held.recv().unwrap();
    let applying = tokio::spawn(async move {
        tokio::spawn(async move { end.send(()) });
        machine.apply(futures::stream::iter([Ok((entry, None))])).await
    });
    applying.await.unwrap().unwrap();
    holder.join().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_entry_that_waits_for_a_reader_holds_up_no_other_task() {
    let entry = |_: &Shared| Entry { log_id: log_id(1), payload: EntryPayload::Blank };
    applied_while_held(entry, |shared, until| shared.view().consistent(|_| until())).await;
}

/// An entry whose rows are read before it is applied.
fn entry_that_reads(shared: &Shared) -> Entry {
    Entry { log_id: log_id(1), payload: EntryPayload::Normal(Payload(decided(shared).into())) }
}

/// Holds what reads of rows need: they open secrets.
fn hold_reads(shared: &Shared, until: &dyn Fn()) {
    let _ring = shared.ring.write();
    until();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_entry_that_waits_for_its_rows_holds_up_no_other_task() {
    applied_while_held(entry_that_reads, hold_reads).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_entry_of_another_leader_holds_up_no_task_although_a_decision_waits_for_its_own() {
    let entry = |shared: &Shared| {
        let decision = Decision::decode(&decided(shared)).unwrap();
        let other = Bytes::from_static(b"the entry of a leader that was deposed");
        shared.set_pending_decision(PendingDecision { entry: other, base: None, decision, puts: Vec::new() });
        entry_that_reads(shared)
    };
    applied_while_held(entry, hold_reads).await;
}

#[tokio::test]
async fn what_is_ready_is_taken_until_it_has_too_many_bytes() {
    let next = |bytes: usize| {
        let payload = EntryPayload::Normal(Payload(vec![0; bytes].into()));
        Next::Ok((Entry { log_id: log_id(1), payload }, None))
    };
    let mut ready = VecDeque::from([next(1)]);
    let mut entries = futures::stream::iter([next(1), next(APPLY_READY_BYTES_MAX), next(1)]);
    take_ready(&mut entries, &mut ready, instant());
    assert_eq!(ready.len(), 3, "the last one waits");
}

#[tokio::test]
async fn others_have_turns_during_a_replay() {
    let folder = tempfile::tempdir().unwrap();
    let mut machine = machine(&DataDir::open(folder.path()).unwrap());
    let turns = Arc::new(AtomicUsize::default());
    let counted = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        while counted.fetch_add(1, Ordering::SeqCst) < usize::MAX {
            tokio::task::yield_now().await;
        }
    });
    let entries = (1..=4).map(|index| {
        // As an entry that takes long.
        let until = instant() + APPLY_STRETCH;
        while instant() < until {
            std::thread::yield_now();
        }
        Ok((Entry { log_id: log_id(index), payload: EntryPayload::Blank }, None))
    });
    machine.apply(futures::stream::iter(entries)).await.unwrap();
    assert_eq!(machine.last_applied().map(|last| last.index), Some(4));
    assert!(turns.load(Ordering::SeqCst) >= 3, "entries of one stream hold up all else");
    other.abort();
}
