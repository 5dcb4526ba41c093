//! The configuration of the delivery role.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use switchward_delivery::Secret;
use switchward_delivery::guard::{Egress, HostRule, Target};
use switchward_delivery::limits::{MODEL_CALLS_MAX, PORTS};
use switchward_delivery::model::{Config as Endpoint, Provider};
use switchward_messages::cli::dev::{NO_MODEL, model_at};
use switchward_outbound::TenantRules;

/// The default number of tokens of a model's answer.
const OUTPUT_TOKENS: u32 = 4_096;
/// The default deadline of a model call, seconds.
const QUESTION_SECONDS: u64 = 60;
/// The default number of concurrent model calls.
const QUESTIONS: usize = 8;
/// How long after each failed attempt the next one is made, milliseconds: about 32 hours in all, as webhooks are retried.
const WAITS_MS: [u64; 9] =
    [5_000, 60_000, 5 * 60_000, 30 * 60_000, 2 * HOUR_MS, 5 * HOUR_MS, 8 * HOUR_MS, 8 * HOUR_MS, 8 * HOUR_MS];
const HOUR_MS: u64 = 3_600_000;
/// The most retries that the configuration may set.
const RETRIES_MAX: usize = 50;
/// The longest wait between two of them, seconds: a week.
const RETRY_SECONDS_MAX: u64 = 7 * 24 * 3_600;

/// What the server does by itself outside, and what it may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DeliveryConfig {
    /// Whether this server does it; otherwise the work waits for workers.
    pub(crate) enabled: bool,
    /// Whether definitions may ask over http without TLS.
    pub(crate) allow_http: bool,
    /// Whether definitions may ask this machine itself.
    pub(crate) allow_loopback: bool,
    /// The ports that may be called; on this machine any port if loopback is allowed.
    pub(crate) ports: Vec<u16>,
    /// The only hosts that may be asked, like `api.example.com` or `*.example.com`; absent: any public one.
    pub(crate) allowed_hosts: Option<Vec<String>>,
    /// The same for single tenants, by name, instead of the above.
    pub(crate) tenants: BTreeMap<String, Vec<String>>,
    /// How long after each failed attempt to deliver a mail or a message to a URL the next one is made, seconds; after the
    /// last it is a dead letter. Absent: ten attempts within about 32 hours.
    pub(crate) retry_seconds: Option<Vec<u64>>,
    /// Effects of one shard that wait to go out; a fifth of the capacity is reserved for what ends work, and what begins
    /// something new is refused before it. Absent: 100,000.
    pub(crate) outbox_max: Option<usize>,
    /// The model that reads and judges; absent: workers do.
    pub(crate) model: Option<ModelConfig>,
}

impl Default for DeliveryConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            allow_http: false,
            allow_loopback: false,
            ports: PORTS.to_vec(),
            allowed_hosts: None,
            tenants: BTreeMap::new(),
            retry_seconds: None,
            outbox_max: None,
            model: None,
        }
    }
}

impl DeliveryConfig {
    /// Checks whether a worker can start with this.
    ///
    /// # Errors
    /// The model's key or address is invalid.
    pub(crate) fn check_worker(&self) -> anyhow::Result<()> {
        self.model.iter().try_for_each(|model| model.read().map(drop))
    }

    /// Says which model reads and judges.
    pub(crate) fn model_in_words(&self) -> String {
        match self.model.as_ref().filter(|_| self.enabled) {
            Some(model) => model_at(&model.name, &model.base_url),
            None => NO_MODEL.to_owned(),
        }
    }

    /// How long after each failed attempt the next one is made, milliseconds.
    ///
    /// # Errors
    /// There are more attempts, or longer waits, than there may be.
    pub(crate) fn waits_ms(&self) -> anyhow::Result<Vec<u64>> {
        let Some(waits) = &self.retry_seconds else { return Ok(WAITS_MS.to_vec()) };
        anyhow::ensure!(
            waits.len() <= RETRIES_MAX && waits.iter().all(|wait| *wait <= RETRY_SECONDS_MAX),
            "delivery.retry_seconds: at most {RETRIES_MAX} waits of at most {RETRY_SECONDS_MAX} seconds"
        );
        Ok(waits.iter().map(|wait| wait * 1_000).collect())
    }

