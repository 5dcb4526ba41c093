//! The side of a delivery process: asks servers whether a job is wanted, and reports its outcome to them.

use async_trait::async_trait;
use backon::Retryable as _;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use switchward_delivery::worker::{AnswerError, Answers, DeliveryJob, JobHead, Outcome};
use switchward_gateway::proxy::Proxy;
use switchward_machine::{Bucket, TenantId};
use switchward_state::{OutboxScope, ViewError};

use super::form::{Answer, Question, decode, encode};
use crate::answers::pauses;
use crate::rules::Names;

/// Tenants whose names are remembered. Beyond it another one is forgotten; it is known again with its next job.
const NAMES_MAX: usize = 100_000;

/// Asks the servers of a cluster.
#[async_trait]
pub trait AskServers: Send + Sync + 'static {
    /// Asks one server after the other until one answers: first the one that probably leads the shard of this bucket, or
    /// the catalogue if there is none. A question that is asked again does no harm.
    ///
    /// # Errors
    /// No server has answered; the text says why the last one did not.
    async fn ask(&self, bucket: Option<Bucket>, question: Bytes) -> Result<Bytes, String>;
}

#[async_trait]
impl AskServers for Proxy {
    async fn ask(&self, bucket: Option<Bucket>, question: Bytes) -> Result<Bytes, String> {
        self.ask_about_delivery(bucket, question).await
    }
}

/// The servers, as the worker of a delivery process sees them. Cheap to clone.
#[derive(Clone)]
pub struct FromServers(Arc<Inner>);

struct Inner {
    servers: Box<dyn AskServers>,
    /// The names of tenants whose jobs were wanted.
    names: Mutex<BTreeMap<TenantId, String>>,
}

impl FromServers {
    /// Makes no connection before the first question.
    #[must_use]
    pub fn new(servers: impl AskServers) -> Self {
        Self(Arc::new(Inner { servers: Box::new(servers), names: Mutex::default() }))
    }

    /// Asks until a server answers whose leader can, as often as outcomes are offered; `None` if none does.
    async fn ask(&self, job: &JobHead, question: &Question) -> Option<Answer> {
        let bucket = match OutboxScope::from(job.session) {
            OutboxScope::Tenant => None,
            OutboxScope::Session(session) => Some(session.bucket()),
        };
        let bytes = encode(question);
        let ask = || async {
            match decode(&self.0.servers.ask(bucket, bytes.clone()).await?)? {
                Answer::Later => Err("the leader cannot answer now".to_owned()),
                answer @ (Answer::Wanted { .. } | Answer::Accepted | Answer::Gone) => Ok(answer),
            }
        };
        let answer = ask.retry(pauses()).await;
        answer
            .inspect_err(
                |error| tracing::warn!(job = %job.name(), error, "no server has answered about a job"),
            )
            .ok()
    }

    fn know(&self, tenant: TenantId, name: String) {
        let mut names = self.0.names.lock();
        if names.len() >= NAMES_MAX && !names.contains_key(&tenant) {
            names.pop_first();
        }
        names.insert(tenant, name);
    }
}

#[async_trait]
impl Answers for FromServers {
    /// If no server can say it, the job is not done: its shard puts it on the bus again.
    async fn wanted(&self, job: &DeliveryJob) -> bool {
        let head = job.head();
        match self.ask(&head, &Question::Wanted(head.clone())).await {
            Some(Answer::Wanted { tenant }) => {
                tenant.into_iter().for_each(|name| self.know(head.tenant, name));
                true
            }
            Some(Answer::Accepted | Answer::Gone | Answer::Later) | None => false,
        }
    }

    async fn answer(&self, job: &DeliveryJob, outcome: Outcome) -> Result<(), AnswerError> {
        let head = job.head();
        let report = Question::Report { job: head.clone(), outcome: outcome.into() };
        match self.ask(&head, &report).await {
            Some(Answer::Accepted) => Ok(()),
            Some(Answer::Gone) => Err(AnswerError::Gone),
            Some(Answer::Wanted { .. } | Answer::Later) | None => Err(AnswerError::Later),
        }
    }
}

