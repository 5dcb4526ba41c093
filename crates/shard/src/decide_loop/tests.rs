//! Commands that cannot be decided.

use futures::future::join_all;
use openraft::async_runtime::WatchReceiver as _;
use parking_lot::Mutex;
use std::sync::Arc;
use switchward_engine::decide;
use switchward_machine::{Digest, SessionId, TenantId, Time};
use switchward_state::catalogue::{CatalogueCommand, CreateTenant, Settings};
use switchward_state::{Body, Command, Decision, Levels, Reply, RequestId, Scope, TurnRecord};
use switchward_store::{DataDir, GroupId, GroupLog, LogOptions, SegmentLog, Snapshots, StateStore};
use switchward_testkit::PATIENCE;
use tempfile::TempDir;

use crate::clock::ManualClock;
use crate::evolved::{check_entry, evolved};
use crate::failure::Failure;
use crate::group::{Group, GroupOptions, GroupStart, RaftSettings};
use crate::no_peers::NoPeers;
use crate::puts::tests::UNINDEXED;
use crate::retention::LogRetention;
use crate::shard::Shard;

/// The request id of a command that panics while it is decided.
const PANICS: &str = "panics";
/// The request id of a command that breaks what must hold.
const BREAKS: &str = "breaks";

/// Fails as the commands say.
pub(super) fn strike(commands: &[Arc<Command>]) -> Result<(), String> {
    let ids = commands.iter().filter_map(|command| command.request.as_ref());
    ids.map(|request| request.id.as_str()).try_for_each(|id| match id {
        PANICS => panic!("planted"),
        BREAKS => Err("planted".to_owned()),
        _ => Ok(()),
    })
}

/// A shard that leads alone.
struct Alone {
    shard: Shard,
    /// The lines that the server would have ended with.
    fatal: Arc<Mutex<Vec<String>>>,
    _folder: TempDir,
}

impl Alone {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        let options = LogOptions { on_fatal: Box::new(|error| panic!("{error}")), sync_fault: None };
        let log = Arc::new(SegmentLog::open(&data, options).unwrap());
        let group = GroupOptions {
            group: GroupId(0),
            node: 1,
            start: GroupStart::Initialize(vec![1]),
            log: Arc::clone(&log) as Arc<dyn GroupLog>,
            states: StateStore::open(&data).unwrap(),
            snapshots: Snapshots::open(&data).unwrap(),
            cache_bytes: 64 * 1024,
            ring: switchward_scenario::ring().clone(),
            raft: RaftSettings::default(),
            retention: LogRetention::default(),
            levels: Levels::OF_PROGRAM,
            leaders: None,
        };
        let group = Group::open(group, NoPeers).await.unwrap();
        let fatal: Arc<Mutex<Vec<String>>> = Arc::default();
        let reported = Arc::clone(&fatal);
        let halt = Arc::new(move |why: &str| reported.lock().push(why.to_owned()));
        let clock = Arc::new(ManualClock::new(Time(1_750_064_400_000)));
        let shard = Shard::start(group, clock, halt, Arc::clone(log.disk()));
        let mut changes = shard.group().raft().metrics();
        let leads = async {
            while shard.read().await.is_err() {
                changes.changed().await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, leads).await.expect("it leads");
        Self { shard, fatal, _folder: folder }
    }
}

fn create(id: &str) -> Command {
    let name = id.replace(' ', "-");
    let body = CreateTenant { name: name.clone(), display_name: name, settings: Settings::default() };
    let body = Body::Catalogue(CatalogueCommand::CreateTenant(body));
    let request = RequestId { id: id.to_owned(), body: Digest::of(id.as_bytes()) };
    Command { request: Some(request), ..Command::of_server(TenantId(1), Scope::Catalogue, body) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_cannot_be_decided_costs_its_caller_alone() {
    let alone = Alone::open().await;
    for round in 0..3 {
        let ids: Vec<String> = (0..100)
            .map(|number| match number {
                17 => PANICS.to_owned(),
                18 | 63 => BREAKS.to_owned(),
                _ => format!("tenant {round} {number}"),
            })
            .collect();
        let results = join_all(ids.iter().map(|id| alone.shard.submit(create(id)))).await;
        for (id, result) in ids.iter().zip(results) {
            match id.as_str() {
                PANICS | BREAKS => assert_eq!(result, Err(Failure::Internal), "{id}"),
                _ => assert!(matches!(result, Ok(Reply::Tenant(_))), "{id}: {result:?}"),
            }
        }
    }
    assert_eq!((alone.shard.group().failed(), alone.fatal.lock().len()), (None, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_that_does_not_read_as_what_was_decided_does_not_get_into_the_log() {
    let alone = Alone::open().await;
    let view = alone.shard.read_stale();
    let decided = |id: &str| {
        let decided = decide(&[create(id)], &view, Time(1_750_064_400_000)).unwrap();
        (decided.decision.unwrap(), decided.changes)
    };
    let ((one, changes), (other, _)) = (decided("one"), decided("other"));
    let checked = |entry: &[u8]| check_entry(entry, &one, &changes, &view);
    let entry = one.encode();
    assert_eq!(checked(&entry), Ok(()));
    let differs = checked(&other.encode()).unwrap_err();
    assert_eq!(differs, "the entry does not read as what was decided");
    assert!(checked(&entry[..entry.len() - 1]).is_err());
    let elsewhere = Decision { at: Time(one.at.0 + 1), ..one.clone() };
    assert!(checked(&elsewhere.encode()).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_that_cannot_be_put_is_refused_before_it_is_proposed() {
    let alone = Alone::open().await;
    let ids = ["before", "beside one", UNINDEXED, "beside two"];
    assert!(matches!(alone.shard.submit(create(ids[0])).await, Ok(Reply::Tenant(_))));
    let last = alone.shard.group().shared.position();
    let refused = alone.shard.submit(create(UNINDEXED)).await;
    assert_eq!(refused, Err(Failure::Internal));
    assert_eq!(alone.shard.group().shared.position(), last, "nothing was proposed");
    // In a batch it costs the others nothing.
    let results = join_all(ids.iter().map(|id| alone.shard.submit(create(id)))).await;
    for (id, result) in ids.iter().zip(results) {
        match *id {
            UNINDEXED => assert_eq!(result, Err(Failure::Internal)),
            _ => assert!(matches!(result, Ok(Reply::Tenant(_))), "{id}: {result:?}"),
        }
    }
    assert_eq!((alone.shard.group().failed(), alone.fatal.lock().len()), (None, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_that_does_not_fit_the_rows_does_not_get_into_the_log() {
    let alone = Alone::open().await;
    let view = alone.shard.read_stale();
    let decided = decide(&[create("one")], &view, Time(1_750_064_400_000)).unwrap();
    let one = decided.decision.unwrap();
    // No command can be decided so: what it applies on its way is what is missing here, a session.
    let lost = TurnRecord { scope: Scope::Session(SessionId([9; 16])), ..one.turns[0].clone() };
    let misfit = Decision { turns: vec![lost], ..one };
    let entry = misfit.encode();
    let cannot = evolved(&entry, &view).unwrap_err();
    assert!(cannot.contains("holds no row"), "{cannot}");
    if cfg!(debug_assertions) {
        assert_eq!(check_entry(&entry, &misfit, &decided.changes, &view), Err(cannot));
    }
}
