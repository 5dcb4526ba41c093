//! A gateway asks a server about the credential of a call before it reads the body of that call, as a server looks at it
//! before. So a caller without a valid credential takes no memory for a body and no permit.
//!
//! What a server has accepted is remembered by the credential's hash for [`CREDENTIALS_KEPT_MS`], refusals are not. That
//! memory only decides whether a body is read: the server that gets the call authenticates it once more, so a revoked key
//! does nothing with it.
//!
//! Concurrent calls with one credential share one question. Credentials that no server has accepted yet may have a part of
//! the questions, and those of one client address a part of them, so that guessing does not hold up the other callers.
//!
//! Chosen: any server in turn answers, by its own rows. Rejected: a copy of the keys at the gateway, which would then hold
//! data; only the leader of the catalogue, which would have to answer for all gateways.

use axum::body::Body;
use http::{Extensions, HeaderMap, HeaderValue, Method, Request, header};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout};
use tonic::Code;

use super::client_address::ClientAddress;
use super::forward::{AGAIN, Proxy, unreachable};
use super::head::CREDENTIAL_PATH;
use super::holder::{Holder, HoldersElsewhere, decode};
use super::links::uri;
use super::map::RouteServer;
use super::need::Need;
use crate::auth;
use crate::error::{Reason, Refusal};
use crate::limits::{
    CREDENTIAL_ADDRESS_PART, CREDENTIAL_ANSWER_BYTES_MAX, CREDENTIAL_QUESTIONS_MAX, CREDENTIAL_UNPROVEN_PART,
    CREDENTIAL_WAIT_MS, CREDENTIALS_KEPT_MAX, CREDENTIALS_KEPT_MS, PROXY_DIAL_MS_MAX, PROXY_DIAL_WAIT_MS,
    PROXY_TRIES_MAX,
};
use crate::reply_tokens;
use crate::tallies::{Tallied, Tallies};

/// The hash of a credential, so that the cache holds no credentials.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CredentialHash([u8; 32]);

impl CredentialHash {
    /// The hash of what a request is made with, of whatever kind; `None` if it names nothing.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        auth::credential(headers).map(|credential| Self(Sha256::digest(credential.as_bytes()).into()))
    }
}

/// What a server says of a credential.
type Answer = Result<Holder, Refusal>;

/// What servers have said of credentials, and what they are asked now.
pub(super) struct Credentials {
    table: Mutex<Table>,
    questions: Arc<Semaphore>,
    /// Those about credentials that no server has accepted before.
    unproven: Arc<Semaphore>,
    /// The same by client addresses.
    addresses: Tallies<IpAddr>,
}

#[derive(Default)]
struct Table {
    /// The last answers of servers that have accepted a credential, [`CREDENTIALS_KEPT_MAX`] at most.
    accepted: HashMap<CredentialHash, Accepted>,
    /// The questions that are open, [`CREDENTIAL_QUESTIONS_MAX`] at most.
    open: HashMap<CredentialHash, watch::Receiver<Option<Answer>>>,
}

struct Accepted {
    holder: Holder,
    /// Until when no server is asked again. After that it still says that the credential was valid.
    until: Instant,
}

/// What is known of a credential.
enum Known {
    /// A server has accepted it a moment ago.
    Accepted(Holder),
    /// A server is asked.
    Open(watch::Receiver<Option<Answer>>),
    /// A server is to be asked.
    Unknown(Question),
}

/// A question that is open. If it is dropped without an answer, those who wait for it get none.
struct Question {
    hash: CredentialHash,
    began: Instant,
    answer: watch::Sender<Option<Answer>>,
    _permit: QuestionPermit,
}

/// What a question counts as, until it is answered.
struct QuestionPermit {
    _one: OwnedSemaphorePermit,
    _unproven: Option<OwnedSemaphorePermit>,
    _address: Option<Tallied<IpAddr>>,
}

impl Default for Credentials {
    fn default() -> Self {
        Self {
            table: Mutex::default(),
            questions: Arc::new(Semaphore::new(CREDENTIAL_QUESTIONS_MAX)),
            unproven: Arc::new(Semaphore::new(CREDENTIAL_QUESTIONS_MAX / CREDENTIAL_UNPROVEN_PART)),
            addresses: Tallies::default(),
        }
    }
}