impl Names for FromServers {
    fn name_of(&self, tenant: TenantId) -> Result<Option<String>, ViewError> {
        Ok(self.0.names.lock().get(&tenant).cloned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use switchward_delivery::channels::HttpRequest;
    use switchward_delivery::worker::{Delivered, JobInput, Origin};
    use switchward_machine::{OpenId, SessionId};

    use super::*;

    /// Answers in turn, the last one for ever, and keeps the questions.
    struct Scripted {
        answers: Mutex<Vec<Result<Answer, String>>>,
        asked: Questions,
    }

    #[async_trait]
    impl AskServers for Scripted {
        async fn ask(&self, bucket: Option<Bucket>, question: Bytes) -> Result<Bytes, String> {
            self.asked.lock().push((bucket, decode(&question)?));
            let mut answers = self.answers.lock();
            let next = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
            next.map(|answer| encode(&answer))
        }
    }

    type Questions = Arc<Mutex<Vec<(Option<Bucket>, Question)>>>;

    fn servers(answers: &[Result<Answer, String>]) -> (FromServers, Questions) {
        let asked = Questions::default();
        let scripted = Scripted { answers: Mutex::new(answers.to_vec()), asked: Arc::clone(&asked) };
        (FromServers::new(scripted), asked)
    }

    fn job(session: SessionId) -> DeliveryJob {
        let input = json!({ "method": "GET", "url": "https://a.example/" });
        DeliveryJob {
            tenant: TenantId(7),
            session,
            origin: Origin::Work { item: OpenId(3), fence: 5 },
            input: JobInput::Http(HttpRequest::read(&input).expect("the request is readable")),
            ttl_ms: 1_000,
            idempotency_key: "a".to_owned(),
            traceparent: None,
        }
    }

    const SESSION: SessionId = SessionId([0xab; 16]);

    #[tokio::test(start_paused = true)]
    async fn a_job_is_done_if_a_server_wants_it_and_only_then_is_its_tenant_known() {
        let wanted = || Ok(Answer::Wanted { tenant: Some("acme".to_owned()) });
        let (from, asked) = servers(&[Err("no server".to_owned()), Ok(Answer::Later), wanted()]);
        assert_eq!(from.name_of(TenantId(7)), Ok(None));
        assert!(from.wanted(&job(SESSION)).await);
        assert_eq!(from.name_of(TenantId(7)), Ok(Some("acme".to_owned())));
        let asked = std::mem::take(&mut *asked.lock());
        assert_eq!(asked.len(), 3);
        assert!(asked.iter().all(|(bucket, _)| *bucket == Some(SESSION.bucket())), "{asked:?}");
        for answer in [Ok(Answer::Gone), Err("no server".to_owned()), Ok(Answer::Later)] {
            let (from, _) = servers(&[answer]);
            assert!(!from.wanted(&job(SESSION)).await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_outcome_is_offered_until_a_server_takes_it_or_nobody_waits_for_it() {
        let outcome = || Ok(Delivered::Webhook { status: 200 });
        let lost = || Err("no server".to_owned());
        for (answers, expected) in [
            (vec![lost(), Ok(Answer::Later), Ok(Answer::Accepted)], Ok(())),
            (vec![lost(), Ok(Answer::Gone)], Err(AnswerError::Gone)),
            (vec![lost()], Err(AnswerError::Later)),
            (vec![Ok(Answer::Later)], Err(AnswerError::Later)),
        ] {
            let (from, asked) = servers(&answers);
            assert_eq!(from.answer(&job(SESSION), outcome()).await, expected, "{answers:?}");
            assert!(asked.lock().len() >= answers.len());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_about_a_tenant_itself_is_asked_of_the_catalogue() {
        let (from, asked) = servers(&[Ok(Answer::Gone)]);
        from.wanted(&job(SessionId([0; 16]))).await;
        assert_eq!(asked.lock()[0].0, None);
    }

    #[test]
    fn no_more_names_are_remembered_than_the_limit_says() {
        let (from, _) = servers(&[Ok(Answer::Gone)]);
        for tenant in 0..=u32::try_from(NAMES_MAX).expect("a small number") {
            from.know(TenantId(tenant), "a".to_owned());
        }
        assert_eq!(from.0.names.lock().len(), NAMES_MAX);
    }
}
