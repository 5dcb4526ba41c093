//! Two tenants with keys of every role and resources of each kind.

use prost::Message;
use std::collections::BTreeMap;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use switchward_api::v1;
use switchward_gateway::{decision::SignIn, mail::QuarantineStore as _};
use switchward_machine::TenantId;
use switchward_state::limits::ENDPOINTS_MAX;
use switchward_testkit::Pages;
use tonic::Status;

use crate::node::Node;

/// A process with every kind of answer and rule, and with a budget.
pub(crate) const RELEASE: &str = r#"{
  "name": "release",
  "initial": "look",
  "initial_prompt": "Look before you go.",
  "session_budget_usd": 10,
  "states": {
    "look": {
      "question": "Is it ready?",
      "answers": {
        "go": { "next": "check" },
        "review": { "next": "check", "action": "notify_human" },
        "stop": { "next": null, "action": "block" }
      }
    },
    "check": {
      "question": "Did it work?",
      "answers": { "back": { "next": "look" }, "done": { "next": null, "action": "complete" } }
    }
  },
  "policy": {
    "role": "agent",
    "allow": [
      { "capability": "bash", "rate_limit": { "max_calls": 5000, "window_seconds": 3600 } },
      { "capability": "mcp:web:*", "budget_limit": { "max_usd": 500, "period": "daily" } }
    ],
    "ask": [{ "capability": "mcp:filesystem:write_file" }],
    "deny": [{ "capability": "mcp:shell:rm" }]
  }
}"#;

/// A conversation, in which the agent asks for an order and says goodbye.
pub(crate) const TALK: &str = r#"{
  "name": "talk",
  "states": [
    {
      "name": "ask",
      "type": "conversation",
      "instructions": "Ask for the order of {gathered.user}.",
      "required_fields": ["order"],
      "retry": { "max_attempts": 5 }
    },
    { "name": "bye", "type": "output", "template": "Goodbye, {{ gathered_data.user }}.", "target": "conversation" }
  ],
  "transitions": [
    { "from": "ask", "to": "bye", "guards": [{ "type": "all_required_answered" }] },
    {
      "from": "ask",
      "to": "bye",
      "guards": [
        { "type": "external_event", "config": { "event_key": "paid" } },
        { "type": "data_equals", "config": { "key": "order", "value": "none" } }
      ]
    }
  ]
}"#;

/// A workflow whose first state needs a worker.
pub(crate) const CHORE: &str = r#"{
  "name": "chore",
  "states": [
    { "name": "do", "type": "action", "instructions": "Do {gathered.what}." },
    { "name": "done", "type": "conversation" }
  ],
  "transitions": [{ "from": "do", "to": "done", "guards": [{ "type": "always" }] }]
}"#;

/// The roles of keys, by name and as the API's enum.
pub(crate) const ROLES: [(&str, v1::KeyRole); 7] = [
    ("integration", v1::KeyRole::Integration),
    ("agent", v1::KeyRole::Agent),
    ("author", v1::KeyRole::Author),
    ("approver", v1::KeyRole::Approver),
    ("operator", v1::KeyRole::Operator),
    ("worker", v1::KeyRole::Worker),
    ("admin", v1::KeyRole::Admin),
];

/// A tenant, with a key of each role.
pub(crate) struct Tenant {
    pub(crate) name: &'static str,
    keys: BTreeMap<&'static str, String>,
    /// A session that waits, its business key and its open gate.
    pub(crate) session: v1::Session,
    pub(crate) gate: String,
    /// A definition that no other tenant has.
    pub(crate) only: &'static str,
    /// The name of its agent's key.
    pub(crate) agent_key: String,
}

impl Tenant {
    /// The secret of the key of a role.
    pub(crate) fn key(&self, role: &str) -> &str {
        &self.keys[role]
    }
}

/// See the module.
pub(crate) struct Harness {
    pub(crate) node: Node,
    pub(crate) acme: Tenant,
    pub(crate) globex: Tenant,
    count: AtomicU64,
}

impl Harness {
    pub(crate) async fn start() -> Self {
        Self::signing_in(None).await
    }

    /// The same, with pages that sign people in with `sign_in`, if given.
    pub(crate) async fn signing_in(sign_in: Option<Arc<dyn SignIn>>) -> Self {
        Self::over(Node::start(sign_in).await).await
    }

