//! Questions to a language model, whose answers must match the requested schema.
//!
//! A question has three parts that never mix: our own instructions, those of the definition's author, and the data, which is
//! one block of JSON that its content cannot close. An answer is JSON of the question's schema or it is a failure; it is
//! only a proposal, and no question offers a port that approves.

mod anthropic;
mod openai;
mod question;
mod schema;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use switchward_state::delivery::ModelProblem;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

pub use question::{Classify, Extract, Intent, Judge, Kind, Question};

use crate::guard::Egress;
use crate::http::{Client, Request, Response};
use crate::limits::{DEADLINE_MS_MAX, MODEL_CALLS_MAX, MODEL_OUTPUT_TOKENS_MAX};
use crate::{DeliveryReason, Failed, Secret};

/// The API that an endpoint has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// `POST {base}/v1/messages`, answered by a tool call.
    Anthropic,
    /// `POST {base}/v1/chat/completions`, answered in a JSON Schema. Many other servers have this API.
    OpenAi,
}

/// A model endpoint.
#[derive(Debug, Clone)]
pub struct Config {
    /// The endpoint's API.
    pub provider: Provider,
    /// What precedes `/v1/`, such as `https://api.example.org`.
    pub base_url: String,
    /// The credential.
    pub key: Secret,
    /// Maps the model names of definitions to the endpoint's; unknown names get `default_model`. Without a map, names are
    /// sent as they are.
    pub models: Option<BTreeMap<String, String>>,
    /// The endpoint's name of the model for questions that name none.
    pub default_model: String,
    /// Tokens that an answer may have, at most [`MODEL_OUTPUT_TOKENS_MAX`].
    pub max_output_tokens: u32,
    /// How long a question may take, waiting for its turn included.
    pub deadline: Duration,
    /// Questions at one time, at most [`MODEL_CALLS_MAX`]. Beyond it a question waits.
    pub concurrent_calls: usize,
    /// The rules for the endpoint's own address; `None` for the rules of the requesting tenant.
    pub egress: Option<Egress>,
}

/// What is sent for a question, independent of the provider.
struct Prompt {
    model: String,
    max_output_tokens: u32,
    /// Our own instructions and the author's.
    system: String,
    /// The data, as a block.
    user: String,
    /// The schema of the answer.
    schema: Value,
    /// Whether every part of the schema has a type, which strict answers require.
    strict: bool,
}

/// A client of a model endpoint. Cheap to clone.
#[derive(Clone)]
pub struct Model {
    client: Client,
    config: Arc<Config>,
    turns: Arc<Semaphore>,
}

impl Model {
    /// Creates a client of this endpoint.
    #[must_use]
    pub fn new(client: Client, config: Config) -> Self {
        let turns = Arc::new(Semaphore::new(calls(&config)));
        Self { client, config: Arc::new(config), turns }
    }

    /// Returns how many questions it asks at one time.
    #[must_use]
    pub fn concurrent_calls(&self) -> usize {
        calls(&self.config)
    }

    /// Asks a question for a tenant. The result has the form that the question's kind describes, and meets `result_schema`.
    /// Asking twice may give two different answers.
    ///
    /// # Errors
    ///
    /// [`Failed`] if the question exceeds a limit, the endpoint cannot be reached or does not answer, or its answer does not
    /// match the schema.
    pub async fn perform(
        &self,
        tenant: u32,
        question: &Question,
        result_schema: &Value,
        deadline: Duration,
    ) -> Result<Value, Failed> {
        question.check()?;
        let deadline = deadline.min(self.config.deadline).min(Duration::from_millis(DEADLINE_MS_MAX));
        let begun = Instant::now();
        let late = || Failed::new(DeliveryReason::Timeout, ModelProblem::Busy);
        let turn = timeout(deadline, self.turns.acquire()).await.map_err(|_| late())?;
        let _turn = turn.map_err(|_| late())?;
        let answer = self.ask(tenant, question, deadline.saturating_sub(begun.elapsed())).await?;
        let result = question.result(answer)?;
        if schema::holds(result_schema, &result) {
            Ok(result)
        } else {
            Err(Failed::new(DeliveryReason::ModelAnswerInvalid, ModelProblem::ResultSchema))
        }
    }

    async fn ask(&self, tenant: u32, question: &Question, deadline: Duration) -> Result<Value, Failed> {
        let prompt = self.prompt(question)?;
        let request = self.request(&prompt, deadline);
        let response = match &self.config.egress {
            Some(egress) => self.client.send_under(egress, &request).await?,
            None => self.client.send(tenant, &request).await?,
        };
        check_status(&response)?;
        let answer = match self.config.provider {
            Provider::Anthropic => anthropic::answer(response.body)?,
            Provider::OpenAi => openai::answer(&response.body)?,
        };
        if schema::holds(&prompt.schema, &answer) { Ok(answer) } else { Err(not_as_asked()) }
    }

    fn prompt(&self, question: &Question) -> Result<Prompt, Failed> {
        let schema = question.schema();
        Ok(Prompt {
            model: self.model_for(question.model()),
            max_output_tokens: self.config.max_output_tokens.clamp(1, MODEL_OUTPUT_TOKENS_MAX),
            system: question.system(),
            user: question.block()?,
            strict: schema::is_strict(&schema),
            schema,
        })
    }

    fn model_for(&self, named: Option<&str>) -> String {
        let found = match (named, &self.config.models) {
            (None, _) => None,
            (Some(name), None) => Some(name),
            (Some(name), Some(models)) => models.get(name).map(String::as_str),
        };
        found.unwrap_or(&self.config.default_model).to_owned()
    }

    fn request(&self, prompt: &Prompt, deadline: Duration) -> Request {
        let key = self.config.key.reveal();
        let (path, headers, body) = match self.config.provider {
            Provider::Anthropic => ("/v1/messages", anthropic::headers(key), anthropic::body(prompt)),
            Provider::OpenAi => ("/v1/chat/completions", openai::headers(key), openai::body(prompt)),
        };
        let url = format!("{}{path}", self.config.base_url.trim_end_matches('/'));
        Request { method: "POST".to_owned(), url, headers, body: Some(body), deadline }
    }
}

fn calls(config: &Config) -> usize {
    config.concurrent_calls.clamp(1, MODEL_CALLS_MAX)
}

/// Maps a status other than 200 to a reason. Omits the endpoint's own message: it may repeat what was sent.
fn check_status(response: &Response) -> Result<(), Failed> {
    let status = response.status;
    let reason = match status {
        200 => return Ok(()),
        401 | 403 => DeliveryReason::ModelUnauthorized,
        429 => DeliveryReason::ModelLimited,
        408 | 500..=599 => DeliveryReason::ModelUnavailable,
        _ => DeliveryReason::ModelRejected,
    };
    let error = error_type(&response.body).map(str::to_owned);
    let detail = ModelProblem::Status { status, error }.into();
    Err(Failed { reason, detail, retry_after: response.retry_after })
}

/// Returns the endpoint's error type, if it is a plain word.
fn error_type(body: &Value) -> Option<&str> {
    let word = body.get("error")?.get("type")?.as_str()?;
    let plain = word.len() <= 64 && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    plain.then_some(word)
}

fn not_as_asked() -> Failed {
    Failed::new(DeliveryReason::ModelAnswerInvalid, ModelProblem::AnswerForm)
}
