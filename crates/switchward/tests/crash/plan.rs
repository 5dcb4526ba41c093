//! What callers ask for: the deploy gate, sessions of it, and the requests of each, the same at every repetition.

use switchward_api::v1;

use crate::front::Live;
use crate::tenants::{Tenant, pair};

/// The deploy gate.
pub(crate) const DEFINITION: &str = include_str!("../../../../tests/gallery/deploy-gate/deploy-gate.json");
/// Its name.
pub(crate) const NAME: &str = "deploy-gate";
/// Its questions, each of which goes on with yes.
pub(crate) const STATES: [&str; 3] = ["env-check", "migration-check", "traffic-check"];
/// Acknowledged steps of a session that was carried out: its start and its answers.
pub(crate) const STEPS: usize = 1 + STATES.len();

/// Deploys a definition in both tenants.
pub(crate) async fn deploy(live: &Live, content: &str) -> anyhow::Result<()> {
    let file = v1::DefinitionFile { path: "definition.json".into(), content: content.to_owned().into() };
    let request = v1::DeployDefinitionRequest { files: vec![file], ..Default::default() };
    for tenant in Tenant::BOTH {
        let person = live.person(tenant);
        person.definitions().deploy_definition(person.request(request.clone())).await?;
    }
    Ok(())
}

/// How long the notes beside answers are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Notes {
    /// Bytes of a long one.
    pub(crate) long_bytes: usize,
    /// The sessions whose number in their tenant is a multiple of this have long ones; the others' are a sentence.
    pub(crate) long_each: u64,
}

/// One session, identified by its test and its number; one of the other tenant has the same business key and the same
/// request ids.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) number: u64,
    pub(crate) notes: Notes,
}

impl Plan {
    fn request_id(&self, step: usize) -> String {
        format!("{:x}-{}-{step}", self.seed, pair(self.number))
    }

    /// A business key, which every other session of a tenant has.
    pub(crate) fn key(&self) -> String {
        if pair(self.number).is_multiple_of(2) {
            format!("release-{:x}-{}", self.seed, pair(self.number))
        } else {
            String::new()
        }
    }

    pub(crate) fn start(&self) -> v1::StartSessionRequest {
        let labels = [("team", "payments"), ("ring", "canary"), ("service", "ledger")];
        v1::StartSessionRequest {
            definition: NAME.into(),
            session_id: self.key(),
            labels: labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            request_id: self.request_id(0),
            ..Default::default()
        }
    }

    pub(crate) fn note(&self, at: usize) -> String {
        let sentence =
            format!("{} {} of {}: the change was rehearsed on staging. ", STATES[at], self.number, self.seed);
        let long = pair(self.number).is_multiple_of(self.notes.long_each);
        let bytes = if long { self.notes.long_bytes } else { sentence.len() };
        sentence.chars().cycle().take(bytes).collect()
    }

    pub(crate) fn answer(&self, session: &str, at: usize) -> v1::AnswerCheckpointRequest {
        v1::AnswerCheckpointRequest {
            name: session.into(),
            state: STATES[at].into(),
            answer: "yes".into(),
            note: self.note(at),
            address: None,
            expected_sequence: None,
            request_id: self.request_id(1 + at),
        }
    }
}
