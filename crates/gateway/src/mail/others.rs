//! The quarantines of the other servers of a cluster: each server keeps the mail that came to it, and any server shows
//! and deletes what all of them keep.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use minicbor::{Decode, Encode};
use switchward_machine::{TenantId, Time};
use switchward_shard::{PeerConnection, PeerRequest, Transport};
use switchward_state::all_known;

use super::quarantine::{Elsewhere, QuarantineOfOthers, QuarantineStore, QuarantinedMail, delete_until};
use crate::api::Api;
use crate::limits::{QUARANTINE_ASK_MS, QUARANTINE_LIST_BYTES_MAX};

/// The kind of a question about a quarantine, among the messages between servers.
pub const QUARANTINE_QUESTION: u8 = 64;
/// Sent form. A form byte, then kind and parts by number.
const FORM: u8 = 1;
/// Questions about a quarantine are about no group.
const NO_GROUP: u64 = 0;

/// The quarantines that can be asked by a transport.
pub struct QuarantinesByTransport {
    transport: Arc<dyn Transport>,
    others: Box<dyn Fn() -> Vec<u64> + Send + Sync>,
}

impl QuarantinesByTransport {
    /// Asks the servers whose numbers `others` returns when it is called.
    #[must_use]
    pub fn new(transport: Arc<dyn Transport>, others: Box<dyn Fn() -> Vec<u64> + Send + Sync>) -> Self {
        Self { transport, others }
    }

    /// Asks all at one time, and returns what `read` finds in their answers. Another answer is none.
    async fn ask<T>(&self, asked: &MailQuestion, read: impl Fn(Answer) -> Option<T>) -> Elsewhere<Vec<T>> {
        let body = encode(asked);
        let each = (self.others)().into_iter().map(|server| {
            let request = PeerRequest { kind: QUARANTINE_QUESTION, group: NO_GROUP, body: body.clone() };
            async move {
                let deadline = Duration::from_millis(QUARANTINE_ASK_MS);
                let called = self.transport.call(server, PeerConnection::Bulk, request, deadline).await;
                let answer = called.map_err(|error| error.to_string()).and_then(|bytes| decode(&bytes));
                (server, answer)
            }
        });
        let (mut found, mut unreachable) = (Vec::new(), Vec::new());
        for (server, answer) in join_all(each).await {
            match answer
                .and_then(|answer| read(answer).ok_or_else(|| "it answered something else".to_owned()))
            {
                Ok(answer) => found.push(answer),
                Err(error) => {
                    tracing::warn!(server, error, "failed to ask a server about its quarantine");
                    unreachable.push(server);
                }
            }
        }
        unreachable.sort_unstable();
        Elsewhere { found, unreachable }
    }
}

#[tonic::async_trait]
impl QuarantineOfOthers for QuarantinesByTransport {
    async fn list(&self, tenant: TenantId) -> Elsewhere<Vec<QuarantinedMail>> {
        let Elsewhere { found, unreachable } =
            self.ask(&MailQuestion::List { tenant: tenant.0 }, Answer::mails).await;
        let mails = found.into_iter().flatten();
        Elsewhere { found: mails.filter_map(QuarantinedMailForm::kept).collect(), unreachable }
    }

    async fn content(&self, id: &str) -> Elsewhere<Option<Vec<u8>>> {
        let Elsewhere { found, unreachable } =
            self.ask(&MailQuestion::Content { id: id.to_owned() }, Answer::content).await;
        Elsewhere { found: found.into_iter().flatten().next(), unreachable }
    }

    async fn delete(&self, tenant: TenantId, id: &str, last: Time) -> Elsewhere<()> {
        let asked = MailQuestion::Delete { tenant: tenant.0, id: id.to_owned(), last_ms: last.0 };
        let Elsewhere { unreachable, .. } = self.ask(&asked, Answer::deleted).await;
        Elsewhere { found: (), unreachable }
    }
}

