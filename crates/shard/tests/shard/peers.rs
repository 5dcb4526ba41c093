//! What a server takes from others, and what it refuses.

use bytes::Bytes;
use futures::channel::oneshot;
use openraft::RaftNetworkFactory;
use openraft::error::{ReplicationClosed, StreamingError};
use openraft::network::RPCOption;
use openraft::network::v2::RaftNetworkV2;
use openraft::raft::VoteRequest;
use openraft::type_config::alias::{LogIdOf, SnapshotOf, VoteOf};
use std::sync::Arc;
use std::time::Duration;
use switchward_shard::limits::SNAPSHOT_PIECE_BYTES;
use switchward_shard::raft_messages::{
    SnapshotAnswer, SnapshotEnd, SnapshotHeader, SnapshotId, decode_snapshot_answer, encode_snapshot_end,
    encode_snapshot_header, encode_snapshot_piece, encode_vote,
};
use switchward_shard::{
    Group, GroupOptions, GroupStart, LogRetention, NoPeers, PeerConnection, PeerError, PeerRequest,
    PeerStream, RaftSettings, SnapshotSource, TypeConfig,
};
use switchward_state::Levels;
use switchward_store::{DataDir, DiskOptions, GroupId, LogOptions, SegmentLog, Snapshots, StateStore};
use switchward_testkit::PATIENCE;
use switchward_testnet::Network;
use tempfile::TempDir;

use crate::three_voters::{callers, hand_over};
use crate::trio::{NODES, Trio};

/// A server beside the three.
const FRESH: u64 = 9;
/// The group that the tests look at.
const GROUP: GroupId = GroupId(1);
/// The kinds of messages, as they are sent.
const VOTE: u8 = 2;
const SNAPSHOT: u8 = 6;
/// Why a snapshot is refused while another one comes.
const ANOTHER: &str = "another snapshot is being received";

type Vote = VoteOf<TypeConfig>;
type Snapshot = SnapshotOf<TypeConfig, SnapshotSource>;

/// A replica that has not voted yet, reachable in the network of the three. Its disk is watched with these options.
async fn fresh(network: &Network, disk: DiskOptions) -> (TempDir, Group) {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::open(folder.path()).unwrap().watched(disk).unwrap();
    let on_fatal = Box::new(|error: &switchward_store::StoreError| panic!("the log is lost: {error}"));
    let options = GroupOptions {
        group: GROUP,
        node: FRESH,
        start: GroupStart::Initialize(vec![7, 8, FRESH]),
        log: Arc::new(SegmentLog::open(&data, LogOptions { on_fatal, sync_fault: None }).unwrap()),
        states: StateStore::open(&data).unwrap(),
        snapshots: Snapshots::open(&data).unwrap(),
        cache_bytes: 64 * 1024,
        ring: switchward_scenario::ring().clone(),
        raft: RaftSettings { heartbeat_ms: 200, election_min_ms: 60_000, election_max_ms: 120_000 },
        retention: LogRetention::default(),
        levels: Levels::OF_PROGRAM,
        leaders: None,
    };
    let group = Group::open(options, NoPeers).await.unwrap();
    network.join(FRESH, GROUP, &group);
    (folder, group)
}

/// A snapshot of the group's leader, whose position is in the second term or a later one.
async fn snapshot(trio: &Trio) -> (u64, Snapshot) {
    let old = trio.leader(1, None).await;
    let new = NODES.into_iter().find(|node| *node != old).unwrap();
    hand_over(trio, 1, new).await;
    trio.shard(new, 1).read().await.unwrap();
    let raft = trio.shard(new, 1).group().raft();
    raft.trigger().snapshot().await.unwrap();
    let later = |id: Option<u64>| id.is_some_and(|term| term >= 2);
    let is_later = |now: &openraft::RaftMetrics<TypeConfig>| later(now.snapshot.map(|id| id.leader_id.term));
    raft.wait(Some(PATIENCE)).metrics(is_later, "a snapshot of the new term").await.unwrap();
    (new, raft.get_snapshot().await.unwrap().unwrap())
}

/// The position of the first entry.
fn first() -> LogIdOf<TypeConfig> {
    openraft::LogId { leader_id: openraft::vote::leader_id_std::CommittedLeaderId::new(0), index: 0 }
}

