//! The messages between a server and the leader of a shard.

use bytes::Bytes;
use minicbor::{Decode, Encode};
use std::io;
use std::sync::Arc;
use switchward_state::catalogue::MapEpochs;
use switchward_state::{Command, Rejection, Reply, framed, framed_about, unframed};

use crate::failure::Failure;
use crate::timers::{Fired, TimerBatch};

/// Stored form. Questions to a leader: form byte, then parts by number.
const QUESTION_FORM: u8 = 1;
/// Stored form. Answers of a leader: form byte, then kind and parts by number.
const ANSWER_FORM: u8 = 1;

/// The kind of a question to the leader of a group, among the messages between servers.
pub const QUESTION: u8 = 32;

/// The bytes of a message beside the longest parts of it, at most.
const FRAME_BYTES: usize = 64;

/// What a server asks of a shard's leader, and by which map it has chosen the shard.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaderQuestion {
    /// The epochs of the sender's map. A leader whose buckets have other shards does not do what is asked.
    pub epochs: MapEpochs,
    /// What it asks.
    pub request: LeaderRequest,
}

/// What a server asks of a shard's leader.
#[derive(Debug, Clone, PartialEq)]
pub enum LeaderRequest {
    /// Execute this command.
    Submit(Arc<Command>),
    /// Confirm with a majority that you lead, and say which entry a reader must have applied.
    ReadIndex,
    /// Fire the timers of this batch, if you still wait for it.
    Fire(TimerBatch),
}

/// What the leader answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The command's reply, and the index of an entry by which it is applied.
    Reply {
        /// What the caller gets.
        reply: Box<Reply>,
        /// The rows that were attached to it, see [`encode_loaded`](switchward_engine::encode_loaded).
        rows: Option<Vec<u8>>,
        /// A server that has applied this entry shows what the command changed.
        index: u64,
    },
    /// A reader who has applied this entry misses nothing that was acknowledged before it asked.
    ReadIndex(u64),
    /// What became of a batch of timers.
    Fired(Fired),
    /// It was not done, or it is unknown whether it was.
    Failed(Failure),
}

/// Sent form of [`LeaderQuestion`].
#[derive(Encode, Decode)]
struct LeaderQuestionForm<'a> {
    #[n(0)]
    epochs: MapEpochs,
    #[b(1)]
    request: LeaderRequestForm<'a>,
}

