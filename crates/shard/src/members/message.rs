//! The messages between servers about their membership.

use bytes::Bytes;
use minicbor::{Decode, Encode};
use std::io;
use switchward_state::catalogue::{ClusterChange, Server};
use switchward_state::{Levels, Rejection, Reply};

/// Stored form. Messages about membership: form byte, then parts by number.
const FORM: u8 = 1;

/// The kind of a request to join, among the messages between servers.
pub(crate) const JOIN: u8 = 33;

/// The kind of a question for the status of a server's replicas.
pub(crate) const STATUS: u8 = 34;

/// The kind of a request to the leader of a group to hand it over.
pub(crate) const HAND_OVER: u8 = 35;

/// The kind of a request to the leader of a group to write a mark at which digests are taken.
pub(crate) const MARK: u8 = 36;

/// The kind of a question for the digest of a replica at a mark.
pub(crate) const DIGEST: u8 = 37;

/// The kind of a message to a server whose replica differs from a majority.
pub(crate) const OUTVOTED: u8 = 38;

/// The kind of a request to the leader of a group to stop to decide for a backup; it holds the backup's id, as do the next two.
pub(crate) const BACKUP_PAUSE: u8 = 39;

/// The kind of a request to such a leader to write the backup's mark and to go on.
pub(crate) const BACKUP_MARK: u8 = 40;

/// The kind of a request to such a leader to go on without a mark.
pub(crate) const BACKUP_RESUME: u8 = 41;

/// A mark in the log of a group.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Marked {
    /// The index of its entry.
    #[n(0)]
    pub(crate) index: u64,
    /// The voters of the group then.
    #[n(1)]
    pub(crate) voters: Vec<u64>,
    /// The other members of the group then.
    #[n(2)]
    pub(crate) learners: Vec<u64>,
}

/// The digest of a replica at a mark.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) enum DigestAnswer {
    /// What the replica computed from its rows.
    #[n(0)]
    Digest(#[cbor(n(0), with = "minicbor::bytes")] [u8; 32]),
    /// The digest is being computed.
    #[n(1)]
    UnderWay,
    /// The replica has not applied the mark.
    #[n(2)]
    Behind,
    /// The replica has no digest at the mark and will have none; says why.
    #[n(3)]
    NoDigest(#[n(0)] String),
}

/// What a replica that differs is compared with.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Outvoted {
    /// The index of the mark.
    #[n(0)]
    pub(crate) index: u64,
    /// The digest that a majority of the voters has.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub(crate) digest: [u8; 32],
    /// The servers that have it.
    #[n(2)]
    pub(crate) servers: Vec<u64>,
}

/// What a server says about itself that wants to join.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Joining {
    /// The number that its configuration gives it.
    #[n(0)]
    pub(crate) number: u64,
    /// The id of its data folder.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub(crate) folder: [u8; 16],
    /// Where other servers reach it.
    #[n(2)]
    pub(crate) address: String,
    /// The feature levels of its program.
    #[n(3)]
    pub(crate) levels: Levels,
}

/// The answer to a server that wants to join.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum JoinAnswer {
    /// It is a server of the cluster, with this map, beside these servers.
    Admitted { change: Box<ClusterChange>, servers: Vec<Server> },
    /// The cluster refuses it, and will refuse it again.
    Refused(Rejection),
    /// It is unknown whether it was admitted; it must ask again.
    Again(String),
}