    /// The same over a node that has no tenants yet.
    pub(crate) async fn over(node: Node) -> Self {
        let first = node.first_tenant("acme").await;
        let acme = seed(&node, "acme", "only-acme", &first).await;
        let request =
            v1::CreateTenantRequest { tenant_id: "globex".into(), ..v1::CreateTenantRequest::default() };
        let made: v1::CreateTenantResponse = ask(&node, &first, "CreateTenant", &request).await;
        let globex = seed(&node, "globex", "only-globex", &made.admin_secret).await;
        Self { node, acme, globex, count: AtomicU64::new(0) }
    }

    /// The same harness, whose node has started again.
    pub(crate) async fn restarted(self) -> Self {
        Self { node: self.node.restarted().await, ..self }
    }

    /// Returns a name that was not used before.
    pub(crate) fn fresh(&self, word: &str) -> String {
        format!("{word}-{}", self.count.fetch_add(1, Ordering::Relaxed))
    }

    /// Makes a call with acme's key of a role.
    pub(crate) async fn attempt<R: Message + Default>(
        &self,
        role: &str,
        method: &str,
        request: &impl Message,
    ) -> Result<R, Status> {
        self.node.line.ask(self.acme.key(role), method, request).await
    }

    /// The same; fails if the call is refused.
    pub(crate) async fn ask<R: Message + Default>(
        &self,
        role: &str,
        method: &str,
        request: &impl Message,
    ) -> R {
        let outcome = self.attempt(role, method, request).await;
        outcome.unwrap_or_else(|status| panic!("{method} was refused: {status:?}"))
    }

    /// A new session of acme.
    pub(crate) async fn session(&self) -> v1::Session {
        start(&self.node, self.acme.key("agent"), &self.fresh("order")).await
    }

    /// Deploys a new policy of acme, which allows everything; returns its name.
    pub(crate) async fn policy(&self) -> String {
        let name = self.fresh("guard");
        self.deploy(&format!("{{\"policy\": {name:?}, \"default_effect\": \"allow\"}}")).await;
        name
    }

    /// A new conversation of acme.
    pub(crate) async fn talk(&self) -> v1::Session {
        self.deploy(TALK).await;
        self.deploy(&TALK.replace("\"talk\"", "\"chat\"")).await;
        let request = v1::StartSessionRequest {
            definition: "talk".into(),
            workflows: vec!["chat".into()],
            session_id: self.fresh("talk"),
            ..v1::StartSessionRequest::default()
        };
        let reply: v1::StartSessionResponse = self.ask("agent", "StartSession", &request).await;
        reply.session.expect("a session")
    }

    /// A new session of acme that waits for a worker, and the name of its definition, which no other session has.
    pub(crate) async fn owing(&self) -> (v1::Session, String) {
        let name = self.fresh("chore");
        self.deploy(&CHORE.replace("\"chore\"", &format!("{name:?}"))).await;
        let request = v1::StartSessionRequest { definition: name.clone(), ..Default::default() };
        let reply: v1::StartSessionResponse = self.ask("agent", "StartSession", &request).await;
        (reply.session.expect("a session"), name)
    }

    /// A work item of acme that a worker has leased.
    pub(crate) async fn leased(&self) -> v1::WorkItem {
        let (_, queue) = self.owing().await;
        let wanted = Some(v1::WorkWanted { queues: vec![queue], ..Default::default() });
        let request = v1::PollWorkRequest { wanted, ..Default::default() };
        let reply: v1::PollWorkResponse = self.ask("worker", "PollWork", &request).await;
        reply.items.into_iter().next().expect("work")
    }

    /// A session as an operator sees it, with its reply token.
    pub(crate) async fn seen(&self, name: &str) -> v1::Session {
        let request = v1::GetSessionRequest { name: name.to_owned(), ..Default::default() };
        let reply: v1::GetSessionResponse = self.ask("operator", "GetSession", &request).await;
        reply.session.expect("a session")
    }

    /// A session as it is now.
    pub(crate) async fn look(&self, name: &str) -> v1::Session {
        let request = v1::GetSessionRequest { name: name.to_owned(), ..Default::default() };
        let reply: v1::GetSessionResponse = self.ask("agent", "GetSession", &request).await;
        reply.session.expect("a session")
    }

    /// Answers a checkpoint as acme's agent.
    pub(crate) async fn answer(&self, name: &str, answer: &str) -> v1::Session {
        let request = v1::AnswerCheckpointRequest {
            name: name.to_owned(),
            answer: answer.to_owned(),
            ..v1::AnswerCheckpointRequest::default()
        };
        let reply: v1::AnswerCheckpointResponse = self.ask("agent", "AnswerCheckpoint", &request).await;
        *reply.session.expect("a session")
    }