impl Credentials {
    /// What is known of the credential of a request with these extensions. A new question is open from now on.
    ///
    /// # Errors
    /// QUOTA_EXCEEDED if too many are open.
    fn look(&self, hash: CredentialHash, extensions: &Extensions) -> Result<Known, Refusal> {
        let mut table = self.table.lock();
        let accepted = table.accepted.get(&hash);
        let began = Instant::now();
        if let Some(accepted) = accepted.filter(|accepted| began < accepted.until) {
            return Ok(Known::Accepted(accepted.holder));
        }
        // A question that was dropped is asked again: an answered one is not in the table.
        if let Some(answer) = table.open.get(&hash).filter(|answer| answer.has_changed().is_ok()) {
            return Ok(Known::Open(answer.clone()));
        }
        let permit = match accepted {
            Some(_) => self.permit(),
            None => self.unproven_permit(extensions),
        };
        let permit = permit.ok_or_else(full)?;
        let answer = watch::Sender::new(None);
        table.open.insert(hash, answer.subscribe());
        Ok(Known::Unknown(Question { hash, began, answer, _permit: permit }))
    }

    fn permit(&self) -> Option<QuestionPermit> {
        let one = Arc::clone(&self.questions).try_acquire_owned().ok()?;
        Some(QuestionPermit { _one: one, _unproven: None, _address: None })
    }

    fn unproven_permit(&self, extensions: &Extensions) -> Option<QuestionPermit> {
        let permit = self.permit()?;
        let unproven = Arc::clone(&self.unproven).try_acquire_owned().ok()?;
        let most = CREDENTIAL_QUESTIONS_MAX / CREDENTIAL_ADDRESS_PART;
        let address = match ClientAddress::counted(extensions) {
            Some(address) => Some(self.addresses.add(address, 1, most)?),
            None => None,
        };
        Some(QuestionPermit { _unproven: Some(unproven), _address: address, ..permit })
    }

    /// Answers a question, and those who wait for it.
    fn answered(&self, question: &Question, answer: Answer) {
        let mut table = self.table.lock();
        match &answer {
            Ok(holder) => {
                let until = question.began + Duration::from_millis(CREDENTIALS_KEPT_MS);
                table.keep(question.hash, Accepted { holder: *holder, until });
            }
            Err(refusal) if refusal.reason() == Reason::CredentialInvalid => {
                table.accepted.remove(&question.hash);
            }
            Err(_) => {}
        }
        table.open.remove(&question.hash);
        drop(table);
        question.answer.send_replace(Some(answer));
    }

    /// A server has refused a call with a credential: the next call asks again.
    pub(super) fn forget(&self, hash: CredentialHash) {
        self.table.lock().accepted.remove(&hash);
    }
}

impl Table {
    fn keep(&mut self, hash: CredentialHash, accepted: Accepted) {
        if self.accepted.len() >= CREDENTIALS_KEPT_MAX
            && !self.accepted.contains_key(&hash)
            && let Some(any) = self.accepted.keys().next().copied()
        {
            self.accepted.remove(&any);
        }
        self.accepted.insert(hash, accepted);
    }
}

#[tonic::async_trait]
impl HoldersElsewhere for Proxy {
    /// What a server has said at most [`CREDENTIALS_KEPT_MS`] ago counts, too.
    async fn holder(&self, headers: &HeaderMap, extensions: &Extensions) -> Result<Holder, Refusal> {
        check_form(headers)?;
        let sent = headers.get(header::AUTHORIZATION).ok_or_else(auth::invalid)?;
        let hash = CredentialHash::of(headers).ok_or_else(auth::invalid)?;
        let mut answer = match self.credentials().look(hash, extensions)? {
            Known::Accepted(holder) => return Ok(holder),
            Known::Open(answer) => answer,
            Known::Unknown(question) => {
                let answer = question.answer.subscribe();
                // A task, so that a caller who goes away takes the answer from nobody else.
                tokio::spawn(self.clone().answer(question, sent.clone()));
                answer
            }
        };
        let answered = answer.wait_for(Option::is_some).await.ok().and_then(|answer| answer.clone());
        answered.unwrap_or_else(|| Err(unreachable()))
    }
}