/// The answer of the receiver to a snapshot that is sent by hand.
async fn send_by_hand(network: &Network, from: u64, vote: Vote, snapshot: &Snapshot) -> SnapshotAnswer {
    let answered = async {
        loop {
            let answer = send_once(network, from, vote, snapshot).await;
            // A stream that was given up counts until its receiver has noticed that.
            if answer != SnapshotAnswer::Refused(ANOTHER.into()) {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, answered).await.expect("the receiver notices it")
}

/// Begins a snapshot by hand. Returns its stream, and what the receiver says before it gets rows.
async fn begin_by_hand(network: &Network, from: u64, vote: Vote) -> (Arc<dyn PeerStream>, SnapshotAnswer) {
    let id = SnapshotId { group: GROUP.0, server: from, term: vote.leader_id.term, number: 0 };
    let body = encode_snapshot_header(&SnapshotHeader { id, vote, last: first() });
    let request = PeerRequest { kind: SNAPSHOT, group: GROUP.0, body };
    let stream = network.transport(from).stream(FRESH, request).await.unwrap();
    let answer = answer_of(&*stream).await;
    (stream, answer)
}

async fn answer_of(stream: &dyn PeerStream) -> SnapshotAnswer {
    decode_snapshot_answer(&stream.recv().await.unwrap().unwrap()).unwrap()
}

async fn send_once(network: &Network, from: u64, vote: Vote, snapshot: &Snapshot) -> SnapshotAnswer {
    let (stream, first) = begin_by_hand(network, from, vote).await;
    if first != SnapshotAnswer::Ready {
        return first;
    }
    let source = snapshot.snapshot.clone();
    let file = tokio::task::spawn_blocking(move || source.file().unwrap()).await.unwrap();
    let mut end = SnapshotEnd::default();
    for piece in file.chunks(SNAPSHOT_PIECE_BYTES) {
        let piece = piece.unwrap();
        end = SnapshotEnd { pieces: end.pieces + 1, bytes: end.bytes + piece.len() as u64 };
        stream.send(encode_snapshot_piece(&piece)).await.unwrap();
    }
    stream.send(encode_snapshot_end(end)).await.unwrap();
    answer_of(&*stream).await
}

#[test]
fn a_snapshot_of_a_later_term_than_its_sender_leads_in_is_not_sent_and_not_taken() {
    let trio = Trio::open();
    let runtime = callers();
    runtime.block_on(async {
        let (leader, snapshot) = snapshot(&trio).await;
        let (folder, group) = fresh(&trio.network, DiskOptions::default()).await;
        let left = || std::fs::read_dir(folder.path().join("snapshots")).unwrap().count();
        let position = snapshot.meta.last_log_id.unwrap();
        let deposed = Vote::new_committed(position.leader_id.term - 1, leader);

        let mut link = trio.network.of(leader, GROUP).new_client(FRESH, &Default::default()).await;
        let option = RPCOption::new(Duration::from_secs(1));
        // The rows may have moved on since openraft asked for the snapshot.
        let mut earlier = snapshot.clone();
        earlier.meta.last_log_id = Some(first());
        for snapshot in [snapshot.clone(), earlier] {
            let never = std::future::pending::<ReplicationClosed>();
            let sent = link.full_snapshot(deposed, snapshot, never, option.clone()).await;
            assert!(matches!(sent, Err(StreamingError::Closed(_))), "{sent:?}");
        }

        let SnapshotAnswer::Refused(why) = send_by_hand(&trio.network, leader, deposed, &snapshot).await
        else {
            panic!("a snapshot of a later term was taken")
        };
        assert_eq!(why, "a snapshot holds entries of a later term than its sender leads in");
        assert_eq!(left(), 0, "a refused snapshot takes no space");

        // The leader of the position's term is believed, and the replica is whole.
        let vote = Vote::new_committed(position.leader_id.term, leader);
        let never = std::future::pending::<ReplicationClosed>();
        let answer = link.full_snapshot(vote, snapshot.clone(), never, option.clone()).await.unwrap();
        assert_eq!(answer.vote, vote);
        let installed = group.raft().with_raft_state(|state| *state.vote_ref()).await.unwrap();
        assert_eq!(installed, vote);
        assert_eq!(left(), 0, "the rows are in the state, and not on the disk twice");

        // A leader of an earlier term gets the later vote, before it has sent a single row.
        let earlier = send_by_hand(&trio.network, leader, deposed, &snapshot).await;
        assert_eq!(earlier, SnapshotAnswer::Voted(vote));

        // It is not sent any longer once nobody wants it.
        let (cancel, cancelled) = oneshot::channel::<()>();
        drop(cancel);
        let closed = async move {
            cancelled.await.map_or_else(|_| ReplicationClosed::new("enough"), |()| unreachable!())
        };
        let cancelled = link.full_snapshot(vote, snapshot, closed, option).await;
        assert!(matches!(cancelled, Err(StreamingError::Closed(_))), "{cancelled:?}");
        group.raft().shutdown().await.unwrap();
    });
    trio.network.leave(FRESH);
    trio.assert_sound();
}

#[test]
fn a_server_receives_one_snapshot_at_a_time() {
    let trio = Trio::open();
    let runtime = callers();
    runtime.block_on(async {
        let (leader, snapshot) = snapshot(&trio).await;
        let (_folder, group) = fresh(&trio.network, DiskOptions::default()).await;
        let vote = Vote::new_committed(snapshot.meta.last_log_id.unwrap().leader_id.term, leader);
        let (first, answer) = begin_by_hand(&trio.network, leader, vote).await;
        assert_eq!(answer, SnapshotAnswer::Ready);
        let (_second, answer) = begin_by_hand(&trio.network, leader, vote).await;
        assert_eq!(answer, SnapshotAnswer::Refused(ANOTHER.into()));
        drop(first);
        let answer = send_by_hand(&trio.network, leader, vote, &snapshot).await;
        assert_eq!(answer, SnapshotAnswer::Voted(vote), "one that was broken off holds up no later one");
        group.raft().shutdown().await.unwrap();
    });
    trio.network.leave(FRESH);
    trio.assert_sound();
}

#[test]
fn a_snapshot_is_refused_that_would_fill_the_disk() {
    let trio = Trio::open();
    let runtime = callers();
    runtime.block_on(async {
        let (leader, snapshot) = snapshot(&trio).await;
        // More than any disk has.
        let disk = DiskOptions { min_free_bytes: 0, reserve_bytes: u64::MAX };
        let (_folder, group) = fresh(&trio.network, disk).await;
        let vote = Vote::new_committed(snapshot.meta.last_log_id.unwrap().leader_id.term, leader);
        let answer = send_by_hand(&trio.network, leader, vote, &snapshot).await;
        assert_eq!(answer, SnapshotAnswer::Refused("the disk has too little space for a snapshot".into()));
        assert!(group.failed().is_none());
        group.raft().shutdown().await.unwrap();
    });
    trio.network.leave(FRESH);
    trio.assert_sound();
}

#[test]
fn a_message_in_another_name_and_for_an_unknown_group_is_refused() {
    let trio = Trio::open();
    let runtime = callers();
    runtime.block_on(async {
        let question = encode_vote(&VoteRequest::new(Vote::new(1_000, 2), None));
        let ask = async |from: u64, group: u64, kind: u8, body: Bytes| {
            let request = PeerRequest { kind, group, body };
            let transport = trio.network.transport(from);
            transport.call(3, PeerConnection::Control, request, PATIENCE).await
        };
        let refused = |why: &str| Err(PeerError::Refused(why.into()));
        let foreign = ask(1, GROUP.0, VOTE, question.clone()).await;
        assert_eq!(foreign, refused("the message is in another server's name"));
        assert_eq!(ask(2, 99, VOTE, question.clone()).await, refused("no such group here"));
        assert_eq!(ask(2, GROUP.0, 200, question.clone()).await, refused("this server is not open yet"));
        let broken = ask(2, GROUP.0, VOTE, Bytes::from_static(b"\x09")).await;
        assert_eq!(broken, refused("a question for a vote is not of form 1"));
        assert_eq!(
            ask(2, GROUP.0, SNAPSHOT, question).await,
            refused("a message of this kind needs a stream")
        );
    });
    trio.assert_sound();
}