/// Answers what another server asks about the quarantine of this one.
///
/// # Errors
/// This server cannot read the question, keeps no mail, or cannot read or change what it keeps.
pub async fn serve_quarantine(api: &Api, asked: &[u8]) -> io::Result<Bytes> {
    let asked: MailQuestion = decode(asked).map_err(io::Error::other)?;
    let quarantine = api.quarantine.get().map(Arc::clone);
    let quarantine = quarantine.ok_or_else(|| io::Error::other("this server has no quarantine"))?;
    let deleted = Arc::clone(&api.deleted);
    let answered = tokio::task::spawn_blocking(move || {
        let answer = answer(&*quarantine, &asked)?;
        if let (MailQuestion::Delete { tenant, id, .. }, Answer::Deleted) = (&asked, &answer) {
            deleted.note(TenantId(*tenant), id.clone());
        }
        Ok::<_, String>(encode(&answer))
    });
    answered.await?.map_err(io::Error::other)
}

fn answer(quarantine: &dyn QuarantineStore, asked: &MailQuestion) -> Result<Answer, String> {
    Ok(match asked {
        MailQuestion::List { tenant } => {
            let mut mails = quarantine.list();
            mails.retain(|mail| mail.tenant.is_none_or(|of| of.0 == *tenant));
            mails.sort_by_key(|mail| std::cmp::Reverse(mail.at));
            let mut left = QUARANTINE_LIST_BYTES_MAX;
            let fits = |mail: &QuarantinedMailForm| {
                let bytes = mail.bytes_sent();
                let fits = bytes <= left;
                left = left.saturating_sub(bytes);
                fits
            };
            Answer::Mails { mails: mails.into_iter().map(QuarantinedMailForm::of).take_while(fits).collect() }
        }
        MailQuestion::Content { id } => Answer::Content { content: quarantine.content(id)?.map(Into::into) },
        MailQuestion::Delete { id, last_ms, .. } => {
            let deleted = delete_until(quarantine, id, Time(*last_ms))?;
            // One that came once more stays.
            let gone = deleted || quarantine.list().iter().all(|mail| mail.id != *id);
            if gone { Answer::Deleted } else { Answer::Newer }
        }
    })
}

/// What a server asks.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
enum MailQuestion {
    #[n(0)]
    List {
        #[n(0)]
        tenant: u32,
    },
    #[n(1)]
    Content {
        #[n(0)]
        id: String,
    },
    #[n(2)]
    Delete {
        #[n(0)]
        tenant: u32,
        #[n(1)]
        id: String,
        #[n(2)]
        last_ms: u64,
    },
}

/// What a server answers.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
enum Answer {
    #[n(0)]
    Mails {
        #[n(0)]
        mails: Vec<QuarantinedMailForm>,
    },
    #[n(1)]
    Content {
        #[n(0)]
        content: Option<minicbor::bytes::ByteVec>,
    },
    /// The mail is not there, or not any more.
    #[n(2)]
    Deleted,
    /// A mail with this id came later than the one to delete.
    #[n(3)]
    Newer,
}

impl Answer {
    fn mails(self) -> Option<Vec<QuarantinedMailForm>> {
        match self {
            Self::Mails { mails } => Some(mails),
            Self::Content { .. } | Self::Deleted | Self::Newer => None,
        }
    }

    /// The content; `None` inside if the server has no such mail.
    fn content(self) -> Option<Option<Vec<u8>>> {
        match self {
            Self::Content { content } => Some(content.map(Into::into)),
            Self::Mails { .. } | Self::Deleted | Self::Newer => None,
        }
    }

    /// Nothing, if it answers a deletion: a mail that came once more stays.
    fn deleted(self) -> Option<()> {
        match self {
            Self::Deleted | Self::Newer => Some(()),
            Self::Mails { .. } | Self::Content { .. } => None,
        }
    }
}

/// Sent form of [`QuarantinedMail`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
struct QuarantinedMailForm {
    #[n(0)]
    id: String,
    #[n(1)]
    at_ms: u64,
    #[n(2)]
    tenant: Option<u32>,
    #[n(3)]
    session: Option<String>,
    #[n(4)]
    outcome: String,
    #[n(5)]
    why: String,
    #[n(6)]
    sender: Option<String>,
    #[n(7)]
    recipients: Vec<String>,
    #[n(8)]
    from: String,
    #[n(9)]
    subject: String,
    #[n(10)]
    bytes: u64,
}

