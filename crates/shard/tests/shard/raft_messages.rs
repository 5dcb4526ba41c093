//! Raft's messages between servers: their forms, and what is refused.

use bytes::Bytes;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, TransferLeaderError, TransferLeaderRequest, VoteRequest,
    VoteResponse,
};
use openraft::type_config::alias::{EntryOf, LogIdOf, VoteOf};
use openraft::vote::leader_id_std::CommittedLeaderId;
use openraft::{BasicNode, EntryPayload};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use switchward_shard::limits::{APPEND_BYTES_WANTED, APPEND_ENTRIES_MAX, RAFT_MESSAGE_BYTES_MAX};
use switchward_shard::raft_messages::{
    RAFT_MESSAGE_FORM, SnapshotAnswer, SnapshotEnd, SnapshotHeader, SnapshotId, SnapshotPart, decode_append,
    decode_append_answer, decode_snapshot_answer, decode_snapshot_header, decode_snapshot_part,
    decode_transfer, decode_transfer_answer, decode_vote, decode_vote_answer, encode_append,
    encode_append_answer, encode_snapshot_answer, encode_snapshot_end, encode_snapshot_header,
    encode_snapshot_piece, encode_transfer, encode_transfer_answer, encode_vote, encode_vote_answer,
};
use switchward_shard::{Payload, TypeConfig};

type Append = AppendEntriesRequest<TypeConfig>;
type Entry = EntryOf<TypeConfig>;
type LogId = LogIdOf<TypeConfig>;
type Vote = VoteOf<TypeConfig>;

fn id(term: u64, index: u64) -> LogId {
    LogId { leader_id: CommittedLeaderId::new(term), index }
}

fn leader(term: u64, server: u64) -> Vote {
    Vote::new_committed(term, server)
}

fn entry(term: u64, index: u64, payload: EntryPayload<Payload, u64, BasicNode>) -> Entry {
    Entry { log_id: id(term, index), payload }
}

fn decision(bytes: &'static [u8]) -> EntryPayload<Payload, u64, BasicNode> {
    EntryPayload::Normal(Payload(Bytes::from_static(bytes)))
}

fn members() -> EntryPayload<Payload, u64, BasicNode> {
    let nodes: BTreeMap<u64, BasicNode> = [(1, BasicNode::new("server-1:7777"))].into();
    EntryPayload::Membership(openraft::Membership::new(vec![BTreeSet::from([1])], nodes).unwrap())
}

