//! The server's side: answers what delivery processes ask.

use async_trait::async_trait;
use bytes::Bytes;
use switchward_delivery::worker::{AnswerError, JobChannel, JobHead, Origin};
use switchward_gateway::proxy::AnswersDelivery;
use switchward_machine::{Channel, WorkKind};
use switchward_query::outgoing::ShardView;
use switchward_shard::Cluster;
use switchward_state::ViewError;
use switchward_state::delivery::EffectBody;
use switchward_state::work::SERVER_WORKER;

use super::form::{Answer, Question, SentOutcome, decode, encode};
use crate::answers::{ToShards, still_wanted};
use crate::rules::Names as _;

/// Answers what delivery processes ask about the jobs of a cluster.
pub struct DeliveryServer {
    shards: ToShards,
    cluster: Cluster,
}

impl DeliveryServer {
    /// Answers for this cluster. After each failed attempt to deliver an effect the next one is made after the next of these
    /// waits, milliseconds; after the last, an effect that fails again is a dead letter.
    #[must_use]
    pub fn new(cluster: Cluster, retry_waits_ms: Vec<u64>) -> Self {
        Self { shards: ToShards::new(cluster.clone(), retry_waits_ms), cluster }
    }

    async fn wanted(&self, job: &JobHead) -> Answer {
        let Ok(view) = self.shards.read(job).await else { return Answer::Later };
        // Rows that cannot be read end the server elsewhere.
        let wanted = is_of(&view, job).and_then(|is_of| Ok(is_of && still_wanted(&view, job)?));
        match (wanted, self.cluster.name_of(job.tenant)) {
            (Ok(true), Ok(tenant)) => Answer::Wanted { tenant },
            (Ok(false), _) => Answer::Gone,
            (Err(_), _) | (_, Err(_)) => Answer::Later,
        }
    }

    async fn report(&self, job: &JobHead, outcome: SentOutcome) -> Answer {
        if let Origin::Ping { .. } = job.origin {
            return Answer::Gone;
        }
        let Ok(view) = self.shards.read(job).await else { return Answer::Later };
        match is_of(&view, job) {
            Ok(true) => {}
            Ok(false) => return Answer::Gone,
            Err(_) => return Answer::Later,
        }
        drop(view);
        match self.shards.offer(job, outcome.into()).await {
            Ok(()) => Answer::Accepted,
            Err(AnswerError::Gone) => Answer::Gone,
            Err(AnswerError::Later) => Answer::Later,
        }
    }
}

#[async_trait]
impl AnswersDelivery for DeliveryServer {
    async fn answer(&self, question: Bytes) -> Result<Bytes, String> {
        let answer = match decode(&question)? {
            Question::Wanted(job) => self.wanted(&job).await,
            Question::Report { job, outcome } => self.report(&job, outcome).await,
        };
        Ok(encode(&answer))
    }
}

/// Returns true if a job is of an effect or a work item that relays put on the bus, on the channel that it is for. What
/// settles costs, notifies or waits for workers is never a job, whatever a delivery process says.
fn is_of(view: &ShardView, job: &JobHead) -> Result<bool, ViewError> {
    match job.origin {
        Origin::Work { item, .. } => {
            let work = view.work(job.tenant, job.session, item)?;
            Ok(work.is_some_and(|work| {
                let leased = work.owed.lease.as_ref().is_some_and(|lease| lease.worker == SERVER_WORKER);
                leased && channel_of(work.kind).as_ref() == Some(&job.channel)
            }))
        }
        Origin::Effect { number, .. } => {
            let effect = view.effect_numbered(job.tenant, job.session, number)?;
            Ok(effect.is_some_and(|effect| channel_of_effect(&effect.body).as_ref() == Some(&job.channel)))
        }
        // The server that waits for its answer does so on the bus; that the endpoint exists is what makes it wanted.
        Origin::Ping { .. } => Ok(true),
    }
}

/// The channel of work that servers do by themselves; `None` for the work of workers.
fn channel_of(kind: WorkKind) -> Option<JobChannel> {
    match kind {
        WorkKind::Http => Some(JobChannel::Http),
        WorkKind::Extract | WorkKind::Judge | WorkKind::Classify | WorkKind::Intent => {
            Some(JobChannel::Model)
        }
        WorkKind::Agent | WorkKind::Delegate | WorkKind::Tool | WorkKind::Interaction | WorkKind::Script => {
            None
        }
    }
}

/// The channel by which an effect leaves the cluster; `None` if it does not.
fn channel_of_effect(body: &EffectBody) -> Option<JobChannel> {
    match body {
        EffectBody::Message { channel, .. } => match channel {
            Channel::Chat => None,
            Channel::Email => Some(JobChannel::Mail),
            Channel::Webhook => Some(JobChannel::Message),
        },
        EffectBody::Publish { endpoint, .. } => Some(JobChannel::Event { endpoint: endpoint.clone() }),
        EffectBody::Notice { .. } | EffectBody::Confirm { .. } | EffectBody::Settle { .. } => None,
    }
}