/// Sent form of [`LeaderRequest`].
#[derive(Encode, Decode)]
enum LeaderRequestForm<'a> {
    #[n(0)]
    Submit(#[cbor(b(0), with = "minicbor::bytes")] &'a [u8]),
    #[n(1)]
    ReadIndex,
    #[n(2)]
    Fire(#[cbor(b(0), with = "minicbor::bytes")] &'a [u8]),
}

/// Sent form of [`Answer`].
#[derive(Encode, Decode)]
enum AnswerForm<'a> {
    #[n(0)]
    Reply {
        #[cbor(b(0), with = "minicbor::bytes")]
        reply: &'a [u8],
        #[n(1)]
        index: u64,
        #[cbor(b(2), with = "minicbor::bytes")]
        rows: Option<&'a [u8]>,
    },
    #[n(1)]
    ReadIndex(#[n(0)] u64),
    /// The number of timers; `None` if the batch was stale.
    #[n(2)]
    Fired(#[n(0)] Option<u64>),
    #[n(3)]
    Failed(#[n(0)] FailureForm),
}

/// Sent form of [`Failure`].
#[derive(Encode, Decode)]
enum FailureForm {
    #[n(0)]
    Rejected(#[cbor(n(0), with = "minicbor::bytes")] Vec<u8>),
    #[n(1)]
    Electing,
    #[n(2)]
    OutcomeUnknown,
    #[n(3)]
    Overloaded,
    #[n(4)]
    DiskLow {
        #[n(0)]
        free_bytes: u64,
        #[n(1)]
        needed_bytes: u64,
    },
    #[n(5)]
    Draining,
    #[n(6)]
    Stopped,
    #[n(7)]
    Internal,
    #[n(8)]
    Unconfirmed,
    #[n(9)]
    OtherMap {
        #[n(0)]
        epoch: u64,
    },
}

/// Encodes a question: a form byte, then the epochs of the sender's map, and the kind and the parts of the request.
#[must_use]
pub fn encode_asked(epochs: MapEpochs, request: &LeaderRequest) -> Bytes {
    let body = body(request);
    let form = LeaderQuestionForm { epochs, request: sent_request(request, &body) };
    framed_about(QUESTION_FORM, &form, body.len() + FRAME_BYTES).into()
}

/// The bytes of the command or of the batch.
fn body(request: &LeaderRequest) -> Vec<u8> {
    match request {
        LeaderRequest::Submit(command) => Command::encode(command),
        LeaderRequest::ReadIndex => Vec::new(),
        LeaderRequest::Fire(batch) => batch.encode(),
    }
}

fn sent_request<'a>(request: &LeaderRequest, body: &'a [u8]) -> LeaderRequestForm<'a> {
    match request {
        LeaderRequest::Submit(_) => LeaderRequestForm::Submit(body),
        LeaderRequest::ReadIndex => LeaderRequestForm::ReadIndex,
        LeaderRequest::Fire(_) => LeaderRequestForm::Fire(body),
    }
}

/// Reads what [`encode_asked`] wrote.
///
/// # Errors
/// Another form, broken bytes, or bytes after the end.
pub fn decode_asked(bytes: &[u8]) -> io::Result<LeaderQuestion> {
    let LeaderQuestionForm { epochs, request } = read(QUESTION_FORM, bytes)?;
    let request = match request {
        LeaderRequestForm::Submit(command) => {
            LeaderRequest::Submit(Arc::new(Command::decode(command).map_err(bad)?))
        }
        LeaderRequestForm::ReadIndex => LeaderRequest::ReadIndex,
        LeaderRequestForm::Fire(batch) => {
            LeaderRequest::Fire(TimerBatch::decode(batch).ok_or_else(|| bad("a batch of timers is damaged"))?)
        }
    };
    Ok(LeaderQuestion { epochs, request })
}

/// Encodes what a leader answers a server that has forwarded a command or asked for an index.
#[must_use]
pub fn encode_answer(answer: &Answer) -> Bytes {
    let form = match answer {
        Answer::Reply { reply, index, rows } => return encode_reply(reply, *index, rows.as_deref()),
        Answer::ReadIndex(index) => AnswerForm::ReadIndex(*index),
        Answer::Fired(Fired::Timers(count)) => AnswerForm::Fired(Some(*count as u64)),
        Answer::Fired(Fired::Stale) => AnswerForm::Fired(None),
        Answer::Failed(failure) => AnswerForm::Failed(sent(failure)),
    };
    framed(ANSWER_FORM, &form).into()
}

fn encode_reply(reply: &Reply, index: u64, rows: Option<&[u8]>) -> Bytes {
    let reply = Reply::encode(reply);
    let bytes = reply.len() + rows.map_or(0, <[u8]>::len) + FRAME_BYTES;
    framed_about(ANSWER_FORM, &AnswerForm::Reply { reply: &reply, index, rows }, bytes).into()
}

/// Reads what [`encode_answer`] wrote.
///
/// # Errors
/// Another form, broken bytes, or bytes after the end.
pub fn decode_answer(bytes: &[u8]) -> io::Result<Answer> {
    Ok(match read(ANSWER_FORM, bytes)? {
        AnswerForm::Reply { reply, index, rows } => {
            let reply = Box::new(Reply::decode(reply).map_err(bad)?);
            Answer::Reply { reply, index, rows: rows.map(<[u8]>::to_vec) }
        }
        AnswerForm::ReadIndex(index) => Answer::ReadIndex(index),
        AnswerForm::Fired(Some(count)) => Answer::Fired(Fired::Timers(usize::try_from(count).map_err(bad)?)),
        AnswerForm::Fired(None) => Answer::Fired(Fired::Stale),
        AnswerForm::Failed(failure) => Answer::Failed(received(failure)?),
    })
}

fn sent(failure: &Failure) -> FailureForm {
    match failure {
        Failure::Rejected(rejection) => FailureForm::Rejected(rejection.encode()),
        Failure::Electing => FailureForm::Electing,
        Failure::OutcomeUnknown => FailureForm::OutcomeUnknown,
        Failure::Overloaded => FailureForm::Overloaded,
        Failure::DiskLow { free_bytes, needed_bytes } => {
            FailureForm::DiskLow { free_bytes: *free_bytes, needed_bytes: *needed_bytes }
        }
        Failure::Draining => FailureForm::Draining,
        Failure::Stopped => FailureForm::Stopped,
        Failure::Internal => FailureForm::Internal,
        Failure::Unconfirmed => FailureForm::Unconfirmed,
        Failure::OtherMap { epoch } => FailureForm::OtherMap { epoch: *epoch },
    }
}

fn received(failure: FailureForm) -> io::Result<Failure> {
    Ok(match failure {
        FailureForm::Rejected(rejection) => Failure::Rejected(Rejection::decode(&rejection).map_err(bad)?),
        FailureForm::Electing => Failure::Electing,
        FailureForm::OutcomeUnknown => Failure::OutcomeUnknown,
        FailureForm::Overloaded => Failure::Overloaded,
        FailureForm::DiskLow { free_bytes, needed_bytes } => Failure::DiskLow { free_bytes, needed_bytes },
        FailureForm::Draining => Failure::Draining,
        FailureForm::Stopped => Failure::Stopped,
        FailureForm::Internal => Failure::Internal,
        FailureForm::Unconfirmed => Failure::Unconfirmed,
        FailureForm::OtherMap { epoch } => Failure::OtherMap { epoch },
    })
}

fn read<'b, T>(form: u8, bytes: &'b [u8]) -> io::Result<T>
where
    T: Decode<'b, ()> + Encode<()>,
{
    unframed(form, bytes, "message to a leader").map_err(bad)
}

fn bad(error: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_machine::{SessionId, TenantId};
    use switchward_state::session::{SessionCommand, Sweep};
    use switchward_state::{Body, Key, Reason, Scope};
    use switchward_testkit::Rng;

    const EPOCHS: MapEpochs = MapEpochs { since: 1, newest: 300 };

    fn requests() -> Vec<(&'static str, LeaderRequest)> {
        let session = SessionId::from_key(TenantId(7), "s");
        let body = Body::Session(SessionCommand::Sweep(Sweep { key: Key::session(TenantId(7), session) }));
        let command = Command::of_server(TenantId(7), Scope::Session(session), body);
        let batch = TimerBatch { shard: 2, term: 258, number: 3, timers: vec![Key::clock()] };
        vec![
            ("submit", LeaderRequest::Submit(Arc::new(command))),
            ("read-index", LeaderRequest::ReadIndex),
            ("fire", LeaderRequest::Fire(batch)),
        ]
    }

    fn answers() -> Vec<(&'static str, Answer)> {
        let rejected = Rejection::new(Reason::NotFound, "there is none").fact("name", "x");
        let low = Failure::DiskLow { free_bytes: 1, needed_bytes: 2 };
        vec![
            ("reply", Answer::Reply { reply: Box::new(Reply::Done), index: 9, rows: None }),
            ("reply-rows", Answer::Reply { reply: Box::new(Reply::Done), index: 9, rows: Some(vec![1, 7]) }),
            ("read-index", Answer::ReadIndex(9)),
            ("fired", Answer::Fired(Fired::Timers(3))),
            ("stale", Answer::Fired(Fired::Stale)),
            ("rejected", Answer::Failed(Failure::Rejected(rejected))),
            ("electing", Answer::Failed(Failure::Electing)),
            ("unknown", Answer::Failed(Failure::OutcomeUnknown)),
            ("overloaded", Answer::Failed(Failure::Overloaded)),
            ("disk-low", Answer::Failed(low)),
            ("draining", Answer::Failed(Failure::Draining)),
            ("stopped", Answer::Failed(Failure::Stopped)),
            ("internal", Answer::Failed(Failure::Internal)),
            ("unconfirmed", Answer::Failed(Failure::Unconfirmed)),
            ("other-map", Answer::Failed(Failure::OtherMap { epoch: 301 })),
        ]
    }

    fn line(name: &str, bytes: &[u8]) -> String {
        format!("{name} {}\n", bytes.escape_ascii())
    }

    #[test]
    fn messages_keep_their_form() {
        let mut lines = String::new();
        for (name, request) in requests() {
            let bytes = encode_asked(EPOCHS, &request).to_vec();
            lines.push_str(&line(&format!("ask-{name}"), &bytes));
            let question = LeaderQuestion { epochs: EPOCHS, request };
            assert_eq!((bytes[0], decode_asked(&bytes).unwrap()), (QUESTION_FORM, question));
        }
        for (name, answer) in answers() {
            let bytes = encode_answer(&answer).to_vec();
            lines.push_str(&line(&format!("answer-{name}"), &bytes));
            assert_eq!((bytes[0], decode_answer(&bytes).unwrap()), (ANSWER_FORM, answer));
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/leader_message.v1.txt");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, &lines).unwrap();
        }
        assert_eq!(lines, std::fs::read_to_string(path).unwrap(), "servers of two builds could not talk");
    }

    #[test]
    fn a_question_of_another_form_or_without_epochs_is_refused() {
        for (name, request) in requests() {
            let body = body(&request);
            let newer = framed(QUESTION_FORM + 1, &sent_request(&request, &body));
            let refused = decode_asked(&newer).unwrap_err().to_string();
            assert_eq!(refused, "the form of a message to a leader is not 1", "{name}");
            let without = framed(QUESTION_FORM, &sent_request(&request, &body));
            assert!(decode_asked(&without).is_err(), "{name}");
        }
    }

    #[test]
    fn any_epochs_are_read_back() {
        let mut rng = Rng::new(1);
        // Shifted, so that short numbers come too.
        let mut drawn = || rng.bits() >> rng.below(64);
        for _ in 0..1_000 {
            let epochs = MapEpochs { since: drawn(), newest: drawn() };
            for (_, request) in requests() {
                let read = decode_asked(&encode_asked(epochs, &request)).unwrap();
                assert_eq!(read, LeaderQuestion { epochs, request });
            }
            let answer = Answer::Failed(Failure::OtherMap { epoch: drawn() });
            assert_eq!(decode_answer(&encode_answer(&answer)).unwrap(), answer);
        }
    }

    #[test]
    fn bytes_after_a_message_are_refused() {
        for (name, request) in requests() {
            let bytes = encode_asked(EPOCHS, &request);
            for more in [&[0_u8][..], &bytes] {
                let error = decode_asked(&[&bytes[..], more].concat()).unwrap_err().to_string();
                assert!(
                    error.starts_with(&format!("{} bytes follow the end", more.len())),
                    "{name}: {error}"
                );
            }
        }
        for (name, answer) in answers() {
            let bytes = encode_answer(&answer);
            for more in [&[0_u8][..], &bytes] {
                let error = decode_answer(&[&bytes[..], more].concat()).unwrap_err().to_string();
                assert!(
                    error.starts_with(&format!("{} bytes follow the end", more.len())),
                    "{name}: {error}"
                );
            }
        }
    }

    #[test]
    fn every_shortened_or_changed_message_is_read_or_refused() {
        let known = requests().into_iter().map(|(_, request)| encode_asked(EPOCHS, &request));
        for bytes in known.chain(answers().into_iter().map(|(_, answer)| encode_answer(&answer))) {
            for at in 0..bytes.len() {
                let mut changed = bytes.to_vec();
                changed[at] ^= 0xff;
                for bytes in [&bytes[..at], &changed[..]] {
                    let _read = (decode_asked(bytes).is_ok(), decode_answer(bytes).is_ok());
                }
            }
        }
    }
}