impl Proxy {
    /// Answers a question with what servers say.
    async fn answer(self, question: Question, sent: HeaderValue) {
        let answer = self.ask_servers(&sent).await;
        if let Ok(Holder { tenant, is_key: true }) = &answer {
            self.permits().accept(question.hash, *tenant);
        }
        self.credentials().answered(&question, answer);
    }

    /// Asks one server after the other until one can tell.
    async fn ask_servers(&self, sent: &HeaderValue) -> Answer {
        let Some(map) = self.maps().map() else { return Err(unreachable()) };
        let mut servers = map.servers_with(Need::AnyServer, self.next_turn());
        servers.truncate(PROXY_TRIES_MAX);
        let count = servers.len();
        let mut last = unreachable();
        for (at, server) in servers.into_iter().enumerate() {
            let dial_ms = if at + 1 == count { PROXY_DIAL_MS_MAX } else { PROXY_DIAL_WAIT_MS };
            match self.ask_about(server, sent, Duration::from_millis(dial_ms)).await {
                Ok(Err(refusal)) if refusal.reason().code() == Code::Unavailable => last = refusal,
                Ok(answer) => return answer,
                Err(error) => {
                    tracing::debug!(error, server = server.number, "failed to ask about a credential");
                }
            }
        }
        tracing::warn!("no server can tell whose a credential is: {}", last.message());
        self.maps().outdated();
        Err(last)
    }

    async fn ask_about(
        &self,
        server: &RouteServer,
        sent: &HeaderValue,
        dial: Duration,
    ) -> Result<Answer, String> {
        let request = Request::builder().method(Method::GET).uri(uri(server, CREDENTIAL_PATH));
        let request = request.header(header::AUTHORIZATION, sent).body(Body::empty());
        let request = request.map_err(|error| error.to_string())?;
        let asked = self.links().exchange(server, request, dial, CREDENTIAL_ANSWER_BYTES_MAX);
        let answer = timeout(Duration::from_millis(CREDENTIAL_WAIT_MS), asked).await;
        decode(&answer.unwrap_or_else(|_| Err("no answer in time".to_owned()))?)
    }
}

/// Refuses what has not even the form of a credential: no server needs to be asked about it.
///
/// # Errors
/// CREDENTIAL_INVALID, as a server refuses it.
fn check_form(headers: &HeaderMap) -> Result<(), Refusal> {
    let credential = auth::credential(headers);
    match reply_tokens::of(credential) {
        Some(token) => token.map(drop),
        None if credential.is_some_and(auth::is_key) => Ok(()),
        None => Err(auth::invalid()),
    }
}