/// Sent form of [`JoinAnswer`].
#[derive(Encode, Decode)]
enum JoinAnswerForm {
    #[n(0)]
    Admitted {
        #[cbor(n(0), with = "minicbor::bytes")]
        reply: Vec<u8>,
        #[n(1)]
        servers: Vec<Server>,
    },
    #[n(1)]
    Refused(#[cbor(n(0), with = "minicbor::bytes")] Vec<u8>),
    #[n(2)]
    Again(#[n(0)] String),
}

/// Encodes a value: a form byte, then its fields by number.
pub(crate) fn framed(value: &impl Encode<()>) -> Bytes {
    switchward_state::framed(FORM, value).into()
}

/// Reads what [`framed`] wrote.
///
/// # Errors
/// Another form, broken bytes, fields that this program does not know, or bytes after the end.
pub(crate) fn unframed<'b, T>(bytes: &'b [u8]) -> io::Result<T>
where
    T: Decode<'b, ()> + Encode<()>,
{
    switchward_state::unframed(FORM, bytes, "message about membership").map_err(bad)
}

pub(crate) fn encode_join_answer(answer: &JoinAnswer) -> Bytes {
    framed(&match answer {
        JoinAnswer::Admitted { change, servers } => {
            let reply = Reply::Cluster(change.clone()).encode();
            JoinAnswerForm::Admitted { reply, servers: servers.clone() }
        }
        JoinAnswer::Refused(rejection) => JoinAnswerForm::Refused(rejection.encode()),
        JoinAnswer::Again(why) => JoinAnswerForm::Again(why.clone()),
    })
}

/// Reads what [`encode_join_answer`] wrote.
///
/// # Errors
/// Another form, or broken bytes.
pub(crate) fn decode_join_answer(bytes: &[u8]) -> io::Result<JoinAnswer> {
    Ok(match unframed(bytes)? {
        JoinAnswerForm::Admitted { reply, servers } => {
            let reply = Reply::decode(&reply).map_err(bad)?;
            let Reply::Cluster(change) = reply else {
                return Err(bad(format!("unexpected answer to a server that joins: {reply:?}")));
            };
            JoinAnswer::Admitted { change, servers }
        }
        JoinAnswerForm::Refused(rejection) => {
            JoinAnswer::Refused(Rejection::decode(&rejection).map_err(bad)?)
        }
        JoinAnswerForm::Again(why) => JoinAnswer::Again(why),
    })
}

fn bad(error: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::report::{Follower, ReplicaReport, ServerReport};
    use super::*;
    use switchward_machine::Time;
    use switchward_state::catalogue::{ClusterMap, ServerState};
    use switchward_state::{Level, Reason};

    fn answers() -> Vec<(&'static str, JoinAnswer)> {
        let server = Server {
            number: 2,
            folder: [2; 16],
            address: "10.0.0.2:7001".into(),
            state: ServerState::Active,
            levels: Levels::OF_PROGRAM,
            joined: Time(5),
            replaced_by: None,
        };
        let map = ClusterMap::founded([1; 16], 1, 2, Level(1), 3).changed(&server);
        let change = Box::new(ClusterChange { server: server.clone(), map });
        vec![
            ("admitted", JoinAnswer::Admitted { change, servers: vec![server] }),
            ("refused", JoinAnswer::Refused(Rejection::new(Reason::AlreadyExists, "taken"))),
            ("again", JoinAnswer::Again("there is no leader".into())),
        ]
    }

    /// The messages of a verification.
    fn verification() -> Vec<(&'static str, Bytes)> {
        let marked = Marked { index: 9, voters: vec![1, 2], learners: vec![3] };
        let outvoted = Outvoted { index: 9, digest: [7; 32], servers: vec![1, 2] };
        let answers = [
            ("taken", DigestAnswer::Digest([7; 32])),
            ("under-way", DigestAnswer::UnderWay),
            ("behind", DigestAnswer::Behind),
            ("not-taken", DigestAnswer::NoDigest("it has failed".into())),
        ];
        let backup = framed(&minicbor::bytes::ByteArray::from([3_u8; 16]));
        let mut lines =
            vec![("marked", framed(&marked)), ("outvoted", framed(&outvoted)), ("backup", backup)];
        assert_eq!(unframed::<Marked>(&lines[0].1).unwrap(), marked);
        assert_eq!(unframed::<Outvoted>(&lines[1].1).unwrap(), outvoted);
        for (name, answer) in answers {
            let bytes = framed(&answer);
            assert_eq!(unframed::<DigestAnswer>(&bytes).unwrap(), answer);
            lines.push((name, bytes));
        }
        lines
    }

    #[test]
    fn messages_keep_their_form() {
        let joining = Joining {
            number: 2,
            folder: [2; 16],
            address: "10.0.0.2:7001".into(),
            levels: Levels::OF_PROGRAM,
        };
        let report = ReplicaReport {
            group: 1,
            leader: Some(1),
            leads: true,
            term: 4,
            last: 9,
            applied: 8,
            voters: vec![1],
            learners: vec![2],
            failed: Some("it is broken".into()),
            followers: vec![Follower { server: 2, matched: Some(7), silent_ms: Some(30) }],
            log_bytes: 700,
            log_entries: 7,
        };
        let report = ServerReport {
            replicas: vec![report],
            version: "1.2.3".into(),
            disk_free_bytes: Some(1_000),
            certificate_expires: Some(Time(70)),
            now: Time(60),
            may_lead: true,
            clock_bars: false,
            clock_ahead_ms: Some(-12),
        };
        let mut lines = vec![
            ("join", framed(&joining)),
            ("status", framed(&())),
            ("report", framed(&report)),
            ("hand-over", framed(&Some(2_u64))),
        ];
        lines.extend(verification());
        assert_eq!(unframed::<Joining>(&lines[0].1).unwrap(), joining);
        assert_eq!(unframed::<ServerReport>(&lines[2].1).unwrap(), report);
        assert_eq!(unframed::<Option<u64>>(&lines[3].1).unwrap(), Some(2));
        for (name, answer) in answers() {
            let bytes = encode_join_answer(&answer);
            assert_eq!(decode_join_answer(&bytes).unwrap(), answer);
            lines.push((name, bytes));
        }
        assert!(lines.iter().all(|(_, bytes)| bytes[0] == FORM));
        let line = |(name, bytes): &(&str, Bytes)| format!("{name} {}\n", bytes.escape_ascii());
        let lines: String = lines.iter().map(line).collect();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/member_message.v1.txt");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, &lines).unwrap();
        }
        assert_eq!(lines, std::fs::read_to_string(path).unwrap());
    }

    #[test]
    fn bytes_after_a_message_are_refused() {
        let bytes = framed(&Some(2_u64));
        for more in [&[0_u8][..], &bytes] {
            let error = unframed::<Option<u64>>(&[&bytes[..], more].concat()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{} bytes follow the end", more.len())), "{error}");
        }
        for (name, answer) in answers() {
            let bytes = [&encode_join_answer(&answer)[..], &[0]].concat();
            assert!(decode_join_answer(&bytes).is_err(), "{name}");
        }
    }
}