    /// Asks for a tool call as acme's agent.
    pub(crate) async fn authorize(&self, name: &str, capability: &str) -> v1::AuthorizeToolCallResponse {
        self.ask("agent", "AuthorizeToolCall", &tool_call(name, capability)).await
    }

    /// The open gate of a new session of acme.
    pub(crate) async fn gate(&self) -> String {
        let session = self.session().await;
        self.authorize(&session.name, "mcp:filesystem:write_file").await.gate
    }

    /// The notice of a new gate of acme, which is not delivered.
    pub(crate) async fn effect(&self) -> String {
        let session = self.session().await.name;
        self.authorize(&session, "mcp:filesystem:write_file").await;
        let filter = format!("session=\"{session}\"");
        let mut request = v1::ListEffectsRequest { filter, ..v1::ListEffectsRequest::default() };
        // A page may be short, even empty, on a busy machine.
        let mut pages = Pages::default();
        while let Some(token) = pages.next_token() {
            request.page_token = token;
            let reply: v1::ListEffectsResponse = self.ask("agent", "ListEffects", &request).await;
            if let Some(notice) = reply.effects.into_iter().next() {
                return notice.name;
            }
            pages.read(reply.next_page_token);
        }
        panic!("{session} has no notice");
    }

    /// A notice that cannot be delivered.
    pub(crate) async fn dead_letter(&self) -> String {
        let (name, code) = (self.effect().await, "no_such_host".to_owned());
        let request = v1::FailEffectRequest { name, code, ..v1::FailEffectRequest::default() };
        let reply: v1::FailEffectResponse = self.ask("operator", "FailEffect", &request).await;
        reply.effect.expect("a dead letter").name
    }

    /// The name of a new source of webhooks of acme.
    pub(crate) async fn source(&self) -> String {
        let request = create_source(&self.fresh("shop"));
        let reply: v1::CreateWebhookSourceResponse = self.ask("admin", "CreateWebhookSource", &request).await;
        reply.source.expect("a source").name
    }

    /// The name of a new endpoint of acme.
    pub(crate) async fn endpoint(&self) -> String {
        let request = self.put_endpoint().await;
        let reply: v1::PutWebhookEndpointResponse = self.ask("admin", "PutWebhookEndpoint", &request).await;
        reply.endpoint.expect("an endpoint").name
    }

    /// A request that creates an endpoint of acme. Deletes the oldest one if there would be too many.
    pub(crate) async fn put_endpoint(&self) -> v1::PutWebhookEndpointRequest {
        let list = v1::ListWebhookEndpointsRequest::default();
        let known: v1::ListWebhookEndpointsResponse = self.ask("admin", "ListWebhookEndpoints", &list).await;
        if known.endpoints.len() + 2 > ENDPOINTS_MAX {
            let made = known.endpoints.into_iter().filter(|one| one.name.contains("/endpoints/ops"));
            let oldest = made.min_by_key(|one| {
                let number = one.name.chars().filter(char::is_ascii_digit).collect::<String>();
                number.parse::<u64>().unwrap_or(u64::MAX)
            });
            let name = oldest.expect("the oldest session").name;
            let delete = v1::DeleteWebhookEndpointRequest { name, ..Default::default() };
            let _: v1::DeleteWebhookEndpointResponse =
                self.ask("admin", "DeleteWebhookEndpoint", &delete).await;
        }
        put_endpoint(&self.fresh("ops"))
    }

    /// The name of a new mail in acme's quarantine.
    pub(crate) async fn quarantined(&self) -> String {
        let id = self.fresh("mail");
        keep(&self.node, &id, TenantId(1));
        format!("tenants/acme/quarantine/{id}")
    }

    /// Deploys a definition of acme; returns its version.
    pub(crate) async fn deploy(&self, source: &str) -> v1::Version {
        let reply: v1::DeployDefinitionResponse =
            self.ask("author", "DeployDefinition", &deployment(source)).await;
        reply.version.expect("a version")
    }
}

/// A request that creates an assistant with one workflow.
pub(crate) fn put_assistant(name: &str) -> v1::PutAssistantRequest {
    let workflows = vec!["talk".to_owned()];
    let assistant = v1::Assistant { name: name.to_owned(), workflows, ..v1::Assistant::default() };
    v1::PutAssistantRequest { assistant: Some(assistant), ..Default::default() }
}

/// A request that creates a webhook source.
pub(crate) fn create_source(name: &str) -> v1::CreateWebhookSourceRequest {
    let source = v1::WebhookSource {
        name: name.to_owned(),
        kind: v1::WebhookSourceKind::StandardWebhooks.into(),
        session_pointer: "/order/session".into(),
        event_key: "paid".into(),
        data_pointer: "/order".into(),
        ..v1::WebhookSource::default()
    };
    v1::CreateWebhookSourceRequest { source: Some(source), ..Default::default() }
}