    /// What each tenant may reach.
    ///
    /// # Errors
    /// A host is invalid.
    pub(super) fn rules(&self) -> anyhow::Result<TenantRules> {
        let of_tenant =
            self.tenants.iter().map(|(name, hosts)| Ok((name.clone(), self.egress(Some(hosts))?)));
        let of_tenant = of_tenant.collect::<anyhow::Result<_>>()?;
        Ok(TenantRules { of_all: self.egress(self.allowed_hosts.as_deref())?, of_tenant })
    }

    fn egress(&self, hosts: Option<&[String]>) -> anyhow::Result<Egress> {
        let rule = |host: &String| {
            HostRule::read(host).with_context(|| {
                format!("delivery: {host:?} is neither a host nor a pattern like *.example.com")
            })
        };
        let rules = |hosts: &[String]| hosts.iter().map(rule).collect::<anyhow::Result<Vec<_>>>();
        Ok(Egress {
            allow_loopback: self.allow_loopback,
            allow_private: false,
            allow_http: self.allow_http,
            ports: self.ports.clone(),
            allowed_hosts: hosts.map(rules).transpose()?,
        })
    }
}

/// A model endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelConfig {
    /// How it wants to be asked: `anthropic` or `openai`.
    pub(crate) provider: ModelProvider,
    /// What stands before `/v1/`.
    pub(crate) base_url: String,
    /// A file that holds its key; absent: it wants none.
    #[serde(default)]
    pub(crate) key_file: Option<PathBuf>,
    /// The endpoint's model for models that definitions name otherwise, or not at all.
    pub(crate) name: String,
    /// From the names of models in definitions to the endpoint's.
    #[serde(default)]
    pub(crate) models: BTreeMap<String, String>,
    /// Whether it may be asked on this machine, and over http without TLS.
    #[serde(default)]
    pub(crate) local: bool,
}

/// How a model endpoint wants to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", try_from = "String")]
pub(crate) enum ModelProvider {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's chat completions, which many servers speak.
    OpenAi,
}

impl TryFrom<String> for ModelProvider {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        match word.as_str() {
            "anthropic" => Ok(Self::Anthropic),
            "openai" => Ok(Self::OpenAi),
            _ => {
                let message = format!("the provider of a model must be anthropic or openai, not {word:?}");
                Err(message)
            }
        }
    }
}

impl ModelConfig {
    /// The endpoint, with its key.
    ///
    /// # Errors
    /// The key cannot be read, or the address may not be asked as far as can be seen in it.
    pub(super) fn read(&self) -> anyhow::Result<Endpoint> {
        self.endpoint().with_context(|| format!("the model {} cannot be used", self.name))
    }

    fn endpoint(&self) -> anyhow::Result<Endpoint> {
        let key = match &self.key_file {
            Some(file) => std::fs::read_to_string(file)
                .with_context(|| format!("delivery.model.key_file: failed to read {}", file.display()))?,
            None => String::new(),
        };
        let egress = Egress {
            allow_loopback: self.local,
            allow_private: false,
            allow_http: self.local,
            ports: port_of(&self.base_url).into_iter().chain(PORTS).collect(),
            allowed_hosts: None,
        };
        Target::read(&self.base_url, &egress).context("delivery.model.base_url")?;
        Ok(Endpoint {
            provider: match self.provider {
                ModelProvider::Anthropic => Provider::Anthropic,
                ModelProvider::OpenAi => Provider::OpenAi,
            },
            base_url: self.base_url.clone(),
            key: Secret::new(key.trim().to_owned()),
            models: Some(self.models.clone()),
            default_model: self.name.clone(),
            max_output_tokens: OUTPUT_TOKENS,
            deadline: Duration::from_secs(QUESTION_SECONDS),
            concurrent_calls: QUESTIONS.min(MODEL_CALLS_MAX),
            egress: Some(egress),
        })
    }
}

/// The port that an address names. Nothing else of the address is checked here.
pub(crate) fn port_of(url: &str) -> Option<u16> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?;
    authority.rsplit_once(':').and_then(|(_, port)| port.parse().ok())
}