fn full() -> Refusal {
    let message = "this gateway asks servers about as many credentials as it may, or as many of this client's address \
                   that no server has accepted yet; send it again later";
    Refusal::new(Reason::QuotaExceeded, message).quota("credential_questions", message).retry_after(AGAIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::AUTHORIZATION;
    use switchward_machine::TenantId;

    const HOLDER: Holder = Holder { tenant: TenantId(1), is_key: true };

    fn hash(number: usize) -> CredentialHash {
        let value = HeaderValue::try_from(format!("Bearer swk_{number}")).expect("a header");
        CredentialHash::of(&HeaderMap::from_iter([(AUTHORIZATION, value)])).expect("a credential")
    }

    fn from(last: u8) -> Extensions {
        let mut extensions = Extensions::new();
        extensions.insert(ClientAddress(IpAddr::from([192, 0, 2, last])));
        extensions
    }

    fn question(credentials: &Credentials, number: usize) -> Question {
        match credentials.look(hash(number), &from(1)).expect("few questions are open") {
            Known::Unknown(question) => question,
            Known::Accepted(_) | Known::Open(_) => panic!("{number} is known"),
        }
    }

    fn is_accepted(credentials: &Credentials, number: usize) -> bool {
        matches!(credentials.look(hash(number), &from(1)), Ok(Known::Accepted(HOLDER)))
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_server_has_accepted_holds_for_five_seconds_from_the_question_on() {
        let credentials = Credentials::default();
        let asked = question(&credentials, 1);
        assert!(matches!(credentials.look(hash(1), &from(2)), Ok(Known::Open(_))));
        tokio::time::advance(Duration::from_millis(1_000)).await;
        credentials.answered(&asked, Ok(HOLDER));
        assert_eq!(*asked.answer.borrow(), Some(Ok(HOLDER)));
        tokio::time::advance(Duration::from_millis(CREDENTIALS_KEPT_MS - 1_001)).await;
        assert!(is_accepted(&credentials, 1));
        tokio::time::advance(Duration::from_millis(1)).await;
        let again = question(&credentials, 1);
        credentials.answered(&again, Err(unreachable()));
        assert!(credentials.table.lock().accepted.contains_key(&hash(1)), "it was valid");
        let again = question(&credentials, 1);
        credentials.answered(&again, Err(auth::invalid()));
        assert!(credentials.table.lock().accepted.is_empty(), "refusals are not remembered");
        credentials.answered(&question(&credentials, 1), Ok(HOLDER));
        credentials.forget(hash(1));
        assert!(!is_accepted(&credentials, 1), "a server has refused a call with it");
    }

    #[tokio::test]
    async fn a_question_that_was_dropped_is_asked_again() {
        let credentials = Credentials::default();
        drop(question(&credentials, 1));
        let again = question(&credentials, 1);
        let Ok(Known::Open(mut answer)) = credentials.look(hash(1), &from(1)) else { panic!("it is open") };
        drop(again);
        assert!(answer.wait_for(Option::is_some).await.is_err(), "nobody waits for ever");
    }

    #[tokio::test]
    async fn credentials_that_were_never_accepted_have_a_part_of_the_questions() {
        let credentials = Credentials::default();
        credentials.answered(&question(&credentials, 0), Ok(HOLDER));
        credentials.table.lock().accepted.values_mut().for_each(|accepted| accepted.until = Instant::now());
        let mut open = Vec::new();
        let mut asks = |address: u8, first: usize| {
            let begun = open.len();
            for number in first.. {
                match credentials.look(hash(number), &from(address)) {
                    Ok(Known::Unknown(question)) => open.push(question),
                    Ok(_) => panic!("{number} is known"),
                    Err(refusal) => {
                        assert_eq!(refusal.reason(), Reason::QuotaExceeded);
                        break;
                    }
                }
            }
            open.len() - begun
        };
        let of_address = CREDENTIAL_QUESTIONS_MAX / CREDENTIAL_ADDRESS_PART;
        let unproven = CREDENTIAL_QUESTIONS_MAX / CREDENTIAL_UNPROVEN_PART;
        assert_eq!(asks(1, 1_000), of_address);
        let others = (2..100).map(|address| asks(address, usize::from(address) * 10_000)).sum::<usize>();
        assert_eq!(others, unproven - of_address);
        let known = question(&credentials, 0);
        drop((open, known));
        assert_eq!(credentials.questions.available_permits(), CREDENTIAL_QUESTIONS_MAX);
        assert_eq!(credentials.unproven.available_permits(), unproven);
    }

    #[tokio::test]
    async fn accepted_credentials_that_are_remembered_have_a_limit() {
        let credentials = Credentials::default();
        for number in 0..=CREDENTIALS_KEPT_MAX {
            credentials.answered(&question(&credentials, number), Ok(HOLDER));
        }
        let table = credentials.table.lock();
        assert_eq!((table.accepted.len(), table.open.len()), (CREDENTIALS_KEPT_MAX, 0));
    }

    #[test]
    fn nobody_is_asked_about_what_has_not_the_form_of_a_credential() {
        let check = |value: &'static str| {
            check_form(&HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(value))]))
        };
        assert_eq!(check_form(&HeaderMap::new()), Err(auth::invalid()));
        for value in ["", "Bearer", "Bearer swk_any", "Bearer swr_any", "Basic swk_any"] {
            assert_eq!(check(value), Err(auth::invalid()), "{value}");
        }
        let key = format!("Bearer {}", auth::NewKey::draw().secret);
        let value = HeaderValue::try_from(key).expect("a header");
        assert_eq!(check_form(&HeaderMap::from_iter([(AUTHORIZATION, value)])), Ok(()));
    }
}