/// A request that creates an endpoint that subscribes to `ping` only.
pub(crate) fn put_endpoint(name: &str) -> v1::PutWebhookEndpointRequest {
    let endpoint = v1::WebhookEndpoint {
        name: name.to_owned(),
        url: "https://ops.example/in".into(),
        event_types: vec!["ping".into()],
        ..v1::WebhookEndpoint::default()
    };
    v1::PutWebhookEndpointRequest { endpoint: Some(endpoint), ..Default::default() }
}

/// A request for one tool call.
pub(crate) fn tool_call(session: &str, capability: &str) -> v1::AuthorizeToolCallRequest {
    v1::AuthorizeToolCallRequest {
        session: session.to_owned(),
        capability: capability.to_owned(),
        ..v1::AuthorizeToolCallRequest::default()
    }
}

/// A bundle of one JSON file.
pub(crate) fn bundle(source: &str) -> Vec<v1::DefinitionFile> {
    vec![v1::DefinitionFile { path: "process.json".into(), content: source.as_bytes().to_vec().into() }]
}

/// A request to deploy one JSON file.
pub(crate) fn deployment(source: &str) -> v1::DeployDefinitionRequest {
    v1::DeployDefinitionRequest { files: bundle(source), ..v1::DeployDefinitionRequest::default() }
}

/// [`RELEASE`] under another name.
pub(crate) fn named(name: &str) -> String {
    RELEASE.replace("\"release\"", &format!("{name:?}"))
}

async fn ask<R: Message + Default>(node: &Node, secret: &str, method: &str, request: &impl Message) -> R {
    let outcome = node.line.ask(secret, method, request).await;
    outcome.unwrap_or_else(|status| panic!("{method} was refused: {status:?}"))
}

/// Quarantines a mail for a tenant.
fn keep(node: &Node, id: &str, tenant: TenantId) {
    let (mail, raw) = crate::quarantine_store::mail(id, Some(tenant), node.cluster.now());
    node.quarantine.keep(mail, raw).expect("the quarantine stores the mail");
}

async fn start(node: &Node, secret: &str, key: &str) -> v1::Session {
    let request = v1::StartSessionRequest {
        definition: "release".into(),
        session_id: key.to_owned(),
        ..v1::StartSessionRequest::default()
    };
    let reply: v1::StartSessionResponse = ask(node, secret, "StartSession", &request).await;
    reply.session.expect("a session")
}

async fn seed(node: &Node, name: &'static str, only: &'static str, admin: &str) -> Tenant {
    let (mut keys, mut agent_key) = (BTreeMap::new(), String::new());
    for (word, role) in ROLES {
        let request = v1::CreateApiKeyRequest {
            role: role.into(),
            display_name: format!("{word} of {name}"),
            subject: format!("{word}@{name}"),
            ..v1::CreateApiKeyRequest::default()
        };
        let made: v1::CreateApiKeyResponse = ask(node, admin, "CreateApiKey", &request).await;
        keys.insert(word, made.secret);
        if role == v1::KeyRole::Agent {
            agent_key = made.api_key.expect("a key").name;
        }
    }
    for process in ["release", only] {
        let _: v1::DeployDefinitionResponse =
            ask(node, admin, "DeployDefinition", &deployment(&named(process))).await;
    }
    let _: v1::DeployDefinitionResponse = ask(node, admin, "DeployDefinition", &deployment(TALK)).await;
    let worker = put_assistant(&format!("{name}-desk"));
    let _: v1::PutAssistantResponse = ask(node, admin, "PutAssistant", &worker).await;
    let shop = create_source(&format!("{name}-shop"));
    let _: v1::CreateWebhookSourceResponse = ask(node, admin, "CreateWebhookSource", &shop).await;
    let number = if name == "acme" { 1 } else { 2 };
    keep(node, &format!("{name}-mail"), TenantId(number));
    let ops = put_endpoint(&format!("{name}-ops"));
    let _: v1::PutWebhookEndpointResponse = ask(node, admin, "PutWebhookEndpoint", &ops).await;
    let session = start(node, &keys["agent"], &format!("{name}-order")).await;
    let call = tool_call(&session.name, "mcp:filesystem:write_file");
    let asked: v1::AuthorizeToolCallResponse = ask(node, &keys["agent"], "AuthorizeToolCall", &call).await;
    Tenant { name, keys, session, gate: asked.gate, only, agent_key }
}