impl QuarantinedMailForm {
    fn of(mail: QuarantinedMail) -> Self {
        Self {
            id: mail.id,
            at_ms: mail.at.0,
            tenant: mail.tenant.map(|tenant| tenant.0),
            session: mail.session.map(|session| session.to_string()),
            outcome: mail.outcome,
            why: mail.why,
            sender: mail.sender,
            recipients: mail.recipients,
            from: mail.from,
            subject: mail.subject,
            bytes: mail.bytes,
        }
    }

    /// Returns the mail; `None` if it names a session by what is no id of one.
    fn kept(self) -> Option<QuarantinedMail> {
        Some(QuarantinedMail {
            id: self.id,
            at: Time(self.at_ms),
            tenant: self.tenant.map(TenantId),
            session: self.session.map(|session| session.parse()).transpose().ok()?,
            outcome: self.outcome,
            why: self.why,
            sender: self.sender,
            recipients: self.recipients,
            from: self.from,
            subject: self.subject,
            bytes: self.bytes,
        })
    }

    /// About how many bytes it has in a message.
    fn bytes_sent(&self) -> usize {
        minicbor::to_vec(self).map_or(usize::MAX, |bytes| bytes.len())
    }
}

fn encode(message: &impl Encode<()>) -> Bytes {
    let mut out = vec![FORM];
    minicbor::encode(message, &mut out).expect("encoding into memory cannot fail");
    Bytes::from(out)
}

