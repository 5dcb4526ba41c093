//! A new leader finds out what the others have without sending it all again.

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use openraft::network::RPCOption;
use openraft::network::v2::RaftNetworkV2 as _;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse};
use openraft::type_config::alias::{EntryOf, LogIdOf, VoteOf};
use openraft::vote::leader_id_std::CommittedLeaderId;
use openraft::{BasicNode, EntryPayload, RaftNetworkFactory as _};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use switchward_shard::raft_messages::{decode_append, encode_append_answer};
use switchward_shard::{
    PeerConnection, PeerError, PeerRequest, PeerStream, RaftPeers, Transport, TypeConfig,
};
use switchward_store::GroupId;

type Append = AppendEntriesRequest<TypeConfig>;
type LogId = LogIdOf<TypeConfig>;

/// The term of the leader.
const TERM: u64 = 3;

/// A server with the entries up to an index. It remembers what it was sent: the index before the entries, and those of the
/// entries.
struct Follower {
    last: u64,
    came: Mutex<Vec<(u64, Vec<u64>)>>,
}

#[async_trait]
impl Transport for Follower {
    async fn call(
        &self,
        _: u64,
        _: PeerConnection,
        request: PeerRequest,
        _: Duration,
    ) -> Result<Bytes, PeerError> {
        let append = decode_append(&request.body).unwrap();
        let previous = append.prev_log_id.unwrap().index;
        self.came.lock().push((previous, append.entries.iter().map(|entry| entry.log_id.index).collect()));
        let answer = if previous <= self.last {
            AppendEntriesResponse::Success
        } else {
            AppendEntriesResponse::Conflict
        };
        Ok(encode_append_answer(&answer))
    }

    async fn stream(&self, _: u64, _: PeerRequest) -> Result<Arc<dyn PeerStream>, PeerError> {
        Err(PeerError::NotSent("only calls".into()))
    }
}

fn id(term: u64, index: u64) -> LogId {
    LogId { leader_id: CommittedLeaderId::new(term), index }
}

/// An append of entries with these terms, the first of which has the index 11.
fn append(terms: &[u64]) -> Append {
    let entry =
        |(term, index)| EntryOf::<TypeConfig> { log_id: id(term, index), payload: EntryPayload::Blank };
    Append {
        vote: VoteOf::<TypeConfig>::new_committed(TERM, 1),
        prev_log_id: Some(id(1, 10)),
        entries: terms.iter().copied().zip(11..).map(entry).collect(),
        leader_commit: Some(id(1, 10)),
    }
}

/// What a follower whose last entry has this index is sent, and the index up to which it then has the leader's entries;
/// `None` if that is not known.
async fn sent(last: u64, append: Append) -> (Vec<(u64, Vec<u64>)>, Option<u64>) {
    let follower = Arc::new(Follower { last, came: Mutex::default() });
    let peers = RaftPeers::new(1, Arc::clone(&follower) as Arc<dyn Transport>);
    let mut link = peers.network(GroupId(1)).new_client(2, &BasicNode::default()).await;
    let option = RPCOption::new(Duration::from_millis(100));
    let input = Box::pin(stream::iter([append]));
    let mut answers = link.stream_append(input, option).await.unwrap();
    let answer = answers.next().await.unwrap().unwrap();
    assert!(answers.next().await.is_none(), "one append has one answer");
    drop(answers);
    let came = std::mem::take(&mut *follower.came.lock());
    (came, answer.ok().flatten().map(|matched| matched.index))
}

#[tokio::test]
async fn entries_of_earlier_terms_are_sent_only_to_a_server_that_lacks_them() {
    // It has them all, and confirms it with the entry of the leader's own term, or without one.
    assert_eq!(sent(13, append(&[1, 2, 2, TERM])).await, (vec![(13, vec![14])], Some(14)));
    assert_eq!(sent(13, append(&[1, 2, 2])).await, (vec![(13, vec![])], Some(13)));
    // It lacks the last of them.
    let whole = (10, vec![11, 12, 13, 14]);
    assert_eq!(sent(12, append(&[1, 2, 2, TERM])).await, (vec![(13, vec![14]), whole.clone()], Some(14)));
    // It lacks what is before them, too.
    assert_eq!(sent(9, append(&[1, 2, 2, TERM])).await, (vec![(13, vec![14]), whole], None));
    // Nobody can have an entry of the leader's term yet.
    assert_eq!(sent(10, append(&[TERM, TERM])).await, (vec![(10, vec![11, 12])], Some(12)));
}
