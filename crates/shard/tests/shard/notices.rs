//! When a leader sends the notice that entries are committed: with the entries that follow, or by itself a moment later.

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::channel::mpsc::unbounded;
use openraft::network::RPCOption;
use openraft::network::v2::RaftNetworkV2 as _;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse};
use openraft::type_config::alias::{LogIdOf, VoteOf};
use openraft::vote::leader_id_std::CommittedLeaderId;
use openraft::{BasicNode, EntryPayload, RaftNetworkFactory as _};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use switchward_shard::limits::{COMMIT_NOTICE_WAIT, COMMIT_NOTICES_UNHELD};
use switchward_shard::raft_messages::{decode_append, encode_append_answer};
use switchward_shard::{
    PeerConnection, PeerError, PeerRequest, PeerStream, RaftPeers, Transport, TypeConfig,
};
use switchward_store::GroupId;
use tokio::sync::Semaphore;
use tokio::time::Instant;

type Append = AppendEntriesRequest<TypeConfig>;
type LogId = LogIdOf<TypeConfig>;

/// A server that has whatever it is sent. It remembers what came over a stream: how many entries, and which index is
/// committed.
#[derive(Default)]
struct Follower {
    came: Mutex<Vec<(usize, Option<u64>)>>,
}

impl Follower {
    fn came(&self) -> Vec<(usize, Option<u64>)> {
        std::mem::take(&mut *self.came.lock())
    }
}

struct Chunks {
    of: Arc<Follower>,
    unanswered: Semaphore,
}

fn success() -> Bytes {
    encode_append_answer(&AppendEntriesResponse::Success)
}

#[async_trait]
impl PeerStream for Chunks {
    async fn send(&self, chunk: Bytes) -> Result<(), PeerError> {
        let append = decode_append(&chunk).unwrap();
        let committed = append.leader_commit.map(|committed| committed.index);
        self.of.came.lock().push((append.entries.len(), committed));
        self.unanswered.add_permits(1);
        Ok(())
    }

    async fn finish(&self) -> Result<(), PeerError> {
        Ok(())
    }

    async fn recv(&self) -> Result<Option<Bytes>, PeerError> {
        self.unanswered.acquire().await.unwrap().forget();
        Ok(Some(success()))
    }
}

/// Answers calls by itself, and opens streams to the follower.
struct ToFollower(Arc<Follower>);

#[async_trait]
impl Transport for ToFollower {
    async fn call(&self, _: u64, _: PeerConnection, _: PeerRequest, _: Duration) -> Result<Bytes, PeerError> {
        Ok(success())
    }

    async fn stream(&self, _: u64, _: PeerRequest) -> Result<Arc<dyn PeerStream>, PeerError> {
        Ok(Arc::new(Chunks { of: Arc::clone(&self.0), unanswered: Semaphore::new(0) }))
    }
}

fn id(index: u64) -> LogId {
    LogId { leader_id: CommittedLeaderId::new(1), index }
}

/// The entry at this index, while those up to another one are committed.
fn entry(index: u64, committed: u64) -> Append {
    let entry = openraft::type_config::alias::EntryOf::<TypeConfig> {
        log_id: id(index),
        payload: EntryPayload::Blank,
    };
    Append { entries: vec![entry], prev_log_id: Some(id(index - 1)), ..notice(committed) }
}

/// The notice that the entries up to this index are committed, and that it is the last one.
fn notice(committed: u64) -> Append {
    Append {
        vote: VoteOf::<TypeConfig>::new_committed(1, 1),
        prev_log_id: Some(id(committed)),
        entries: Vec::new(),
        leader_commit: Some(id(committed)),
    }
}

#[tokio::test(start_paused = true)]
async fn a_notice_goes_with_the_entries_that_follow_it_or_a_moment_later() {
    let follower = Arc::new(Follower::default());
    let peers = RaftPeers::new(1, Arc::new(ToFollower(Arc::clone(&follower))));
    let mut link = peers.network(GroupId(1)).new_client(2, &BasicNode::default()).await;
    let (input, appends) = unbounded();
    let put = |append| input.unbounded_send(append).unwrap();
    let option = RPCOption::new(Duration::from_millis(100));
    let mut answers = link.stream_append(appends, option).await.unwrap();

    // The first append goes by itself, the second one opens the stream.
    put(entry(1, 0));
    put(entry(2, 1));
    for index in [1, 2] {
        assert_eq!(answers.next().await.unwrap().unwrap().unwrap(), Some(id(index)));
    }
    assert_eq!(follower.came(), [(1, Some(1))]);

    let begun = Instant::now();
    put(notice(2));
    put(entry(3, 2));
    assert_eq!(answers.next().await.unwrap().unwrap().unwrap(), Some(id(3)));
    assert_eq!(follower.came(), [(1, Some(2))], "the entry says it");
    assert_eq!(begun.elapsed(), Duration::ZERO, "and does not wait");

    // Two notices make one message.
    put(notice(3));
    put(notice(3));
    assert_eq!(answers.next().await.unwrap().unwrap().unwrap(), Some(id(3)));
    assert_eq!(follower.came(), [(0, Some(3))]);
    let waited = begun.elapsed();
    assert!(waited >= COMMIT_NOTICE_WAIT && waited <= COMMIT_NOTICE_WAIT * 3, "{waited:?}");

    // It has waited in vain, so the next one does not wait.
    let begun = Instant::now();
    put(notice(3));
    assert!(answers.next().await.unwrap().unwrap().is_ok());
    assert_eq!((follower.came().len(), begun.elapsed()), (1, Duration::ZERO));

    // Nothing can follow the end.
    put(notice(3));
    drop(input);
    assert!(answers.next().await.unwrap().unwrap().is_ok());
    assert_eq!((follower.came().len(), begun.elapsed()), (1, Duration::ZERO));
    assert!(answers.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn notices_that_wait_in_vain_wait_seldom_until_entries_follow_one() {
    let follower = Arc::new(Follower::default());
    let peers = RaftPeers::new(1, Arc::new(ToFollower(Arc::clone(&follower))));
    let mut link = peers.network(GroupId(1)).new_client(2, &BasicNode::default()).await;
    let (input, appends) = unbounded();
    let put = |append| input.unbounded_send(append).unwrap();
    let option = RPCOption::new(Duration::from_millis(100));
    let mut answers = link.stream_append(appends, option).await.unwrap();
    for index in [1, 2] {
        put(entry(index, index - 1));
        assert_eq!(answers.next().await.unwrap().unwrap().unwrap(), Some(id(index)));
    }
    follower.came();

    let doubled = |unheld: &u32| Some((unheld * 2).min(COMMIT_NOTICES_UNHELD));
    for unheld in std::iter::successors(Some(1), doubled).take(7) {
        for nth in 0..=unheld {
            let begun = Instant::now();
            put(notice(2));
            assert!(answers.next().await.unwrap().unwrap().is_ok());
            assert_eq!(follower.came(), [(0, Some(2))]);
            assert_eq!(begun.elapsed() > Duration::ZERO, nth == 0, "{nth} of {unheld}");
        }
    }

    // Entries follow one that waits, so the next that waits in vain counts as the first.
    put(notice(2));
    put(entry(3, 2));
    assert_eq!(answers.next().await.unwrap().unwrap().unwrap(), Some(id(3)));
    assert_eq!(follower.came(), [(1, Some(2))]);
    for waits in [true, false, true] {
        let begun = Instant::now();
        put(notice(3));
        assert!(answers.next().await.unwrap().unwrap().is_ok());
        assert_eq!((follower.came().len(), begun.elapsed() > Duration::ZERO), (1, waits));
    }
}