fn appends() -> [(&'static str, Append); 3] {
    let append = |previous, entries, leader_commit| Append {
        vote: leader(258, 3),
        prev_log_id: previous,
        entries,
        leader_commit,
    };
    let entries = vec![
        entry(1, 0, members()),
        entry(258, 1, EntryPayload::Blank),
        entry(258, 2, decision(b"decision")),
    ];
    [
        ("heartbeat", append(Some(id(258, 7)), Vec::new(), Some(id(258, 6)))),
        ("first-entries", append(None, entries, None)),
        ("entry", append(Some(id(1, 300)), vec![entry(258, 301, decision(b"d"))], Some(id(1, 299)))),
    ]
}

fn header() -> SnapshotHeader {
    let id_ = SnapshotId { group: 4, server: 3, term: 258, number: 9 };
    SnapshotHeader { id: id_, vote: leader(258, 3), last: id(257, 1_000) }
}

fn append_answers() -> [(&'static str, AppendEntriesResponse<TypeConfig>); 4] {
    [
        ("append-success", AppendEntriesResponse::Success),
        ("append-partial", AppendEntriesResponse::PartialSuccess(Some(id(1, 2)))),
        ("append-conflict", AppendEntriesResponse::Conflict),
        ("append-higher-vote", AppendEntriesResponse::HigherVote(Vote::new(259, 1))),
    ]
}

fn vote_question() -> VoteRequest<TypeConfig> {
    let mut question = VoteRequest::new(Vote::new(2, 1), Some(id(1, 9)));
    question.leadership_transfer = true;
    question
}

fn transfer_answers() -> [(&'static str, Result<(), TransferLeaderError<TypeConfig>>); 3] {
    let (expected, actual) = (leader(1, 1), Vote::new(2, 2));
    let changed = TransferLeaderError::VoteChanged { expected, actual };
    let not_flushed = TransferLeaderError::LogNotFlushed { expected: Some(id(1, 2)), actual: None };
    [("transfer-accepted", Ok(())), ("transfer-changed", Err(changed)), ("transfer-behind", Err(not_flushed))]
}

fn snapshot_answers() -> [(&'static str, SnapshotAnswer); 3] {
    [
        ("snapshot-ready", SnapshotAnswer::Ready),
        ("snapshot-voted", SnapshotAnswer::Voted(leader(258, 3))),
        ("snapshot-refused", SnapshotAnswer::Refused("another snapshot is being received".into())),
    ]
}

fn encoded() -> Vec<(&'static str, Bytes)> {
    let mut all: Vec<(&str, Bytes)> =
        appends().iter().map(|(name, append)| (*name, encode_append(append).unwrap().bytes)).collect();
    all.extend(append_answers().iter().map(|(name, answer)| (*name, encode_append_answer(answer))));
    all.push(("vote", encode_vote(&vote_question())));
    let granted = VoteResponse { vote: Vote::new(2, 1), vote_granted: true, last_log_id: Some(id(1, 8)) };
    all.push(("vote-answer", encode_vote_answer(&granted)));
    all.push(("transfer", encode_transfer(&TransferLeaderRequest::new(leader(1, 1), 2, Some(id(1, 9))))));
    all.extend(transfer_answers().iter().map(|(name, answer)| (*name, encode_transfer_answer(answer))));
    all.push(("snapshot-header", encode_snapshot_header(&header())));
    all.push(("snapshot-piece", encode_snapshot_piece(&Bytes::from_static(b"piece"))));
    all.push(("snapshot-end", encode_snapshot_end(SnapshotEnd { pieces: 1, bytes: 5 })));
    all.extend(snapshot_answers().iter().map(|(name, answer)| (*name, encode_snapshot_answer(answer))));
    all
}

#[test]
fn messages_keep_their_form() {
    let all = encoded();
    assert!(all.iter().all(|(_, bytes)| bytes[0] == RAFT_MESSAGE_FORM));
    let text: String = all.iter().map(|(name, bytes)| format!("{name} {}\n", bytes.escape_ascii())).collect();
    let path = format!("{}/tests/golden/raft_message.v1.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap(), "servers of two versions would not understand");
}

fn same(append: &Append, decoded: &Append) {
    assert_eq!(format!("{append:?}"), format!("{decoded:?}"));
    assert_eq!(append.entries, decoded.entries);
}

#[test]
fn what_was_encoded_is_decoded() {
    for (_, append) in appends() {
        same(&append, &decode_append(&encode_append(&append).unwrap().bytes).unwrap());
    }
    for (_, answer) in append_answers() {
        assert_eq!(decode_append_answer(&encode_append_answer(&answer)).unwrap(), answer);
    }
    assert_eq!(decode_vote(&encode_vote(&vote_question())).unwrap(), vote_question());
    for (_, answer) in transfer_answers() {
        assert_eq!(decode_transfer_answer(&encode_transfer_answer(&answer)).unwrap(), answer);
    }
    assert_eq!(decode_snapshot_header(&encode_snapshot_header(&header())).unwrap(), header());
    for (_, answer) in snapshot_answers() {
        assert_eq!(decode_snapshot_answer(&encode_snapshot_answer(&answer)).unwrap(), answer);
    }
    let end = SnapshotEnd { pieces: 7, bytes: 1 << 40 };
    assert_eq!(decode_snapshot_part(&encode_snapshot_end(end)).unwrap(), SnapshotPart::End(end));
}

#[test]
fn an_append_is_cut_by_bytes_and_has_one_entry_at_least() {
    let long = Bytes::from(vec![7; APPEND_BYTES_WANTED / 2]);
    let entries = (1..=3).map(|index| entry(1, index, EntryPayload::Normal(Payload(long.clone()))));
    let mut append = Append {
        vote: leader(1, 1),
        prev_log_id: Some(id(1, 0)),
        entries: entries.collect(),
        leader_commit: None,
    };
    assert_eq!(encode_append(&append).unwrap().entries, 1);
    append.entries[0].payload = EntryPayload::Blank;
    let cut = encode_append(&append).unwrap();
    assert_eq!(cut.entries, 2);
    assert_eq!(decode_append(&cut.bytes).unwrap().entries, append.entries[..2]);
    append.entries[0].payload = EntryPayload::Normal(Payload(vec![7; 2 * APPEND_BYTES_WANTED].into()));
    assert_eq!(encode_append(&append).unwrap().entries, 1);
    append.entries = (1..=2_000).map(|index| entry(1, index, EntryPayload::Blank)).collect();
    assert_eq!(encode_append(&append).unwrap().entries, APPEND_ENTRIES_MAX);
}

#[test]
fn what_no_leader_sends_is_refused() {
    let refused = |append: Append| {
        let bytes = encode_append(&append).unwrap().bytes;
        decode_append(&bytes).unwrap_err().to_string()
    };
    let append = Append { vote: leader(2, 1), prev_log_id: None, entries: Vec::new(), leader_commit: None };
    let not_leader = "a message with entries is not from the leader that its vote names";
    assert_eq!(refused(Append { vote: Vote::new(2, 1), ..append.clone() }), not_leader);
    assert_eq!(refused(Append { leader_commit: Some(id(3, 1)), ..append.clone() }), not_leader);
    let entries = vec![entry(3, 0, EntryPayload::Blank)];
    assert_eq!(refused(Append { entries, ..append.clone() }), not_leader);
    let entries = vec![entry(1, 5, EntryPayload::Blank)];
    let backwards =
        refused(Append { prev_log_id: Some(id(2, 4)), entries: entries.clone(), ..append.clone() });
    assert_eq!(backwards, "a message with entries has an entry of an earlier term than the one before");
    let large = refused(Append { prev_log_id: Some(id(1, u64::MAX)), entries, ..append.clone() });
    assert_eq!(large, "a message with entries has an index that is too large");
    let late = SnapshotHeader { last: id(259, 1), ..header() };
    assert!(decode_snapshot_header(&encode_snapshot_header(&late)).is_err());
    assert!(decode_append(&Bytes::from(vec![1; RAFT_MESSAGE_BYTES_MAX + 1])).is_err());
    let mut piece = encode_snapshot_piece(&Bytes::from_static(b"piece")).to_vec();
    *piece.last_mut().unwrap() ^= 1;
    let wrong = decode_snapshot_part(&piece.into()).unwrap_err().to_string();
    assert_eq!(wrong, "a piece of a snapshot has a wrong checksum");
}

/// Reads bytes as each message.
fn read_all(bytes: &Bytes) {
    let _read = decode_append(bytes).is_ok();
    let _read = decode_append_answer(bytes).is_ok();
    let _read = decode_vote(bytes).is_ok();
    let _read = decode_vote_answer(bytes).is_ok();
    let _read = decode_transfer(bytes).is_ok();
    let _read = decode_transfer_answer(bytes).is_ok();
    let _read = decode_snapshot_header(bytes).is_ok();
    let _read = decode_snapshot_part(bytes).is_ok();
    let _read = decode_snapshot_answer(bytes).is_ok();
}

fn any_vote() -> impl Strategy<Value = Vote> {
    (any::<u64>(), any::<u64>(), any::<bool>()).prop_map(|(term, server, committed)| {
        if committed { leader(term, server) } else { Vote::new(term, server) }
    })
}

fn any_id() -> impl Strategy<Value = Option<LogId>> {
    prop::option::of((any::<u64>(), any::<u64>()).prop_map(|(term, index)| id(term, index)))
}

fn any_append() -> impl Strategy<Value = Append> {
    let payload = prop_oneof![
        Just(EntryPayload::Blank),
        Just(members()),
        prop::collection::vec(any::<u8>(), 0..300)
            .prop_map(|bytes| EntryPayload::Normal(Payload(bytes.into()))),
    ];
    let previous = prop::option::of((0_u64..5, 0_u64..1 << 60));
    (previous, prop::collection::vec((0_u64..3, payload), 0..20), 0_u64..3).prop_map(
        |(previous, payloads, later)| {
            let mut last = previous.map(|(term, index)| id(term, index));
            let prev_log_id = last;
            let mut entries = Vec::new();
            for (more, payload) in payloads {
                let next = last.map_or(id(more, 0), |last| id(last.leader_id.term + more, last.index + 1));
                entries.push(Entry { log_id: next, payload });
                last = Some(next);
            }
            let term = last.map_or(0, |last| last.leader_id.term) + later;
            Append { vote: leader(term, 3), prev_log_id, entries, leader_commit: prev_log_id }
        },
    )
}

proptest! {
    #[test]
    fn any_append_is_decoded_as_it_was(append in any_append()) {
        same(&append, &decode_append(&encode_append(&append).unwrap().bytes).unwrap());
    }

    #[test]
    fn any_votes_are_decoded_as_they_were(vote in any_vote(), last in any_id(), yes in any::<bool>()) {
        let mut question = VoteRequest::new(vote, last);
        question.leadership_transfer = yes;
        prop_assert_eq!(decode_vote(&encode_vote(&question)).unwrap(), question);
        let answer = VoteResponse { vote, vote_granted: yes, last_log_id: last };
        prop_assert_eq!(decode_vote_answer(&encode_vote_answer(&answer)).unwrap(), answer);
        let transfer = TransferLeaderRequest::new(vote, 7, last);
        prop_assert_eq!(decode_transfer(&encode_transfer(&transfer)).unwrap(), transfer);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_all(&Bytes::from([&[RAFT_MESSAGE_FORM][..], &bytes].concat()));
        read_all(&bytes.into());
    }

    #[test]
    fn changed_messages_are_read_or_refused(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        to in any::<u8>(),
        length in any::<prop::sample::Index>(),
    ) {
        let all = encoded();
        let mut bytes = which.get(&all).1.to_vec();
        let at = at.index(bytes.len());
        bytes[at] = to;
        read_all(&bytes.clone().into());
        bytes.truncate(length.index(bytes.len()));
        read_all(&bytes.into());
    }
}