fn decode<M>(bytes: &[u8]) -> Result<M, String>
where
    M: for<'b> Decode<'b, ()> + Encode<()>,
{
    match bytes.split_first() {
        Some((&FORM, rest)) => {
            let message: M = minicbor::decode(rest).map_err(|error| error.to_string())?;
            all_known(&message, rest.len(), "message about a quarantine").map(|()| message)
        }
        Some(_) | None => Err(format!("a message about a quarantine is not of form {FORM}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use switchward_machine::SessionId;

    /// A quarantine in memory, and what it keeps of each mail.
    #[derive(Default)]
    struct Memory(Mutex<Vec<QuarantinedMail>>);

    impl QuarantineStore for Memory {
        fn keep(&self, mail: QuarantinedMail, _content: &[u8]) -> Result<(), String> {
            let mut kept = self.0.lock();
            kept.retain(|one| one.id != mail.id);
            kept.push(mail);
            Ok(())
        }

        fn list(&self) -> Vec<QuarantinedMail> {
            self.0.lock().clone()
        }

        fn content(&self, id: &str) -> Result<Option<Vec<u8>>, String> {
            Ok(self.0.lock().iter().any(|mail| mail.id == id).then(|| id.as_bytes().to_vec()))
        }

        fn delete(&self, mail: &QuarantinedMail) -> Result<bool, String> {
            let mut kept = self.0.lock();
            let before = kept.len();
            kept.retain(|one| one.id != mail.id || one.at != mail.at);
            Ok(kept.len() < before)
        }
    }

    /// Servers that answer from their quarantines; a server without one cannot be reached.
    struct Servers(Vec<Option<Arc<Memory>>>);

    #[tonic::async_trait]
    impl Transport for Servers {
        async fn call(
            &self,
            to: u64,
            _over: PeerConnection,
            request: PeerRequest,
            _deadline: Duration,
        ) -> Result<Bytes, switchward_shard::PeerError> {
            assert_eq!(request.kind, QUARANTINE_QUESTION);
            let gone = || switchward_shard::PeerError::NotSent("it is gone".to_owned());
            let quarantine = self.0[usize::try_from(to).unwrap()].clone().ok_or_else(gone)?;
            let asked = decode::<MailQuestion>(&request.body).unwrap();
            Ok(encode(&answer(&*quarantine, &asked).unwrap()))
        }

        async fn stream(
            &self,
            _to: u64,
            _request: PeerRequest,
        ) -> Result<Arc<dyn switchward_shard::PeerStream>, switchward_shard::PeerError> {
            Err(switchward_shard::PeerError::NotSent("there are no streams".to_owned()))
        }
    }

    fn mail(id: &str, tenant: Option<u32>, at: u64) -> QuarantinedMail {
        QuarantinedMail {
            id: id.to_owned(),
            at: Time(at),
            tenant: tenant.map(TenantId),
            session: tenant.map(|_| SessionId([5; 16])),
            outcome: "quarantined".to_owned(),
            why: "token_invalid".to_owned(),
            sender: Some(String::new()),
            recipients: vec!["r+x@reply.example".to_owned()],
            from: "ann@a.example".to_owned(),
            subject: "Re: release".to_owned(),
            bytes: 4,
        }
    }

    fn others(servers: Vec<Option<Arc<Memory>>>) -> QuarantinesByTransport {
        let numbers: Vec<u64> = (0..u64::try_from(servers.len()).unwrap()).collect();
        QuarantinesByTransport::new(Arc::new(Servers(servers)), Box::new(move || numbers.clone()))
    }

    #[tokio::test]
    async fn what_other_servers_keep_is_listed_read_and_deleted_and_one_that_is_gone_is_named() {
        let [one, two]: [Arc<Memory>; 2] = Default::default();
        one.keep(mail("a", Some(1), 1), b"").unwrap();
        one.keep(mail("foreign", Some(2), 2), b"").unwrap();
        two.keep(mail("b", None, 3), b"").unwrap();
        two.keep(mail("a", Some(1), 9), b"").unwrap();
        let others = others(vec![Some(one.clone()), None, Some(two.clone())]);
        let Elsewhere { found: mut mails, unreachable } = others.list(TenantId(1)).await;
        assert_eq!(unreachable, [1]);
        mails.sort_by_key(|mail| mail.at);
        assert_eq!(mails, [mail("a", Some(1), 1), mail("b", None, 3), mail("a", Some(1), 9)]);
        let content = |found| Elsewhere { found, unreachable: vec![1] };
        assert_eq!(others.content("b").await, content(Some(b"b".to_vec())));
        assert_eq!(others.content("c").await, content(None));
        // What came later than the mail that somebody has seen stays.
        let deleted = others.delete(TenantId(1), "a", Time(1)).await;
        assert_eq!(deleted, Elsewhere { found: (), unreachable: vec![1] });
        assert_eq!((one.list().len(), two.list().len()), (1, 2));
        others.delete(TenantId(1), "a", Time(9)).await;
        assert_eq!((one.list().len(), two.list().len()), (1, 1));
    }

    #[test]
    fn a_server_with_too_much_says_what_is_newest() {
        let quarantine = Memory::default();
        let long = "x".repeat(QUARANTINE_LIST_BYTES_MAX / 10);
        for at in 0..20 {
            quarantine
                .keep(QuarantinedMail { subject: long.clone(), ..mail(&at.to_string(), None, at) }, b"")
                .unwrap();
        }
        let answered = answer(&quarantine, &MailQuestion::List { tenant: 1 }).unwrap();
        let newest: Vec<u64> = answered.mails().unwrap().iter().map(|mail| mail.at_ms).collect();
        assert_eq!(newest, (11..20).rev().collect::<Vec<_>>());
    }

    /// Servers of two builds talk to each other.
    #[test]
    fn messages_keep_their_form() {
        let delete = MailQuestion::Delete { tenant: 2, id: "ab".to_owned(), last_ms: 3 };
        let content = Answer::Content { content: Some(vec![0, 255].into()) };
        assert_eq!(encode(&delete)[..], *b"\x01\x82\x02\x83\x02\x62ab\x03");
        assert_eq!(encode(&MailQuestion::List { tenant: 2 })[..], *b"\x01\x82\x00\x81\x02");
        assert_eq!(encode(&content)[..], *b"\x01\x82\x01\x81\x42\x00\xff");
        assert_eq!(encode(&Answer::Deleted)[..], *b"\x01\x82\x02\x80");
        assert_eq!(decode(&encode(&delete)), Ok(delete));
        assert_eq!(decode(&encode(&content)), Ok(content.clone()));
        let mails = Answer::Mails {
            mails: vec![
                QuarantinedMailForm::of(mail("a", Some(1), 1)),
                QuarantinedMailForm::of(mail("b", None, 2)),
            ],
        };
        assert_eq!(decode(&encode(&mails)), Ok(mails));
        for bytes in [&b""[..], b"\x02\x82\x02\x80", &encode(&content)[..5]] {
            assert!(decode::<Answer>(bytes).is_err());
        }
    }
}
